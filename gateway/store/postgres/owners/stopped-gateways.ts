/**
 * Which other gateways have stopped, by their beats, numbers that each of them renews every second (beats.ts). One has
 * stopped if this gateway has seen the same beat of it for five seconds. Three are enough if the server has also lost
 * its connection, which it notices at once when a process dies, but not when a machine does.
 *
 * This gateway may be the one in trouble, or the database. So it judges others only while its own beats come without a
 * gap, and by their connections only once its own has lasted for five seconds: when a server restarts, all connections
 * are lost.
 */
import { type Milliseconds, Seconds } from '../../../../proto/clock.js';
import { CRASHED_AFTER } from '../node-claim.js';

/** For how long a beat must stay the same, and one's own beats and connection must have lasted. */
const LEASE = Seconds(5);
/** A longer time between two own beats is a gap. */
const MAX_GAP = Seconds(2);

/** Another gateway's beat. */
export interface OtherBeat {
  readonly slot: number;
  readonly epoch: number;
  /** The beat, as PostgreSQL's text, which has all digits of the time. */
  readonly at: string;
}

interface SeenBeat extends OtherBeat {
  /** When it was first seen (monotonic). */
  readonly sinceMs: Milliseconds;
}

/** Those that have stopped, and others that have if they are not connected any more. */
export interface Silent {
  readonly stopped: readonly OtherBeat[];
  readonly stoppedIfLost: readonly OtherBeat[];
}

const NOBODY: Silent = { stopped: [], stoppedIfLost: [] };

/** All times are monotonic. */
export class StoppedGateways {
  /** By slot. */
  #seen: ReadonlyMap<number, SeenBeat> = new Map();
  #lastOwnMs: Milliseconds = Number.NEGATIVE_INFINITY;
  /** Since when the own beats came without a gap. */
  #steadySinceMs: Milliseconds = Number.POSITIVE_INFINITY;
  /** Since when the own connection has lasted. */
  #connectedSinceMs: Milliseconds;

  constructor(nowMs: Milliseconds) {
    this.#connectedSinceMs = nowMs;
  }

  /** This gateway has opened its connection anew. */
  reconnected(nowMs: Milliseconds): void {
    this.#connectedSinceMs = nowMs;
  }

  /** This gateway has stored a beat. */
  beaten(nowMs: Milliseconds): void {
    if (nowMs - this.#lastOwnMs > MAX_GAP) this.#steadySinceMs = nowMs;
    this.#lastOwnMs = nowMs;
  }

  /** @param others the beats of all other gateways, as they were just read */
  judge(others: readonly OtherBeat[], nowMs: Milliseconds): Silent {
    this.#seen = new Map(others.map((other) => [other.slot, this.#seenBefore(other) ?? { ...other, sinceMs: nowMs }]));
    if (nowMs - this.#steadySinceMs < LEASE) return NOBODY;
    const silentFor = (limitMs: Milliseconds): OtherBeat[] =>
      others.filter(({ slot }) => nowMs - (this.#seen.get(slot)?.sinceMs ?? nowMs) >= limitMs);
    const stopped = silentFor(LEASE);
    const stoppedIfLost = silentFor(CRASHED_AFTER).filter((other) => !stopped.includes(other));
    return { stopped, stoppedIfLost: nowMs - this.#connectedSinceMs < LEASE ? [] : stoppedIfLost };
  }

  #seenBefore({ slot, epoch, at }: OtherBeat): SeenBeat | undefined {
    const seen = this.#seen.get(slot);
    return seen?.epoch === epoch && seen.at === at ? seen : undefined;
  }
}
