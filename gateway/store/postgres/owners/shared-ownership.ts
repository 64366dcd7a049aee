/**
 * This gateway's share of a database that several gateways use, and the loops that keep it: beats, regular signs of
 * life in the database, and the search for other gateways' wishes.
 */
import { Seconds, systemClock, type Timer } from '../../../../proto/clock.js';
import type { Ownership } from '../../contract/slots/ownership.js';
import type { Connections } from '../connections/connections.js';
import type { CommitLog } from '../log/commit-log.js';
import type { Claim } from '../node-claim.js';
import type { Writes } from '../writes.js';
import { Beats } from './beats.js';
import { DutyClaims } from './duty-claims.js';
import { LockClaims } from './lock-claims.js';
import { SignalLink } from './signal-link.js';
import { UrlClaims } from './url-claims.js';

/** How often this gateway looks whether another one wishes for one of its locks. */
const WISH_INTERVAL = Seconds(0.2);

export interface SharedOwnershipParts {
  readonly connections: Connections;
  readonly claim: Claim;
  readonly writes: Writes;
  readonly commits: CommitLog;
  readonly onTrouble: (why: string) => void;
}

export class SharedOwnership implements Ownership {
  readonly slot: number;
  readonly locks: LockClaims;
  readonly urls: UrlClaims;
  readonly duties: DutyClaims;
  readonly signals: SignalLink;
  /** Up to when this gateway has added its counts of usage, ms since the epoch; each beat stores it. */
  countedThroughMs = 0;
  readonly #beats: Beats;
  #timer: Timer | undefined;
  #looking: Promise<void> = Promise.resolve();
  #isStopped = false;

  private constructor({ connections, claim, writes, commits, onTrouble }: SharedOwnershipParts) {
    const sql = connections.read;
    this.slot = claim.slot;
    this.locks = new LockClaims({ sql, writes, claim, onClaim: (deviceIds) => commits.forgetLocks(deviceIds) });
    this.urls = new UrlClaims(sql, writes, claim);
    this.duties = new DutyClaims(sql, writes, claim);
    this.signals = new SignalLink(connections, claim.slot);
    const countedThroughMs = (): number => this.countedThroughMs;
    const onBeat = (): Promise<void> => this.duties.takeFree();
    this.#beats = new Beats({ connections, claim, time: commits.time, countedThroughMs, onTrouble, onBeat });
  }

  /** Takes free duties, and begins to beat. */
  static async start(parts: SharedOwnershipParts): Promise<SharedOwnership> {
    const ownership = new SharedOwnership(parts);
    // Before anything is read: what is changed from then on is signalled.
    await ownership.signals.start();
    await ownership.duties.takeFree();
    ownership.#beats.start();
    ownership.#lookLater();
    return ownership;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#looking;
    await this.#beats.stop();
    await this.signals.stop();
  }

  #lookLater(): void {
    if (this.#isStopped) return;
    this.#timer = systemClock.after(WISH_INTERVAL, () => {
      // A failure is reported by the beats.
      this.#looking = this.locks
        .lookForWishes()
        .catch(() => undefined)
        .then(() => this.#lookLater());
    });
  }
}
