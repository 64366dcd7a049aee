/**
 * The draft of one commit: collects what the commit stores and what is announced after the commit (ingest/README.md).
 *
 * The judge (proto/power/judge) checks each uplink and each other event of a lock against the protocol's rules. It
 * changes the lock's state and returns findings: broken rules. A draft only collects the results; it neither judges nor
 * writes.
 */
import type { Presence } from '../../proto/power/judge/presence.js';
import type { KnownLock } from '../locks/locks.js';
import { type NextPhases, nextPhase } from '../phase.js';
import type { CommandChange } from '../store/contract/command-record.js';
import type { Commit, Incoming, IncomingUplink, Judged } from '../store/contract/log/commit.js';
import type { CommitResult } from '../store/contract/log/commit-result.js';
import type { NewMerchantEvent } from '../store/contract/webhooks/merchant-event.js';
import type { Judgeable, QueuedEvent } from './ingest-queue.js';
import type { PendingUplink } from './pending-uplink.js';

/** Maximum number of uplinks and events in one commit: limits how long the event loop is blocked. */
export const MAX_COMMIT_ITEMS = 2_000;

/** Numbers the drafts. A lock records the number of the last draft that touched it. */
let draftCount = 0;

const NO_EVENTS: readonly QueuedEvent[] = [];

/** A lock's presence as of a commit. It is announced after the commit if it changed. */
export interface PresenceChange {
  readonly lock: KnownLock;
  readonly presence: Presence;
}

/**
 * The phases of a draft:
 *
 * - `open`: uplinks and events are judged and added to it.
 * - `writing`: the store is writing it. It no longer changes.
 * - `stored`: it is on disk. Its uplinks are acknowledged.
 * - `failed`: it could not be stored, the store could not be read while it was open, or the previous commit failed.
 *   None of its uplinks is acknowledged.
 */
export type DraftPhase = 'open' | 'writing' | 'stored' | 'failed';

const NEXT_PHASES: NextPhases<DraftPhase> = {
  open: ['writing', 'failed'],
  writing: ['stored', 'failed'],
  stored: [],
  failed: [],
};

export class CommitDraft {
  readonly #number = ++draftCount;
  /** The judged items in order: answered and announced when the commit is on disk. */
  readonly batch: Judgeable[] = [];
  /** The uplinks, quarantined messages and events that the commit adds to the store's log. */
  readonly incoming: Incoming[] = [];
  /** The judge's findings, and earlier findings that it withdrew. */
  readonly judged: Judged[] = [];
  /** Commands that were sent or acknowledged. */
  readonly commands: CommandChange[] = [];
  /** For each of these commands, the event or the uplink that changes it. */
  readonly #commandItems: (QueuedEvent | PendingUplink)[] = [];
  /** Events for merchants about the touched locks. Set when the draft is closed. */
  readonly merchantEvents: NewMerchantEvent[] = [];
  /** The locks whose state may have changed. */
  readonly touched: KnownLock[] = [];
  /** The touched locks whose state must be in the commit, since replaying the log would not reproduce it. */
  readonly changed = new Set<KnownLock>();
  /** The merchants of the uplinks. Their webhook workers are woken after the commit. */
  readonly merchantIds = new Set<number>();
  /** The locks whose states the commit writes. Set when the draft is closed. */
  written: readonly KnownLock[] = [];
  /** The presences of the touched locks, as of this commit. */
  readonly presences: PresenceChange[] = [];
  /** The number of uplinks in `incoming`. */
  uplinkCount = 0;
  /** The uplinks of `incoming` by key. Built when first needed. */
  #byKey: Map<string, IncomingUplink[]> | undefined;
  /** Saves a lookup in `merchantIds` when consecutive uplinks have the same merchant. */
  #lastMerchantId = -1;
  #phase: DraftPhase = 'open';
  #error: Error | undefined;
  #unsentCommands: readonly QueuedEvent[] = NO_EVENTS;

