/**
 * Sabotages: stores that break a promise on purpose. They test the durability tests, each of which must fail with them.
 *
 * The sabotage with SQLite's setting synchronous NORMAL is in store/synchronous-normal.ts. It differs, since only a
 * loss of power shows it: after kill -9 nothing is lost with NORMAL or FULL (quality.md §2).
 */

import type { CommandStore } from '../../../gateway/store/contract/command-record.js';
import type { Commit } from '../../../gateway/store/contract/log/commit.js';
import { ALL_STORED } from '../../../gateway/store/contract/log/commit-result.js';
import { type LogPosition, movedAfter, SLOT_COUNT } from '../../../gateway/store/contract/log/log-position.js';
import type { StoredUplink } from '../../../gateway/store/contract/log/stored-uplink.js';
import type { EventScan, PingScan } from '../../../gateway/store/contract/merchants/uplink-scan.js';
import type { LockOwnership, Ownership } from '../../../gateway/store/contract/slots/ownership.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import type { DueDelivery } from '../../../gateway/store/contract/webhooks/delivery.js';
import type { SqlSabotageName } from './sql-sabotage.js';

/** Sabotages that break a promise about events. */
export type EventSabotageName = 'ack-first' | 'skip-event' | 'early-cursor' | 'new-ids';
/** Sabotages that break a promise about commands. */
export type CommandSabotageName = 'forget-commands' | 'new-command-ids' | 'forget-answers';
/** Sabotages that break a promise of gateways that share a database. */
export type SharingSabotageName = 'steal-locks' | 'scalar-cursor';
/** The sabotages that wrap a store; those of sql-sabotage.ts change what PostgreSQL gets. */
export type StoreSabotageName = EventSabotageName | CommandSabotageName | SharingSabotageName;
export type SabotageName = StoreSabotageName | SqlSabotageName;

/** The delay of the commit after the acknowledgement. */
const COMMIT_DELAY_MS = 150;
/** One event in this many is skipped. */
const SKIP_EVERY = 16;
/** Whether the sabotage “skip-event” lets the gateway deliver an uplink. */
const isNotSkipped = ({ id }: StoredUplink): boolean => id % SKIP_EVERY !== 0;
/** Added to command ids, which must not change. */
const ID_OFFSET = 1_000_000;

