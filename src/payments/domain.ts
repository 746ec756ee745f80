/** `ErrorInfo.domain` of the refusals of this service. */
export const PAYMENTS_DOMAIN = 'payments.v1';

/** `ErrorInfo.reason` of an update whose payment was changed since its etag was read. */
export const ETAG_MISMATCH = 'ETAG_MISMATCH';
