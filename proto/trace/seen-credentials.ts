/**
 * Which uplinks of one lock a trace has had, for each of the lock's and its phones' credentials (protocol.md §1): the
 * same number under another credential is another uplink. Pure.
 */
import type { UplinkNovelty } from '../power/judge/event.js';
import type { Source, Uplink } from '../wire/ping.js';
import { SeenUplinks, type SeenUplinksLimit } from '../wire/seen-uplinks.js';
import { FIRST_LIFE } from '../wire/uplink-life.js';
import { FIRST_CREDENTIAL } from './trace.js';

/** The uplinks of one credential; one element for each of the lock's lives (uplink-life.ts), in order. */
type Lives = readonly SeenUplinks[];

/** See the head of this file. */
export class SeenCredentials {
  readonly #bound: SeenUplinksLimit;
  readonly #lives: number;
  readonly #first: Lives;
  readonly #others = new Map<number, Lives>();
  readonly #phones = new Map<number, Lives>();

  /** @param lives how many lives the lock has had */
  constructor(bound: SeenUplinksLimit, lives: number) {
    this.#bound = bound;
    this.#lives = lives;
    this.#first = this.#newLives(lives);
  }

  /** Notes the uplink of a line, and returns whether it was there before. The same content is a repeat in any life. */
  note(source: Source, credential: number, life: number, uplink: Uplink, line: number): UplinkNovelty {
    const lives = this.#livesOf(source, credential);
    const ofLife = lives[life - 1] as SeenUplinks;
    if (lives.length > 1 && lives.some((other) => other !== ofLife && other.has(uplink))) return 'repeat';
    return ofLife.note(uplink, line);
  }

  /** The line of an uplink of the lock itself; undefined if it is unknown or forgotten. */
  lineOf(credential: number, life: number, boot: number, sequence: number): number | undefined {
    const lives = credential === FIRST_CREDENTIAL ? this.#first : this.#others.get(credential);
    return lives?.[life - 1]?.lineOf(boot, sequence);
  }

  #livesOf(source: Source, credential: number): Lives {
    if (source === 'lock' && credential === FIRST_CREDENTIAL) return this.#first;
    const group = source === 'lock' ? this.#others : this.#phones;
    const known = group.get(credential);
    if (known !== undefined) return known;
    const added = this.#newLives(source === 'lock' ? this.#lives : FIRST_LIFE);
    group.set(credential, added);
    return added;
  }

  #newLives(count: number): Lives {
    return Array.from({ length: count }, () => new SeenUplinks(this.#bound));
  }
}
