/** What an outside call is made with. */
export interface EffectContext {
  /** When the caller of this request stops waiting; undefined when never. The other side had best answer before. */
  readonly deadline: Date | undefined;
  /** Fires when this attempt has lost its claim. */
  readonly signal: AbortSignal;
}
