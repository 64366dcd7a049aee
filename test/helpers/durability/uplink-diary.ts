/**
 * A diary of the uplinks (messages) of simulated locks: which uplinks each lock made, which were acknowledged, and
 * which the lock discarded. Also checks that locks discard uplinks only if their buffer is full (protocol.md §2).
 */
import type { Diary } from '../../../firmware-sim/lock/diary.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { Uplink } from '../../../proto/wire/ping.js';
import type { LockDiary } from './delivery-check.js';

/** The diary of one lock. */
interface LockPage {
  /** Uplinks that are neither acknowledged nor discarded, by key. */
  readonly unacked: Map<string, Uplink>;
  readonly acked: Uplink[];
  readonly discarded: Uplink[];
  /** Uplinks discarded since the last boot, which the lock reports as `dropped`. */
  discardedSinceBoot: number;
}

/** The diaries of all locks. */
export class UplinkDiary {
  /** Violations by a lock of the rules for its buffer, as sentences. */
  readonly violations: string[] = [];
  created = 0;
  discarded = 0;
  /** The maximum number of uplinks that one lock stored at a time. */
  maxUnackedOfLock = 0;
  readonly #pages = new Map<Mac, LockPage>();
  readonly #onLine: () => void;

  /** @param onLine called after each line */
  constructor(onLine: () => void) {
    this.#onLine = onLine;
  }

  /** The observer to pass to a fleet. */
  readonly observe: Diary = (mac, _atMs, entry) => {
    const page = this.#page(mac);
    if (entry.type === 'booted') page.discardedSinceBoot = 0;
    else if (entry.type === 'acknowledged') this.#onAcknowledged(mac, page, entry.uplink);
    else if (entry.type === 'did' && entry.effect.type === 'made') this.#onCreated(mac, page, entry.effect.uplink);
    else if (entry.type === 'did' && entry.effect.type === 'discarded')
      this.#onDiscarded(mac, page, entry.effect.uplink);
    this.#onLine();
  };

  /** The number of unacknowledged uplinks of all locks. */
  get unacked(): number {
    let unacked = 0;
    for (const page of this.#pages.values()) unacked += page.unacked.size;
    return unacked;
  }

  /**
   * The locks' diaries for delivery-check.ts, which asks that each of the `acked` arrived once, and that an `unacked`
   * one did so at most once. To be called when all was sent: then every uplink that was not discarded must have
   * arrived. A discarded one may have: the gateway stored it, and the connection broke before its acknowledgement came.
   */
  toDeliver(): LockDiary[] {
    return [...this.#pages].map(([mac, { acked, unacked, discarded }]) => ({
      mac,
      acked: [...acked, ...unacked.values()],
      unacked: discarded,
      overtaking: [...acked, ...unacked.values(), ...discarded].filter(isOvertaking),
    }));
  }

  #page(mac: Mac): LockPage {
    let page = this.#pages.get(mac);
    if (page === undefined) {
      page = { unacked: new Map(), acked: [], discarded: [], discardedSinceBoot: 0 };
      this.#pages.set(mac, page);
    }
    return page;
  }

  #onAcknowledged(mac: Mac, page: LockPage, uplink: Uplink): void {
    if (page.unacked.delete(keyOf(uplink))) page.acked.push(uplink);
    else this.violations.push(`${mac} got an acknowledgement of ${keyOf(uplink)}, for which it did not wait`);
  }

  #onCreated(mac: Mac, page: LockPage, uplink: Uplink): void {
    this.created += 1;
    page.unacked.set(keyOf(uplink), uplink);
    this.maxUnackedOfLock = Math.max(this.maxUnackedOfLock, page.unacked.size);
    if (page.unacked.size > POWER_MODEL.bufferUplinks)
      this.violations.push(`${mac} stores ${page.unacked.size} uplinks`);
    if (uplink.dropped !== page.discardedSinceBoot)
      this.violations.push(
        `${mac} reports ${uplink.dropped} dropped uplinks, but discarded ${page.discardedSinceBoot}`,
      );
  }

  /**
   * Only a full buffer may discard an uplink; a theft ping only if all others in it are thefts too, except the one that
   * may be in flight.
   */
  #onDiscarded(mac: Mac, page: LockPage, uplink: Uplink): void {
    this.discarded += 1;
    page.discardedSinceBoot += 1;
    const unackedBefore = page.unacked.size;
    page.discarded.push(uplink);
    if (!page.unacked.delete(keyOf(uplink)))
      this.violations.push(`${mac} discarded ${keyOf(uplink)}, which it did not have`);
    if (unackedBefore < POWER_MODEL.bufferUplinks)
      this.violations.push(`${mac} discarded an uplink although it stored only ${unackedBefore}`);
    const others = [...page.unacked.values()].filter((each) => !isTheft(each)).length;
    if (isTheft(uplink) && others > 1)
      this.violations.push(`${mac} discarded a theft ping although it stored ${others} uplinks that are no thefts`);
  }
}

function isTheft({ body }: Uplink): boolean {
  return body.kind !== 'ack' && body.reason === 'REASON_THEFT';
}

/** A theft's cellular ping is sent before older uplinks, and so is the ping that reports a modem reset. */
function isOvertaking({ body }: Uplink): boolean {
  return body.kind === 'cellular' && (body.reason === 'REASON_THEFT' || body.reason === 'REASON_RESET');
}

function keyOf({ boot, sequence }: Uplink): string {
  return `${boot}/${sequence}`;
}
