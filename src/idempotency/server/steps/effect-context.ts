/** What an outside call is made with. */
export interface EffectContext {
  /** When the caller of this request stops waiting; undefined when never. The other side had best answer before. */
  readonly deadline: Date | undefined;
  /** Fires when this attempt has lost its claim. */
  readonly signal: AbortSignal;
  /**
   * Which attempt of the request sends it, from 1; larger whenever it is sent again. Beside the key, which stays the same, it
   * tells the other side which of two is the later one: an attempt that was paused and overtaken may send what it had begun
   * after its heir did. An operator's release starts the count over (case C6).
   */
  readonly attempt: number;
}
