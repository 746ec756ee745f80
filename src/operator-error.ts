/**
 * Something that whoever runs the program can repair. Its message names the thing and the next step, holds no secret, and
 * is printed as it is, without a stack.
 */
export class OperatorError extends Error {
  override readonly name: string = 'OperatorError';
}