  get phase(): DraftPhase {
    return this.#phase;
  }

  /** Why the draft failed; undefined if it has not. */
  get error(): Error | undefined {
    return this.#error;
  }

  /** The sendings of commands that the store refused: these commands must not be sent. */
  get unsentCommands(): readonly QueuedEvent[] {
    return this.#unsentCommands;
  }

  /** Marks the draft as stored, and its items as refused or repeated where the store says so. */
  stored({ refusedCommands, repeatedUplinks }: CommitResult): void {
    this.#enter('stored');
    // The store names items by their indexes in `incoming`; only uplinks can be repeated.
    for (const index of repeatedUplinks) (this.incoming[index] as PendingUplink).novelty = 'repeat';
    if (refusedCommands.length === 0) return;
    const refused = refusedCommands.map((index) => this.#commandItems[index] as QueuedEvent | PendingUplink);
    for (const item of refused) item.isRefused = true;
    this.#unsentCommands = refused.filter((item) => item.type === 'event');
  }

  /** Marks the draft as failed. */
  fail(error: Error): void {
    this.#enter('failed');
    this.#error = error;
  }

  #enter(phase: DraftPhase): void {
    this.#phase = nextPhase('a commit', NEXT_PHASES, this.#phase, phase);
  }

  /** Notes that the lock's state may have changed. */
  touch(lock: KnownLock): void {
    if (lock.lastDraftNumber === this.#number) return;
    lock.lastDraftNumber = this.#number;
    this.touched.push(lock);
  }

  /** Adds a change of a command, which `item` causes. */
  changeCommand(change: CommandChange, item: QueuedEvent | PendingUplink): void {
    this.commands.push(change);
    this.#commandItems.push(item);
  }

  /** Adds an uplink for the log. */
  add(uplink: IncomingUplink): void {
    this.incoming.push(uplink);
    this.uplinkCount += 1;
    if (this.#byKey !== undefined) this.#index(uplink);
    if (uplink.merchantId === this.#lastMerchantId) return;
    this.#lastMerchantId = uplink.merchantId;
    this.merchantIds.add(uplink.merchantId);
  }

  /** The digests of the draft's uplinks with this key. */
  digestsOf(credentialId: number, boot: number, sequence: number): Buffer[] {
    return this.withKey(credentialId, boot, sequence).map(({ digest }) => digest);
  }

  /** The draft's uplinks with this key. */
  withKey(credentialId: number, boot: number, sequence: number): readonly IncomingUplink[] {
    if (this.#byKey === undefined) {
      this.#byKey = new Map();
      for (const item of this.incoming) if (item.type === 'uplink') this.#index(item);
    }
    return this.#byKey.get(keyOf(credentialId, boot, sequence)) ?? [];
  }

  #index(uplink: IncomingUplink): void {
    const key = keyOf(uplink.credentialId, uplink.boot, uplink.sequence);
    const sameKey = this.#byKey?.get(key);
    if (sameKey === undefined) this.#byKey?.set(key, [uplink]);
    else sameKey.push(uplink);
  }

  /**
   * Closes the draft. Returns what the store must write, including the states of the `dirtyLocks`, which are newer than
   * the stored states. Leaves out torn states: the judge threw while it was changing them.
   */
  close(dirtyLocks: readonly KnownLock[]): Commit {
    this.#enter('writing');
    const { incoming, judged, commands, merchantEvents } = this;
    const states = new Map<number, string>();
    this.written = [...new Set([...this.changed, ...dirtyLocks])].filter(({ isTorn }) => !isTorn);
    for (const lock of this.written) states.set(lock.deviceId, JSON.stringify(lock.state));
    return { incoming, judged, states, commands, merchantEvents };
  }
}

function keyOf(credentialId: number, boot: number, sequence: number): string {
  return `${credentialId}/${boot}/${sequence}`;
}
