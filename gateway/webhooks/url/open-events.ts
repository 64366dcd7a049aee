/**
 * Which of the events that a URL's worker has read still lack an outcome, and so where the URL's cursor is: in each
 * slot of the log before the oldest such event, or else after the last event that was read. A slot is a part of the log
 * with growing ids of its own: each gateway that writes a shared log has one (log-position.ts). Does no I/O.
 */
import { idInSlot, type LogPosition, slotOf } from '../../store/contract/log/log-position.js';

/** Ids at the front of a list that are no longer open are removed when there are this many. */
const MAX_ENDED_AT_FRONT = 1_024;

export class OpenEvents {
  /** The position after all events that were read. */
  readonly #readTo: Map<number, number>;
  readonly #slots = new Map<number, OpenIds>();

  /** @param start the position from which the log is read */
  constructor(start: LogPosition) {
    this.#readTo = new Map(start);
  }

  /** The position after all events that were read. */
  get readTo(): LogPosition {
    return new Map(this.#readTo);
  }

  /** The position before the oldest event of each slot that has no outcome. */
  get cursor(): LogPosition {
    const cursor = new Map(this.#readTo);
    for (const [slot, ids] of this.#slots) if (ids.oldest !== undefined) cursor.set(slot, ids.oldest - 1);
    return cursor;
  }

  /** Must be called for each event that was read, in order. @param isOpen whether it has no outcome yet */
  read(id: number, isOpen: boolean): void {
    const slot = slotOf(id);
    this.#readTo.set(slot, Math.max(id, idInSlot(this.#readTo, slot)));
    if (!isOpen) return;
    const ids = this.#slots.get(slot) ?? new OpenIds();
    this.#slots.set(slot, ids);
    ids.add(id);
  }

  /** Must be called once an open event has an outcome, or needs none; does nothing for others. */
  end(id: number): void {
    this.#slots.get(slotOf(id))?.end(id);
  }
}

/** The open events of one slot, in the order of their ids. Each call takes constant time on average. */
class OpenIds {
  /** In order; from the front on, the open ids and some that are not open any more. */
  readonly #ids: number[] = [];
  readonly #open = new Set<number>();
  /** The index of the oldest open id. */
  #front = 0;

  get oldest(): number | undefined {
    return this.#ids[this.#front];
  }

  add(id: number): void {
    this.#ids.push(id);
    this.#open.add(id);
  }

  end(id: number): void {
    if (!this.#open.delete(id)) return;
    for (let first = this.oldest; first !== undefined && !this.#open.has(first); first = this.oldest) this.#front += 1;
    if (this.#front < MAX_ENDED_AT_FRONT) return;
    this.#ids.splice(0, this.#front);
    this.#front = 0;
  }
}
