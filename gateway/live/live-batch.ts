/**
 * Changes with consecutive sequences, for all streams. They are rendered once for each audience, and all streams of
 * the audience share the bytes.
 */
import { type Audience, type Delta, deltaText } from './audience.js';

export class LiveBatch {
  /** The sequence of the last change. */
  readonly last: number;
  readonly #deltas: readonly Delta[];
  /** The events as bytes, by the name of the audience. */
  readonly #rendered = new Map<string, Buffer>();

  /** @param deltas at least one */
  constructor(deltas: readonly Delta[]) {
    this.#deltas = deltas;
    this.last = deltas.at(-1)?.sequence ?? 0;
  }

  /**
   * The events for an audience; empty if no change concerns it.
   *
   * @param idOf returns the audience's event id of a sequence; used only by the audience's first call
   */
  bytesFor(audience: Audience, idOf: (sequence: number) => string): Buffer {
    const known = this.#rendered.get(audience.name);
    if (known !== undefined) return known;
    const { merchantId } = audience;
    const texts = this.#deltas
      .filter((delta) => merchantId === undefined || delta.merchantId === merchantId)
      .map((delta) => deltaText(audience, delta, idOf(delta.sequence)));
    const bytes = Buffer.from(texts.join(''), 'utf8');
    this.#rendered.set(audience.name, bytes);
    return bytes;
  }
}