/** Each sabotage as a function that wraps a store. */
export const SABOTAGES: Readonly<Record<StoreSabotageName, (store: Store) => Store>> = {
  /** Acknowledges at once, commits a little later. */
  'ack-first': (store) =>
    withOverrides(store, {
      append: async (commit: Commit) => {
        // A failure is not reported: the uplinks are acknowledged already.
        setTimeout(() => void store.append(commit).catch(() => undefined), COMMIT_DELAY_MS);
        return ALL_STORED;
      },
    }),

  /** Never delivers some pings, to webhooks and to readers of events. */
  'skip-event': (store) =>
    withOverrides(store, {
      readEvents: async (merchantId: number, after: LogPosition, limit: number) => {
        const events = await store.readEvents(merchantId, after, limit);
        return events.filter(isNotSkipped);
      },
      scans: {
        pings: (scan: PingScan) => store.scans.pings(scan),
        events: async (scan: EventScan) => {
          const found = await store.scans.events(scan);
          return { ...found, pings: found.pings.filter(isNotSkipped) };
        },
      },
    }),

  /**
   * Moves a URL's cursor (the last event that needs no more delivery) when events are read, not when they have an
   * outcome: delivery at most once instead of at least once.
   */
  'early-cursor': (store) =>
    withOverrides(store, {
      readEvents: async (merchantId: number, after: LogPosition, limit: number) => {
        const events = await store.readEvents(merchantId, after, limit);
        const last = events.at(-1);
        const cursor = last && movedAfter(after, last.id);
        const urls = (await store.listWebhookUrls()).filter((url) => url.merchantId === merchantId);
        if (cursor !== undefined)
          await store.recordProgress(urls.map(({ id: urlId }) => ({ urlId, attempts: [], cursor })));
        return events;
      },
    }),

  /** Gives an event another id after each start. */
  'new-ids': (store) => {
    const renamed = (uplink: StoredUplink): StoredUplink => {
      const digest = Buffer.from(uplink.digest);
      // An event's id has its uplink's digest, and each start is another process.
      digest.writeUInt32BE(process.pid);
      return { ...uplink, digest };
    };
    return withOverrides(store, {
      readEvents: async (...args: Parameters<Store['readEvents']>) => (await store.readEvents(...args)).map(renamed),
      readDueDeliveries: async (...args: Parameters<Store['readDueDeliveries']>): Promise<DueDelivery[]> =>
        (await store.readDueDeliveries(...args)).map((due) => ({ ...due, uplink: renamed(due.uplink) })),
    });
  },

  /** Forgets unanswered commands at a restart. */
  'forget-commands': (store) => withCommandOverrides(store, { readUnfinished: async () => [] }),

  /** Sends unanswered commands again with another id after a restart, although the store would refuse such an id. */
  'new-command-ids': (store) => {
    const renamed = withCommandOverrides(store, {
      readUnfinished: async () =>
        (await store.commands.readUnfinished()).map((record) => {
          return record.state === 'sent' ? { ...record, id: record.id + ID_OFFSET } : record;
        }),
    });
    return withOverrides(renamed, {
      append: (commit: Commit) =>
        store.append({ ...commit, commands: (commit.commands ?? []).filter(({ id }) => id < ID_OFFSET) }),
    });
  },

  /** Serves each lock that connects, without asking the gateway that owns it, and never gives one away. */
  'steal-locks': (store) => {
    const { locks } = store.ownership;
    const stolen = new Set<number>();
    const stealing: LockOwnership = {
      isSole: false,
      owns: (deviceId) => stolen.has(deviceId),
      claim: async ({ deviceId }) => {
        stolen.add(deviceId);
        return { isGranted: true, unheardSinceMs: null };
      },
      adopt: async () => [],
      release: (parts) => locks.release(parts),
      onWish: () => undefined,
    };
    return withOverrides(store, { ownership: { ...ownershipOf(store), locks: stealing } });
  },

  /** Reads on from one id for all slots, as if events were committed in the order of their ids. */
  'scalar-cursor': (store) =>
    withOverrides(store, {
      readEvents: (merchantId: number, after: LogPosition, limit: number) => {
        const highest = Math.max(0, ...after.values());
        const scalar = new Map(Array.from({ length: SLOT_COUNT }, (_, slot) => [slot, highest]));
        return store.readEvents(merchantId, scalar, limit);
      },
    }),

  /** Stores the uplink with an answer, but not the answer. */
  'forget-answers': (store) =>
    withOverrides(store, {
      append: (commit: Commit) =>
        store.append({ ...commit, commands: (commit.commands ?? []).filter(({ type }) => type === 'sent') }),
    }),
};

/** A copy of a store's ownership that can be spread: its parts may be getters of a class, which a spread leaves out. */
function ownershipOf({ ownership: { slot, locks, urls, duties, signals } }: Store): Ownership {
  return { slot, locks, urls, duties, signals };
}

/** Returns a store with changed methods for commands. */
function withCommandOverrides(store: Store, changed: Partial<CommandStore>): Store {
  return withOverrides(store, { commands: withOverrides(store.commands, changed) });
}

/** Returns a store with some methods replaced. */
export function withOverrides<T extends object>(store: T, changed: Partial<T>): T {
  return new Proxy(store, {
    get: (target, name) => {
      const replaced = (changed as Record<string | symbol, unknown>)[name];
      if (replaced !== undefined) return replaced;
      const original = Reflect.get(target, name, target) as unknown;
      return typeof original === 'function' ? original.bind(target) : original;
    },
  });
}
