/** The name of a payment for whoever asks what became of a request: `payments/<id>`. */
export function paymentResource({ paymentId }: { readonly paymentId: string }): string {
  return `payments/${paymentId}`;
}
