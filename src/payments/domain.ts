/** `ErrorInfo.domain` of the refusals of this service. */
export const PAYMENTS_DOMAIN = 'payments.v1';
