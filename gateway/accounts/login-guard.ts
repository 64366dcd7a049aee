/**
 * Keeps people from guessing passwords (quality.md §2, brute force). Guesses are counted for each account *from each
 * address*: at most ten wrong ones in any five minutes. Whoever guesses at an account locks themselves out of it, and
 * not its owner, who comes from elsewhere; nor others who share the address, whose accounts are other ones.
 *
 * Two wider limits go with it: one for an account, against many addresses that guess at it, and one for an address,
 * against one that tries a few passwords at each of many accounts of a merchant. Neither holds an address at an account
 * that was entered from there before, so its owner still gets in.
 *
 * All addresses of an IPv6 /64 are one (network/address-group.ts).
 *
 * It is counted whether the account exists or not. Attempts at an account from one address go one after the other: the
 * count would else come too late for those that are sent at once.
 */
import { createHash } from 'node:crypto';
import { type Clock, type Milliseconds, Minutes, Seconds } from '../../proto/clock.js';
import { addressGroup } from '../network/address-group.js';

/** Wrong guesses at an account from one address in a {@link GUESS_WINDOW}. */
export const GUESSES = 10;
export const GUESS_WINDOW: Milliseconds = Minutes(5);
/**
 * Wrong guesses in a window at an account from all addresses together that never entered it; and from an address at all
 * accounts of a merchant that it never entered. Many people share an address, and some of them mistype.
 */
export const GUESSES_OF_STRANGERS = 100;
/**
 * Accounts, addresses and pairs with wrong guesses that are remembered: three a guess, so more than three threads can
 * compare in a window. Of more, the oldest go; those whose guesses are all past go before that.
 */
const REMEMBERED = 200_000;
/** Attempts of one account from one address that wait for each other; a further one is told to come back. */
const IN_LINE = 1_000;
/** Pairs that have been right and are remembered; of more, the oldest go. */
const KNOWN_REMEMBERED = 50_000;

/** An attempt that was let in, to be answered with what came of it. */
export interface Attempt {
  /** Undefined where it may go on; else how long to wait. */
  readonly retryAfterMs: number | undefined;
  /** Says what came of it and lets the next one in; to be called in any case. */
  readonly end: (became: 'right' | 'wrong' | 'undecided') => void;
}

export class LoginGuard {
  readonly #clock: Clock;
  /** When wrong guesses were made, by account, by address, and by both; oldest first. */
  readonly #wrong = new Map<string, number[]>();
  /** Pairs that have been right. */
  readonly #known = new Set<string>();
  /** For each pair with attempts under way the last of them, and how many there are. */
  readonly #lines = new Map<string, { last: Promise<void>; count: number }>();

  /** Attempts that were let in and are under way, at accounts that were never entered from there: by either. */
  readonly #strangers = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when those before it, at this account from this address, have ended. */
  async begin(merchantId: number, username: string, address: string): Promise<Attempt> {
    const group = addressGroup(address);
    const pair = shortName('pair', merchantId, username, group);
    const wide = [shortName('account', merchantId, username), shortName('address', merchantId, group)];
    const line = this.#lines.get(pair) ?? { last: Promise.resolve(), count: 0 };
    if (line.count >= IN_LINE) return { retryAfterMs: Seconds(1), end: () => undefined };
    const before = line.last;
    let done: () => void = () => undefined;
    line.last = new Promise<void>((resolve) => {
      done = resolve;
    });
    line.count += 1;
    this.#lines.set(pair, line);
    await before;
    const isKnown = this.#known.has(pair);
    const retryAfterMs = this.#wait(pair, GUESSES) ?? (isKnown ? undefined : this.#strangersWait(wide));
    const isStranger = retryAfterMs === undefined && !isKnown;
    if (isStranger) this.#noteStranger(wide, 1);
    const end = (became: 'right' | 'wrong' | 'undecided'): void => {
      if (isStranger) this.#noteStranger(wide, -1);
      // Somebody who mistypes where they were before says nothing of the others at their address.
      if (became === 'wrong') for (const name of isKnown ? [pair] : [pair, ...wide]) this.#count(name);
      if (became === 'right') this.#know(pair);
      line.count -= 1;
      if (line.count === 0) this.#lines.delete(pair);
      done();
    };
    return { retryAfterMs, end };
  }

  /** Strangers' attempts that are under way count as wrong: those sent at once would else all be let in. */
  #strangersWait(wide: readonly string[]): number | undefined {
    const waits = wide.flatMap((name) => {
      const underWay = this.#strangers.get(name) ?? 0;
      if (underWay >= GUESSES_OF_STRANGERS) return [Seconds(1)];
      return this.#wait(name, GUESSES_OF_STRANGERS - underWay) ?? [];
    });
    return waits.length === 0 ? undefined : Math.max(...waits);
  }

  /** Notes that one more, or with -1 one less, is under way. */
  #noteStranger(wide: readonly string[], change: 1 | -1): void {
    for (const name of wide) {
      const underWay = (this.#strangers.get(name) ?? 0) + change;
      if (underWay === 0) this.#strangers.delete(name);
      else this.#strangers.set(name, underWay);
    }
  }

  /** How long until there are fewer than `limit` in the window. */
  #wait(name: string, limit: number): number | undefined {
    const nowMs = this.#clock.now();
    const times = (this.#wrong.get(name) ?? []).filter((atMs) => atMs > nowMs - GUESS_WINDOW && atMs <= nowMs);
    const first = times.at(-limit);
    return first === undefined ? undefined : first + GUESS_WINDOW - nowMs;
  }

  #count(name: string): void {
    const nowMs = this.#clock.now();
    const times = (this.#wrong.get(name) ?? []).filter((atMs) => atMs > nowMs - GUESS_WINDOW && atMs <= nowMs);
    // The newest last, in the map too, so that the oldest are the ones to go.
    this.#wrong.delete(name);
    this.#wrong.set(name, [...times, nowMs].slice(-GUESSES_OF_STRANGERS));
    for (const [oldest, before] of this.#wrong) {
      const last = before.at(-1) ?? 0;
      if (this.#wrong.size <= REMEMBERED && last > nowMs - GUESS_WINDOW && last <= nowMs) break;
      this.#wrong.delete(oldest);
    }
  }

  #know(pair: string): void {
    this.#known.delete(pair);
    this.#known.add(pair);
    for (const oldest of this.#known) {
      if (this.#known.size <= KNOWN_REMEMBERED) break;
      this.#known.delete(oldest);
    }
  }
}

/** As long for a name of 10,000 letters as for one of three: very many are remembered. */
function shortName(...parts: readonly (number | string)[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64');
}
