/**
 * Ids of uplinks for an engine with several writers. Each writer (a *slot*, ../log/log-position.ts) makes its own ids:
 *
 *     id = counter × 64 + slot
 *     counter = the highest of: ms × 128, the slot's last counter + 1, the lock's last counter + 1
 *
 * `ms` is the database's time, in ms since 2020. So ids ascend within a slot, in the order in which the slot commits
 * them, and for each lock, whichever slots it connects to; and roughly by time. Several hundred thousand ids a second
 * in one slot push the counter ahead of the clock; it may be at most {@link MAX_AHEAD} ahead. Reads no clock: the time
 * is an argument.
 */
import { Hours, type Milliseconds } from '../../../../proto/clock.js';
import { DENSE_SLOT, MAX_DENSE_ID, SLOT_COUNT } from '../log/log-position.js';

/** 2020-01-01, the start of the clock in ids. */
export const CLOCK_ID_EPOCH_MS = Date.UTC(2020, 0, 1);
/** Counters per ms. */
const COUNTERS_PER_MS = 128;
/** How far an id's time may be ahead of the clock. Beyond it a clock is wrong, and the process must end. */
export const MAX_AHEAD: Milliseconds = Hours(1);
/** The first counter whose ids are above all dense ids: 199 days after the start of the clock. */
const MIN_COUNTER = Math.floor(MAX_DENSE_ID / SLOT_COUNT) + 1;
/** The last counter whose ids are exact numbers: in the year 2054. */
const MAX_COUNTER = Math.floor(Number.MAX_SAFE_INTEGER / SLOT_COUNT) - 1;

/** The ids would leave the range that the clock allows: the clock is wrong, and nothing more may be stored. */
export class IdClockError extends Error {
  override readonly name = 'IdClockError';
}

/** The counter of an id; 0 for a dense id, so that it limits nothing. */
export function counterOf(id: number): number {
  return id <= MAX_DENSE_ID ? 0 : Math.floor(id / SLOT_COUNT);
}

/** The time of an id, ms since the epoch; for a dense id the start of the clock. */
export function timeOfIdMs(id: number): number {
  return CLOCK_ID_EPOCH_MS + counterOf(id) / COUNTERS_PER_MS;
}

/** The lowest id of a slot that a clock at `nowMs` (ms since the epoch) gives. */
export function lowestIdAt(nowMs: number, slot: number): number {
  return Math.floor((nowMs - CLOCK_ID_EPOCH_MS) * COUNTERS_PER_MS) * SLOT_COUNT + slot;
}

/** Makes the ids of one slot, from its claim to its end. */
export class ClockIds {
  readonly #slot: number;
  #lastCounter: number;

  /**
   * @param startAbove all ids are above this one: the highest of the ids in the log, of the slot's in the cursors of
   *   webhook URLs, and of the id up to which the slot's former owner could still write
   * @throws RangeError if `slot` is not the slot of a writer
   */
  constructor(slot: number, startAbove: number) {
    if (!Number.isInteger(slot) || slot <= DENSE_SLOT || slot >= SLOT_COUNT)
      throw new RangeError(`${slot} is not a slot for ids of a clock`);
    this.#slot = slot;
    this.#lastCounter = counterOf(startAbove);
  }

  /** The last id; if none was made, one that is below all that will be made. */
  get lastId(): number {
    return this.#lastCounter * SLOT_COUNT + this.#slot;
  }

  /**
   * Returns the next id.
   *
   * @param lastOfLock the last id of the uplink's lock, in any slot; 0 if it has none
   * @param nowMs the database's time, ms since the epoch
   * @throws IdClockError if the id would be more than {@link MAX_AHEAD} ahead of the clock, or out of range
   */
  next(lastOfLock: number, nowMs: number): number {
    const ofClock = Math.floor((nowMs - CLOCK_ID_EPOCH_MS) * COUNTERS_PER_MS);
    const counter = Math.max(ofClock, this.#lastCounter + 1, counterOf(lastOfLock) + 1);
    // Negated, so that NaN is refused too.
    if (!(counter >= MIN_COUNTER && counter <= MAX_COUNTER))
      throw new IdClockError(`the database's clock gives no id: it shows ${new Date(nowMs).toISOString()}`);
    if (counter - ofClock > MAX_AHEAD * COUNTERS_PER_MS)
      throw new IdClockError('the ids of uplinks are over an hour ahead of the database’s clock');
    this.#lastCounter = counter;
    return counter * SLOT_COUNT + this.#slot;
  }
}
