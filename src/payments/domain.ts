/** `ErrorInfo.domain` of the refusals of this service. */
export const PAYMENTS_DOMAIN = 'payments.v1';

/** `ErrorInfo.reason` of an update whose payment was changed since its etag was read. */
export const ETAG_MISMATCH = 'ETAG_MISMATCH';

/** `ErrorInfo.reason` of a payment of an order that has a live one. */
export const ORDER_ALREADY_PAID = 'ORDER_ALREADY_PAID';

/** `ErrorInfo.reason` of a payment of an order that another request is paying right now. */
export const ORDER_PAYMENT_IN_PROGRESS = 'ORDER_PAYMENT_IN_PROGRESS';

/** `ErrorInfo.reason` of a payment whose card was declined; `decline_reason` in its metadata says why. */
export const CARD_DECLINED = 'CARD_DECLINED';

/** `ErrorInfo.reason` of a payment that was given up before its card was charged, since nobody came back for it. */
export const PAYMENT_ABANDONED = 'PAYMENT_ABANDONED';

/** `ErrorInfo.reason` while it is not known what the card network did. */
export const CARD_NETWORK_UNAVAILABLE = 'CARD_NETWORK_UNAVAILABLE';

/** `ErrorInfo.reason` of a refund of a payment that was cancelled. */
export const PAYMENT_NOT_REFUNDABLE = 'PAYMENT_NOT_REFUNDABLE';

/** `ErrorInfo.reason` of a refund of more than is left; `refundable_minor` in its metadata says what is. */
export const REFUND_EXCEEDS_PAYMENT = 'REFUND_EXCEEDS_PAYMENT';
