/**
 * Which gateway serves which lock, URL and duty, if several gateways share a store. Each gateway writes in a *slot* of
 * its own (../log/log-position.ts). An *epoch* is one claim of a slot, by one process: a random number that never
 * returns. Whoever takes a slot over ends its epoch, and from then on the former owner's writes change nothing.
 *
 * A gateway *owns* a lock from its claim to its release. Only the owner stores what the lock sends, judges it and sends
 * it commands, so a lock's uplinks have one order and one judge. A lock and the phones that act for it are two *parts*,
 * owned apart: otherwise a phone and its lock, connected to two gateways, would take the lock from each other.
 *
 * Ownership changes in two ways only: the owner releases a part, after everything that the part sent is stored; or the
 * owner's epoch has ended for good. So one process at a time stores for a part, and its next owner reads all of it.
 *
 * `owns` and `holds` look into memory: they neither wait nor fail, so ingest may ask for every uplink. In an engine
 * with one writer they are always true, and nothing is ever claimed or released.
 */
import type { Milliseconds } from '../../../../proto/clock.js';
import type { Source } from '../../../../proto/wire/ping.js';
import type { Signals } from './signals.js';

/** A lock, or the phones that act for it. */
export interface LockPart {
  readonly deviceId: number;
  readonly source: Source;
}

/**
 * The answer to a claim. A refused claim may be granted when it is made again: the owner did not release the part in
 * time.
 */
export type Claim = GrantedClaim | { readonly isGranted: false };

/** A part that this gateway owns from now on. Its state, its marks and its commands are in the store. */
export interface GrantedClaim {
  readonly isGranted: true;
  /**
   * Until when its former owner certainly ran, by the run's clock, ms since the epoch: the lock was heard by nobody
   * since. Null if there was no gap: the owner released the part, it had none, or it was this gateway.
   */
  readonly unheardSinceMs: number | null;
}

/** A part that nobody served, and that this gateway owns now ({@link LockOwnership.adopt}). */
export interface AdoptedPart extends LockPart, Pick<GrantedClaim, 'unheardSinceMs'> {}

/** Ownership of locks and their phones. */
export interface LockOwnership {
  /** Whether this gateway owns every part from its start to its end: an engine with one writer. */
  readonly isSole: boolean;
  /** Whether this gateway owns the part. */
  owns(deviceId: number, source: Source): boolean;
  /**
   * Claims a part, before the CONNACK. An engine answers many claims at once. If another gateway owns the part, it is
   * asked to release it, which takes two seconds at most; else the claim is refused.
   *
   * @param isWanted whether somebody still waits for the part; if nobody does when its turn comes, and no owner was
   *   asked yet, the claim is refused. By default somebody always does.
   */
  claim(part: LockPart, isWanted?: () => boolean): Promise<Claim>;
  /**
   * Claims up to `limit` parts that nobody serves: those whose owner's epoch has ended, and those that this gateway
   * released and no other gateway took. An empty list if there are none.
   *
   * @param graceMs for how long this gateway must have known that the epoch has ended; also how long a released part is
   *   left to the gateway that asked for it
   */
  adopt(limit: number, graceMs: Milliseconds): Promise<readonly AdoptedPart[]>;
  /**
   * Releases parts. The caller has ended their sessions, and everything that they sent is stored with their states.
   * From the call on, this gateway does not own them, even if the promise rejects: then nobody does until the epoch
   * ends.
   */
  release(parts: readonly LockPart[]): Promise<void>;
  /**
   * Sets the listener for wishes: another gateway asks for a part, which it has two seconds to release. A wish may come
   * for a part that this gateway does not own any more.
   */
  onWish(listener: (part: LockPart) => void): void;
}

/** Ownership of webhook URLs: the owner makes their attempts and moves their cursors. */
export interface UrlOwnership {
  /** Whether this gateway owns the URL. */
  owns(urlId: number): boolean;
  /** Claims URLs. Returns those that this gateway owns now; other gateways own the others. */
  claim(urlIds: readonly number[]): Promise<readonly number[]>;
  /** Releases URLs whose workers have stopped; as {@link LockOwnership.release}. */
  release(urlIds: readonly number[]): Promise<void>;
  /** Sets the listener for wishes: another gateway is to have the URL. */
  onWish(listener: (urlId: number) => void): void;
}

/**
 * What one gateway does for all:
 *
 * - `retention`: deletes what is too old.
 * - `months`: closes ended months, that is, makes each merchant's statement, its bill.
 * - `notifications`: sends messages to operators and merchants, and follows the troubles of URLs.
 * - `leftovers`: finishes what gateways whose epoch has ended left open, such as entries of the audit log.
 */
export const DUTIES = ['retention', 'months', 'notifications', 'leftovers'] as const;
export type Duty = (typeof DUTIES)[number];

/** Which duties this gateway has. */
export interface Duties {
  /** Whether this gateway has the duty now. A duty changes its gateway only when the holder's epoch has ended. */
  holds(duty: Duty): boolean;
  /** Sets the listener for duties that this gateway gets after its start. */
  onGain(listener: (duty: Duty) => void): void;
}

/** This gateway's share of the store's work. */
export interface Ownership {
  /** The slot in which this gateway writes, for messages and figures. */
  readonly slot: number;
  readonly locks: LockOwnership;
  readonly urls: UrlOwnership;
  readonly duties: Duties;
  readonly signals: Signals;
}
