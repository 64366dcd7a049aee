/**
 * Remembers which uplinks of one lock a trace has had, for each credential of the lock and of its phones (protocol.md
 * §1): an uplink with the same number but another credential is another uplink. A *life* is the time between two wipes
 * of the lock's flash (uplink-life.ts); lives are numbered from 1. Does no I/O.
 */
import type { UplinkNovelty } from '../power/judge/event.js';
import type { Source, Uplink } from '../wire/ping.js';
import { SeenUplinks, type SeenUplinksLimit } from '../wire/seen-uplinks.js';

import { FIRST_CREDENTIAL } from './trace.js';

/** The uplinks of one credential, one element for each of the lock's lives, in order. */
type SeenByLife = readonly SeenUplinks[];

/** See the top of this file. */
export class SeenCredentials {
  readonly #limit: SeenUplinksLimit;
  readonly #lives: number;
  readonly #first: SeenByLife;
  readonly #others = new Map<number, SeenByLife>();
  readonly #phones = new Map<number, SeenByLife>();

  /** @param lives how many lives the lock has had */
  constructor(limit: SeenUplinksLimit, lives: number) {
    this.#limit = limit;
    this.#lives = lives;
    this.#first = this.#newLives(lives);
  }

  /** Notes the uplink of a line, and returns whether it came before. The same content is a repeat in any life. */
  note(source: Source, credential: number, life: number, uplink: Uplink, line: number): UplinkNovelty {
    const lives = this.#livesOf(source, credential);
    // The caller's lives are from 1 to the number that the constructor got; a phone has only the first.
    const ofLife = lives[life - 1] as SeenUplinks;
    if (lives.length > 1 && lives.some((other) => other !== ofLife && other.has(uplink))) return 'repeat';
    return ofLife.note(uplink, line);
  }

  /** The line in which an uplink of the lock itself came first; undefined if it is unknown or forgotten. */
  lineOf(credential: number, life: number, boot: number, sequence: number): number | undefined {
    const lives = credential === FIRST_CREDENTIAL ? this.#first : this.#others.get(credential);
    return lives?.[life - 1]?.lineOf(boot, sequence);
  }

  #livesOf(source: Source, credential: number): SeenByLife {
    if (source === 'lock' && credential === FIRST_CREDENTIAL) return this.#first;
    const group = source === 'lock' ? this.#others : this.#phones;
    const knownLives = group.get(credential);
    if (knownLives !== undefined) return knownLives;
    // A phone has no flash that could be wiped, so all its uplinks are of one life, the first.
    const newLives = this.#newLives(source === 'lock' ? this.#lives : 1);
    group.set(credential, newLives);
    return newLives;
  }

  #newLives(count: number): SeenByLife {
    return Array.from({ length: count }, () => new SeenUplinks(this.#limit));
  }
}
