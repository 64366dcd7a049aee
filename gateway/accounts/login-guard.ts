/**
 * Limits password guessing (quality.md §2, brute force). Wrong guesses are counted for each pair of account and client
 * address: at most ten in any five minutes. So an attacker blocks only their own attempts: the owner logs in from
 * another address, and people behind the attacker's address log in to other accounts.
 *
 * Two wider limits apply to strangers, which are addresses from which nobody has logged in to the account before: one
 * for each account, against many addresses that guess at it, and one for each address, against a few guesses at each of
 * many accounts of a merchant.
 *
 * All addresses of an IPv6 /64 count as one (network/address-group.ts). Guesses at accounts that don't exist count too.
 * Attempts of one pair run one after another, because concurrent attempts would all pass before the first is counted.
 */
import { createHash } from 'node:crypto';
import { type Clock, type Milliseconds, Minutes, Seconds } from '../../proto/clock.js';
import { addressGroup } from '../network/address-group.js';
import type { Signal, Signals } from '../store/contract/slots/signals.js';

/** Maximum wrong guesses at an account from one address in a {@link GUESS_WINDOW}. */
export const MAX_GUESSES = 10;
export const GUESS_WINDOW: Milliseconds = Minutes(5);
/**
 * Maximum wrong guesses in a window at one account from all strangers, and from one address at all accounts of a
 * merchant to which it is a stranger. It is high because many people share an address, and some of them mistype.
 */
export const MAX_STRANGER_GUESSES = 100;
/**
 * Maximum number of accounts, addresses and pairs with wrong guesses that are held in memory. A guess adds three, so
 * this is more than the three threads that compare passwords can check in a window. Beyond it the oldest are dropped;
 * expired ones are dropped earlier.
 */
const MAX_COUNTERS = 200_000;
/** Maximum number of attempts of one pair that wait for each other; the gateway refuses further ones for a second. */
const MAX_QUEUED_PER_PAIR = 1_000;
/** Pairs with a successful login that are held in memory; beyond it the oldest are dropped. */
const MAX_KNOWN_PAIRS = 50_000;

type Guarded = Extract<Signal, { type: 'guess' }>['guarded'];

/** A login attempt whose turn it is. The caller must report the result with `end`. */
export interface Attempt {
  /** How long the client must wait; undefined if the password may be checked. */
  readonly retryAfterMs: number | undefined;
  /**
   * Reports the result and lets the pair's next attempt start. Must always be called. `undecided`: the password or
   * token was not compared, such as after an error, and the attempt does not count.
   */
  readonly end: (result: 'right' | 'wrong' | 'undecided') => void;
}

export class LoginGuard {
  readonly #clock: Clock;
  readonly #guarded: Guarded;
  readonly #signals: Signals;
  /** When wrong guesses were made, by the key of the account, the address and the pair; oldest first. */
  readonly #wrongAtMs = new Map<string, number[]>();
  /** Pairs with a successful login. */
  readonly #knownPairs = new Set<string>();
  /** For each pair with attempts under way: the last attempt's completion, and the number of attempts. */
  readonly #queues = new Map<string, { last: Promise<void>; count: number }>();

  /** The number of strangers' attempts under way, by the key of the account and of the address. */
  readonly #strangersUnderWay = new Map<string, number>();

  /**
   * @param guarded what is guessed at: guesses at one are not counted at the other
   * @param signals tells other gateways that share the store of wrong guesses, and this one of theirs: the limits are
   *   for all gateways together
   */
  constructor(clock: Clock, guarded: Guarded, signals: Signals) {
    this.#clock = clock;
    this.#guarded = guarded;
    this.#signals = signals;
    signals.onSignal((signal) => {
      if (signal.type === 'guess' && signal.guarded === guarded) for (const key of signal.keys) this.#countWrong(key);
    });
  }

