/**
 * Which locks changed, in order, so that a stream that was interrupted or slow gets what it missed. The log has each
 * lock at most once, at its last change, and no state: the state is read when it is sent. So the log is limited by the
 * number of locks, however often they change.
 *
 * A position is the sequence of the last change that a stream has sent.
 */
import type { Mac } from '../../proto/wire/mac.js';

/** Maximum number of stored departures. A stream that missed more needs a new snapshot. */
const MAX_DEPARTURES = 10_000;

/** A lock changed or was added. */
export interface LockChange {
  readonly kind: 'change';
  /** Changes and departures of all merchants are numbered together. */
  readonly sequence: number;
  readonly deviceId: number;
  /** The lock's merchant at that time. */
  readonly merchantId: number;
}

/** A merchant lost a lock: it was moved to another merchant or taken out of service. */
export interface LockDeparture {
  readonly kind: 'departure';
  readonly sequence: number;
  readonly mac: Mac;
  /** The merchant that lost it. */
  readonly merchantId: number;
}

export class ChangeLog {
  #last = 0;
  /** Each lock's last change by the lock's device id, in the order of their sequences. */
  readonly #changes = new Map<number, LockChange>();
  readonly #departures: LockDeparture[] = [];
  /** The sequence of the last departure that was dropped; 0 if none was. */
  #lastDropped = 0;

  /** The sequence of the last entry; 0 if there is none. */
  get last(): number {
    return this.#last;
  }

  noteChange(deviceId: number, merchantId: number): LockChange {
    const change: LockChange = { kind: 'change', sequence: ++this.#last, deviceId, merchantId };
    // Deleted first, so that it becomes the last entry of the map.
    this.#changes.delete(deviceId);
    this.#changes.set(deviceId, change);
    return change;
  }

  noteDeparture(deviceId: number, mac: Mac, merchantId: number): LockDeparture {
    const departure: LockDeparture = { kind: 'departure', sequence: ++this.#last, mac, merchantId };
    this.#changes.delete(deviceId);
    this.#departures.push(departure);
    if (this.#departures.length > MAX_DEPARTURES) this.#lastDropped = this.#departures.shift()?.sequence ?? 0;
    return departure;
  }

  /**
   * The entries after a position, in order; undefined if some of them may have been dropped, or if this log has not
   * reached the position.
   *
   * @param merchantId whose locks; all if undefined
   */
  after(position: number, merchantId: number | undefined): readonly (LockChange | LockDeparture)[] | undefined {
    if (position < this.#lastDropped || position > this.#last) return undefined;
    const isWanted = (entry: LockChange | LockDeparture): boolean =>
      entry.sequence > position && (merchantId === undefined || entry.merchantId === merchantId);
    const changes = [...this.#changes.values()].filter(isWanted);
    const departures = this.#departures.filter(isWanted);
    if (departures.length === 0) return changes;
    return [...changes, ...departures].sort((a, b) => a.sequence - b.sequence);
  }
}
