/** A commit in the making, and what is to be told once it is made: what the ingest collects of a batch. */
import type { KnownLock } from './locks.js';
import type { CommandChange } from './store/command-record.js';
import type { Commit, Incoming, Judged } from './store/store.js';

export interface CommitDraft {
  readonly incoming: Incoming[];
  readonly judged: Judged[];
  readonly commands: CommandChange[];
  /** Those of which something is believed anew. */
  readonly touched: Set<KnownLock>;
  /** Digests of new uplinks by their names: the store does not have them yet. */
  readonly digests: Map<string, Buffer[]>;
  /** Whose URLs have something to send. */
  readonly merchantIds: Set<number>;
  /** In order; to be called when it is on the disk, and never where it could not be made so. */
  readonly announcements: (() => void)[];
}

/** An empty one. */
export function newDraft(): CommitDraft {
  return {
    incoming: [],
    judged: [],
    commands: [],
    touched: new Set(),
    digests: new Map(),
    merchantIds: new Set(),
    announcements: [],
  };
}

/** What the store is to make durable of it, with the state that each touched lock is in by now. */
export function commitOf({ incoming, judged, commands, touched }: CommitDraft): Commit {
  const states = new Map<number, string>();
  for (const lock of touched) states.set(lock.deviceId, JSON.stringify(lock.state));
  return { incoming, judged, states, commands };
}
