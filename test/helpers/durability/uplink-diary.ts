/**
 * What the simulated locks of a fleet wrote down of their uplinks: what each made, what it was told is safe, and what
 * it discarded; and whether it discarded as its buffer's stated limit allows, and nothing else (protocol.md §2).
 */
import type { Diary } from '../../../firmware-sim/lock/diary.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { Uplink } from '../../../proto/wire/ping.js';
import type { LockDiary } from './delivery-check.js';

interface Page {
  /** Made, and neither acknowledged nor discarded, by name. */
  readonly kept: Map<string, Uplink>;
  readonly acked: Uplink[];
  made: number;
  /** Discarded since the last boot: what the lock itself tells as `dropped`. */
  discardedSinceBoot: number;
}

export class UplinkDiary {
  /** Where a lock discarded otherwise than it may. */
  readonly wrongs: string[] = [];
  made = 0;
  discarded = 0;
  /** The most that one lock kept at one time. */
  mostKept = 0;
  readonly #pages = new Map<Mac, Page>();
  readonly #onLine: () => void;

  /** @param onLine called after each line */
  constructor(onLine: () => void) {
    this.#onLine = onLine;
  }

  /** To be given to a fleet. */
  readonly write: Diary = (mac, _atMs, entry) => {
    const page = this.#page(mac);
    if (entry.type === 'booted') page.discardedSinceBoot = 0;
    else if (entry.type === 'acknowledged') this.#acknowledged(mac, page, entry.uplink);
    else if (entry.type === 'did' && entry.effect.type === 'made') this.#madeOne(mac, page, entry.effect.uplink);
    else if (entry.type === 'did' && entry.effect.type === 'discarded') this.#gone(mac, page, entry.effect.uplink);
    this.#onLine();
  };

  /** Uplinks that nobody has acknowledged, of all locks. */
  get kept(): number {
    let kept = 0;
    for (const page of this.#pages.values()) kept += page.kept.size;
    return kept;
  }

  /** As the check of deliveries takes them: what was made and not discarded must have arrived, once. */
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

  /** Only a full buffer may lose one, and a ping of a theft only where there is nothing else but what is in flight. */
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
