/** Status codes in the spelling of Go, by number: existing dashboards and alerts match these strings. */
export const GRPC_CODES = [
  'OK',
  'Canceled',
  'Unknown',
  'InvalidArgument',
  'DeadlineExceeded',
  'NotFound',
  'AlreadyExists',
  'PermissionDenied',
  'ResourceExhausted',
  'FailedPrecondition',
  'Aborted',
  'OutOfRange',
  'Unimplemented',
  'Internal',
  'Unavailable',
  'DataLoss',
  'Unauthenticated',
] as const;

/** A status code as label or log field. */
export type GrpcCode = (typeof GRPC_CODES)[number];

/** The name of a status code; a number that gRPC doesn't define is `Unknown`, so that labels stay bounded (case M1). */
export function grpcCode(code: number): GrpcCode {
  return GRPC_CODES[code] ?? 'Unknown';
}

/** The labels of a method, as go-grpc names them. */
export interface MethodLabels {
  readonly grpc_service: string;
  readonly grpc_method: string;
}

/** Splits `/payments.v1.PaymentsService/CreatePayment`. Only for paths of registered methods: they are bounded. */
export function methodLabels(path: string): MethodLabels {
  const [, service = '', method = ''] = path.split('/');
  return { grpc_service: service, grpc_method: method };
}