  /** Resolves when the earlier attempts at this account from this address have ended. */
  async begin(merchantId: number, username: string, address: string): Promise<Attempt> {
    const group = addressGroup(address);
    const pair = hashedKey('pair', merchantId, username, group);
    const sharedKeys = [hashedKey('account', merchantId, username), hashedKey('address', merchantId, group)];
    const queue = this.#queues.get(pair) ?? { last: Promise.resolve(), count: 0 };
    if (queue.count >= MAX_QUEUED_PER_PAIR) return { retryAfterMs: Seconds(1), end: () => undefined };
    const previous = queue.last;
    let done: () => void = () => undefined;
    queue.last = new Promise<void>((resolve) => {
      done = resolve;
    });
    queue.count += 1;
    this.#queues.set(pair, queue);
    await previous;
    const isKnown = this.#knownPairs.has(pair);
    const retryAfterMs = this.#waitMs(pair, MAX_GUESSES) ?? (isKnown ? undefined : this.#strangersWaitMs(sharedKeys));
    const isStranger = retryAfterMs === undefined && !isKnown;
    if (isStranger) this.#noteStranger(sharedKeys, 1);
    const end = (result: 'right' | 'wrong' | 'undecided'): void => {
      if (isStranger) this.#noteStranger(sharedKeys, -1);
      // A mistyped password of a known pair does not count against the account or the address.
      if (result === 'wrong') this.#noteWrong(isKnown ? [pair] : [pair, ...sharedKeys]);
      if (result === 'right') this.#addKnown(pair);
      queue.count -= 1;
      if (queue.count === 0) this.#queues.delete(pair);
      done();
    };
    return { retryAfterMs, end };
  }

  /**
   * How long a stranger must wait for the limits of the account and the address; undefined if not at all. Strangers'
   * attempts under way count as wrong: otherwise all attempts sent at once would pass.
   */
  #strangersWaitMs(sharedKeys: readonly string[]): number | undefined {
    const waits = sharedKeys.flatMap((key) => {
      const underWay = this.#strangersUnderWay.get(key) ?? 0;
      if (underWay >= MAX_STRANGER_GUESSES) return [Seconds(1)];
      return this.#waitMs(key, MAX_STRANGER_GUESSES - underWay) ?? [];
    });
    return waits.length === 0 ? undefined : Math.max(...waits);
  }

  /** Counts one attempt more or less under way. */
  #noteStranger(sharedKeys: readonly string[], change: 1 | -1): void {
    for (const key of sharedKeys) {
      const underWay = (this.#strangersUnderWay.get(key) ?? 0) + change;
      if (underWay === 0) this.#strangersUnderWay.delete(key);
      else this.#strangersUnderWay.set(key, underWay);
    }
  }

  /** How long until fewer than `limit` wrong guesses are in the window; undefined if there are fewer now. */
  #waitMs(key: string, limit: number): number | undefined {
    const nowMs = this.#clock.now();
    const times = (this.#wrongAtMs.get(key) ?? []).filter((atMs) => atMs > nowMs - GUESS_WINDOW && atMs <= nowMs);
    // When this guess leaves the window, fewer than `limit` are left.
    const leavingAtMs = times.at(-limit);
    return leavingAtMs === undefined ? undefined : leavingAtMs + GUESS_WINDOW - nowMs;
  }

  #noteWrong(keys: readonly string[]): void {
    for (const key of keys) this.#countWrong(key);
    this.#signals.send({ type: 'guess', guarded: this.#guarded, keys });
  }

  #countWrong(key: string): void {
    const nowMs = this.#clock.now();
    const times = (this.#wrongAtMs.get(key) ?? []).filter((atMs) => atMs > nowMs - GUESS_WINDOW && atMs <= nowMs);
    // Re-inserted, so that the map is ordered by the newest guess and the oldest entries come first.
    this.#wrongAtMs.delete(key);
    this.#wrongAtMs.set(key, [...times, nowMs].slice(-MAX_STRANGER_GUESSES));
    for (const [oldestKey, oldestTimes] of this.#wrongAtMs) {
      const newestMs = oldestTimes.at(-1) ?? 0;
      if (this.#wrongAtMs.size <= MAX_COUNTERS && newestMs > nowMs - GUESS_WINDOW && newestMs <= nowMs) break;
      this.#wrongAtMs.delete(oldestKey);
    }
  }

  #addKnown(pair: string): void {
    this.#knownPairs.delete(pair);
    this.#knownPairs.add(pair);
    for (const oldest of this.#knownPairs) {
      if (this.#knownPairs.size <= MAX_KNOWN_PAIRS) break;
      this.#knownPairs.delete(oldest);
    }
  }
}

/** A key of fixed length, however long the parts: very many keys are held. */
function hashedKey(...parts: readonly (number | string)[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64');
}
