/** Collects what one commit makes durable, and what is to be announced after it. */
import type { Presence } from '../../proto/power/judge/presence.js';
import type { KnownLock } from '../locks/locks.js';
import { type NextPhases, nextPhase } from '../phase.js';
import type { CommandChange } from '../store/contract/command-record.js';
import type { Commit, Incoming, IncomingUplink, Judged } from '../store/contract/store.js';
import type { Judgeable } from './ingest-queue.js';

/** Numbers the drafts, so that a lock knows whether the current one has touched it already. */
let drafts = 0;

/** A lock's presence as of a commit, to be announced after it where it changed. */
export interface PresenceChange {
  readonly lock: KnownLock;
  readonly presence: Presence;
}

/**
 * The life of a commit:
 *
 * - `open`: uplinks and events are judged into it.
 * - `writing`: the store is making it durable. It no longer changes.
 * - `stored`: it is durable. Its uplinks are acknowledged.
 * - `failed`: it could not be stored, the store could not be read while judging into it, or the commit before it
 *   failed. None of its uplinks is acknowledged.
 */
export type DraftPhase = 'open' | 'writing' | 'stored' | 'failed';

const NEXT_PHASES: NextPhases<DraftPhase> = {
  open: ['writing', 'failed'],
  writing: ['stored', 'failed'],
  stored: [],
  failed: [],
};

export class CommitDraft {
  readonly #number = ++drafts;
  /** What was judged for it, in order: answered and announced when the commit is durable. */
  readonly batch: Judgeable[] = [];
  readonly incoming: Incoming[] = [];
  readonly judged: Judged[] = [];
  readonly commands: CommandChange[] = [];
  /** The locks whose state may have changed. */
  readonly touched: KnownLock[] = [];
  /** Those of them whose state must be written with it, since replaying the log would not lead to it. */
  readonly changed = new Set<KnownLock>();
  /** The merchants whose webhook URLs have something to send. */
  readonly merchantIds = new Set<number>();
  /** The locks whose states it writes. */
  written: readonly KnownLock[] = [];
  /** The presence of its locks as of this commit, where it may have changed. */
  readonly presences: PresenceChange[] = [];
  /** How many of `incoming` are uplinks. */
  uplinks = 0;
  /** New uplinks by key, which the store does not have yet. Only built when it is needed. */
  #byKey: Map<string, IncomingUplink[]> | undefined;
  #lastMerchantId = -1;
  #phase: DraftPhase = 'open';
  #error: Error | undefined;

  get phase(): DraftPhase {
    return this.#phase;
  }

  /** Why it failed; undefined where it has not. */
  get error(): Error | undefined {
    return this.#error;
  }

  /** It is stored; or, with an `error`, it has failed. */
  end(error?: Error): void {
    this.#enter(error === undefined ? 'stored' : 'failed');
    this.#error = error;
  }

  #enter(phase: DraftPhase): void {
    this.#phase = nextPhase('a commit', NEXT_PHASES, this.#phase, phase);
  }

  /** The lock's state may have changed. */
  touch(lock: KnownLock): void {
    if (lock.touchedBy === this.#number) return;
    lock.touchedBy = this.#number;
    this.touched.push(lock);
  }

  /** Adds an uplink for the log. */
  add(uplink: IncomingUplink): void {
    this.incoming.push(uplink);
    this.uplinks += 1;
    if (this.#byKey !== undefined) this.#index(uplink);
    if (uplink.merchantId === this.#lastMerchantId) return;
    this.#lastMerchantId = uplink.merchantId;
    this.merchantIds.add(uplink.merchantId);
  }

  /** The digests of its uplinks with this key. */
  digestsOf(credentialId: number, boot: number, sequence: number): Buffer[] {
    return this.withKey(credentialId, boot, sequence).map(({ digest }) => digest);
  }

  /** Its uplinks with this key. */
  withKey(credentialId: number, boot: number, sequence: number): readonly IncomingUplink[] {
    if (this.#byKey === undefined) {
      this.#byKey = new Map();
      for (const item of this.incoming) if (item.type === 'uplink') this.#index(item);
    }
    return this.#byKey.get(keyOf(credentialId, boot, sequence)) ?? [];
  }

  #index(uplink: IncomingUplink): void {
    const key = keyOf(uplink.credentialId, uplink.boot, uplink.sequence);
    const same = this.#byKey?.get(key);
    if (same === undefined) this.#byKey?.set(key, [uplink]);
    else same.push(uplink);
  }

  /** Closes the draft. Returns what the store is to write, dirty states of the `flushed` locks included. */
  commit(flushed: readonly KnownLock[]): Commit {
    this.#enter('writing');
    const { incoming, judged, commands } = this;
    const states = new Map<number, string>();
    this.written = [...new Set([...this.changed, ...flushed])].filter(({ isTorn }) => !isTorn);
    for (const lock of this.written) states.set(lock.deviceId, JSON.stringify(lock.state));
    return { incoming, judged, states, commands };
  }
}

function keyOf(credentialId: number, boot: number, sequence: number): string {
  return `${credentialId}/${boot}/${sequence}`;
}
