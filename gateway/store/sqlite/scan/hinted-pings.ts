/**
 * Which of a lock's uplinks a scan of pings must read, newest first, by their hints in the index by lock
 * (log/uplink-hint.ts) and by their order: times of receipt grow with ids, so that a few uplinks show which ones were
 * received in the span that the scan asks for.
 */
import { UPLINK_KINDS } from '../../contract/log/commit.js';
import type { PingFilter } from '../../contract/merchants/uplink-scan.js';
import { MAX_CLOCK_AHEAD, MAX_UNBUFFERED_DELAY } from '../../log/scan.js';
import { hintedKind, hintedReasons, isHintedAhead, isHintedBuffered, validHint } from '../../log/uplink-hint.js';

/** An uplink's id and its hint. */
export type HintedId = readonly [id: number, hint: number | null];

export class HintedPings {
  readonly #deviceId: number;
  readonly #filter: PingFilter;
  readonly #receivedAtMs: (id: number) => number | undefined;
  readonly #mayHaveReason: (hint: number) => boolean;
  /** Uplinks from this one on were received so long after the span that only buffered ones can belong to it. */
  #lateFromId = Number.POSITIVE_INFINITY;
  /** Whether `#lateFromId` is final. */
  #isLateKnown: boolean;
  /** Uplinks before this one were received before the span: only if the lock’s clock was ahead can one belong to it. */
  #oldBeforeId = Number.NEGATIVE_INFINITY;
  #isAtEnd = false;

  /** @param receivedAtMs when an uplink was received; undefined if its row is missing */
  constructor(deviceId: number, filter: PingFilter, receivedAtMs: (id: number) => number | undefined) {
    this.#deviceId = deviceId;
    this.#filter = filter;
    this.#receivedAtMs = receivedAtMs;
    this.#isLateKnown = filter.toMs === undefined;
    this.#mayHaveReason = filter.reasons === undefined ? () => true : hintedReasons(filter.reasons);
  }

  /** Takes the next rows of the index, newest first, before they are passed to {@link mayMatch}. */
  enter(rows: readonly HintedId[]): void {
    const { fromMs, toMs } = this.#filter;
    if (rows.length === 0) return;
    const ids = rows.map(([id]) => id);
    if (toMs !== undefined && !this.#isLateKnown) {
      const late = this.#countWhile(ids, (receivedAtMs) => receivedAtMs - MAX_UNBUFFERED_DELAY > toMs);
      this.#lateFromId = ids[(late ?? 0) - 1] ?? this.#lateFromId;
      this.#isLateKnown = late !== undefined && late < ids.length;
    }
    if (fromMs === undefined) return;
    const oldestMs = this.#receivedAtMs(ids.at(-1) ?? 0);
    if (oldestMs === undefined || oldestMs >= fromMs) return;
    this.#isAtEnd = oldestMs < fromMs - MAX_CLOCK_AHEAD;
    const young = this.#countWhile(ids, (receivedAtMs) => receivedAtMs >= fromMs);
    if (young !== undefined) this.#oldBeforeId = Math.max(this.#oldBeforeId, ids[young - 1] ?? (ids[0] ?? 0) + 1);
  }

  /** Whether all that a scan can want was entered. */
  get isAtEnd(): boolean {
    return this.#isAtEnd;
  }

  /** Whether the scan may want the uplink, so that its row must be read. */
  mayMatch([id, stored]: HintedId): boolean {
    const hint = validHint(stored, this.#deviceId, id);
    if (hint === undefined) return true;
    const kind = hintedKind(hint);
    const { types } = this.#filter;
    if (kind === 0 || (types !== undefined && !types.includes(UPLINK_KINDS[kind] ?? ''))) return false;
    if (id >= this.#lateFromId && !isHintedBuffered(hint)) return false;
    if (id < this.#oldBeforeId && !isHintedAhead(hint)) return false;
    return this.#mayHaveReason(hint);
  }

  /**
   * At how many ids the condition holds, by a binary search: it holds at the first ones or at none. Undefined if a row
   * that was looked at is missing.
   */
  #countWhile(ids: readonly number[], holds: (receivedAtMs: number) => boolean): number | undefined {
    let [low, high] = [0, ids.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const receivedAtMs = this.#receivedAtMs(ids[middle] as number);
      if (receivedAtMs === undefined) return undefined;
      if (holds(receivedAtMs)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
