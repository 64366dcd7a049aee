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

  /** The events for an audience; empty if no change concerns it. @param idOf returns the event id of a sequence */
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

/** Several batches, in order, that each stream gets in one write: a write costs as much as some ten changes. */
export class LiveDelivery {
  /** The sequence of the last change. */
  readonly last: number;
  readonly #batches: readonly LiveBatch[];
  /** The bytes of all batches, by the name of the audience. */
  readonly #joined = new Map<string, Buffer>();

  /** @param batches at least one */
  constructor(batches: readonly LiveBatch[]) {
    this.#batches = batches;
    this.last = batches.at(-1)?.last ?? 0;
  }

  /**
   * The events for an audience that come after a position. A stream that has read locks by itself since a batch was
   * made has a position after that batch, whose states may be older than those that it has sent.
   *
   * @param idOf returns the event id of a sequence
   */
  bytesAfter(position: number, audience: Audience, idOf: (sequence: number) => string): Buffer {
    const due = this.#batches.filter(({ last }) => last > position);
    const isWhole = due.length === this.#batches.length;
    const known = isWhole ? this.#joined.get(audience.name) : undefined;
    if (known !== undefined) return known;
    const parts = due.map((batch) => batch.bytesFor(audience, idOf));
    const bytes = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
    if (isWhole) this.#joined.set(audience.name, bytes);
    return bytes;
  }
}
