/**
 * A diary of the uplinks of a simulated fleet: which uplinks each lock made, which were acknowledged, and which the
 * lock discarded; and a check that locks discard only as the limit of their buffer allows (protocol.md §2).
 */
import type { Diary } from '../../../firmware-sim/lock/diary.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { Uplink } from '../../../proto/wire/ping.js';
import type { LockDiary } from './delivery-check.js';

interface Page {
  /** Uplinks that are neither acknowledged nor discarded, by key. */
  readonly kept: Map<string, Uplink>;
  readonly acked: Uplink[];
  made: number;
  /** Uplinks discarded since the last boot, which the lock reports as `dropped`. */
  discardedSinceBoot: number;
}

export class UplinkDiary {
  /** Sentences about uplinks that a lock must not have discarded. */
  readonly wrongs: string[] = [];
  made = 0;
  discarded = 0;
  /** The maximum number of uplinks that one lock stored at a time. */
  mostKept = 0;
  readonly #pages = new Map<Mac, Page>();
  readonly #onLine: () => void;

  /** @param onLine called after each line */
  constructor(onLine: () => void) {
    this.#onLine = onLine;
  }

  /** The observer to pass to a fleet. */
  readonly write: Diary = (mac, _atMs, entry) => {
    const page = this.#page(mac);
    if (entry.type === 'booted') page.discardedSinceBoot = 0;
    else if (entry.type === 'acknowledged') this.#acknowledged(mac, page, entry.uplink);
    else if (entry.type === 'did' && entry.effect.type === 'made') this.#madeOne(mac, page, entry.effect.uplink);
    else if (entry.type === 'did' && entry.effect.type === 'discarded') this.#gone(mac, page, entry.effect.uplink);
    this.#onLine();
  };

  /** The number of unacknowledged uplinks of all locks. */
  get kept(): number {
    let kept = 0;
    for (const page of this.#pages.values()) kept += page.kept.size;
    return kept;
  }

  /** The locks' diaries for delivery-check.ts: every uplink that was not discarded must have arrived once. */
  toDeliver(): LockDiary[] {
    return [...this.#pages].map(([mac, { acked, kept }]) => ({
      mac,
      acked: [...acked, ...kept.values()],
      unacked: [],
      overtaking: [...acked, ...kept.values()].filter(isOvertaking),
    }));
  }

  #page(mac: Mac): Page {
    let page = this.#pages.get(mac);
    if (page === undefined) {
      page = { kept: new Map(), acked: [], made: 0, discardedSinceBoot: 0 };
      this.#pages.set(mac, page);
    }
    return page;
  }

  #acknowledged(mac: Mac, page: Page, uplink: Uplink): void {
    if (page.kept.delete(nameOf(uplink))) page.acked.push(uplink);
    else this.wrongs.push(`${mac} was told twice that ${nameOf(uplink)} is safe`);
  }

  #madeOne(mac: Mac, page: Page, uplink: Uplink): void {
    this.made += 1;
    page.made += 1;
    page.kept.set(nameOf(uplink), uplink);
    this.mostKept = Math.max(this.mostKept, page.kept.size);
    if (page.kept.size > POWER_MODEL.bufferUplinks) this.wrongs.push(`${mac} keeps ${page.kept.size} uplinks`);
    if (uplink.dropped !== page.discardedSinceBoot)
      this.wrongs.push(`${mac} tells ${uplink.dropped} dropped and discarded ${page.discardedSinceBoot}`);
  }

  /**
   * Only a full buffer may discard an uplink; a theft ping only if the buffer has no other uplinks except those in
   * flight.
   */
  #gone(mac: Mac, page: Page, uplink: Uplink): void {
    this.discarded += 1;
    page.discardedSinceBoot += 1;
    const wasKept = page.kept.size;
    if (!page.kept.delete(nameOf(uplink)))
      this.wrongs.push(`${mac} discarded ${nameOf(uplink)}, which it did not keep`);
    if (wasKept < POWER_MODEL.bufferUplinks) this.wrongs.push(`${mac} discarded one of ${wasKept}`);
    const others = [...page.kept.values()].filter((each) => !isTheft(each)).length;
    if (isTheft(uplink) && others > 1) this.wrongs.push(`${mac} discarded a theft and kept ${others} others`);
  }
}

function isTheft({ body }: Uplink): boolean {
  return body.kind !== 'ack' && body.reason === 'REASON_THEFT';
}

/** A theft's cellular ping goes before those kept, and so does the word that the modem was reset. */
function isOvertaking({ body }: Uplink): boolean {
  return body.kind === 'cellular' && (body.reason === 'REASON_THEFT' || body.reason === 'REASON_RESET');
}

function nameOf({ boot, sequence }: Uplink): string {
  return `${boot}/${sequence}`;
}
