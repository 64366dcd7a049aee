/** A commit in the making, and what is to be told once it is made: what the ingest collects of a batch. */
import type { Presence } from '../../proto/power/judge/presence.js';
import type { KnownLock } from '../locks/locks.js';
import type { CommandChange } from '../store/contract/command-record.js';
import type { Commit, Incoming, IncomingUplink, Judged } from '../store/contract/store.js';
import type { Judgeable } from './ingest-queue.js';

/** Tells drafts apart for a lock, which may live on long after one is gone. */
let drafts = 0;

/** What is to be told of a lock's presence. */
export interface PresenceNews {
  readonly lock: KnownLock;
  readonly presence: Presence;
}

export class CommitDraft {
  readonly #number = ++drafts;
  /** What was judged for it, in order: it is answered and told of when the commit is made. */
  readonly batch: Judgeable[] = [];
  /** Why it can't become a commit. */
  error: Error | undefined;
  readonly incoming: Incoming[] = [];
  readonly judged: Judged[] = [];
  readonly commands: CommandChange[] = [];
  /** Those of which something is believed anew. */
  readonly touched: KnownLock[] = [];
  /** Those of them whose state has to be written with it, since their log alone does not lead to it. */
  readonly changed = new Set<KnownLock>();
  /** Whose URLs have something to send. */
  readonly merchantIds = new Set<number>();
  /** Of the states that it writes. */
  settled: readonly KnownLock[] = [];
  /** What its locks' presence is as of this commit, where that may be news. */
  readonly presences: PresenceNews[] = [];
  /** How many of `incoming` are uplinks. */
  uplinks = 0;
  /** New uplinks by their names; only made where somebody looks for one. The store does not have them yet. */
  #named: Map<string, IncomingUplink[]> | undefined;
  #lastMerchantId = -1;

  /** Something is believed anew of the lock. */
  touch(lock: KnownLock): void {
    if (lock.touchedBy === this.#number) return;
    lock.touchedBy = this.#number;
    this.touched.push(lock);
  }

  /** An uplink for the log. */
  add(uplink: IncomingUplink): void {
    this.incoming.push(uplink);
    this.uplinks += 1;
    if (this.#named !== undefined) this.#name(uplink);
    if (uplink.merchantId === this.#lastMerchantId) return;
    this.#lastMerchantId = uplink.merchantId;
    this.merchantIds.add(uplink.merchantId);
  }

  /** The digests of its uplinks that have this name. */
  digestsOf(credentialId: number, boot: number, sequence: number): Buffer[] {
    return this.named(credentialId, boot, sequence).map(({ digest }) => digest);
  }

  /** Its uplinks that have this name. */
  named(credentialId: number, boot: number, sequence: number): readonly IncomingUplink[] {
    if (this.#named === undefined) {
      this.#named = new Map();
      for (const item of this.incoming) if (item.type === 'uplink') this.#name(item);
    }
    return this.#named.get(nameOf(credentialId, boot, sequence)) ?? [];
  }

  #name(uplink: IncomingUplink): void {
    const name = nameOf(uplink.credentialId, uplink.boot, uplink.sequence);
    const same = this.#named?.get(name);
    if (same === undefined) this.#named?.set(name, [uplink]);
    else same.push(uplink);
  }

  /** What the store is to make durable: with the states that must be, and those whose turn it is. */
  commit(slice: readonly KnownLock[]): Commit {
    const { incoming, judged, commands } = this;
    const states = new Map<number, string>();
    this.settled = [...new Set([...this.changed, ...slice])].filter(({ isTorn }) => !isTorn);
    for (const lock of this.settled) states.set(lock.deviceId, JSON.stringify(lock.state));
    return { incoming, judged, states, commands };
  }
}

function nameOf(credentialId: number, boot: number, sequence: number): string {
  return `${credentialId}/${boot}/${sequence}`;
}
