/**
 * Stores that break a promise on purpose. A durability test that stays green with one of them proves nothing.
 *
 * There is none for synchronous NORMAL: what was written survives the process, so kill -9 can't tell it from FULL; only
 * a loss of power can (quality.md §2), and that has its sabotage in synchronous-normal.ts.
 */
import type { CommandStore } from '../../../gateway/store/contract/command-record.js';
import type { Commit, DueDelivery, Store, StoredUplink } from '../../../gateway/store/contract/store.js';

/** Those that break a promise about events. */
export type EventSabotageName = 'ack-first' | 'skip-event' | 'early-cursor' | 'new-ids';
/** Those that break one about commands. */
export type CommandSabotageName = 'forget-commands' | 'new-command-ids' | 'forget-answers';
export type SabotageName = EventSabotageName | CommandSabotageName;

/** How long the commit comes after the acknowledgement. */
const COMMIT_DELAY_MS = 150;
/** One event of so many is left out. */
const SKIPPED_SHARE = 16;
/** Added to ids that must not change. */
const OTHER_IDS = 1_000_000;

export const SABOTAGES: Readonly<Record<SabotageName, (store: Store) => Store>> = {
  /** Acknowledges at once, commits a little later. */
  'ack-first': (store) =>
    overriding(store, {
      append: async (commit: Commit) => {
        setTimeout(() => void store.append(commit).catch(() => undefined), COMMIT_DELAY_MS);
      },
    }),

  /** Some pings never become a delivery. */
  'skip-event': (store) =>
    overriding(store, {
      readEvents: async (merchantId: number, afterId: number, limit: number) => {
        const events = await store.readEvents(merchantId, afterId, limit);
        return events.filter(({ id }) => id % SKIPPED_SHARE !== 0);
      },
    }),

  /** The cursor passes events when they are read, not when they have an outcome: at most once instead of at least. */
  'early-cursor': (store) =>
    overriding(store, {
      readEvents: async (merchantId: number, afterId: number, limit: number) => {
        const events = await store.readEvents(merchantId, afterId, limit);
        const cursor = events.at(-1)?.id;
        const urls = (await store.listWebhookUrls()).filter((url) => url.merchantId === merchantId);
        if (cursor !== undefined)
          await store.recordProgress(urls.map(({ id: urlId }) => ({ urlId, attempts: [], cursor })));
        return events;
      },
    }),

  /** An event's id is another one after each start. */
  'new-ids': (store) => {
    const renamed = (uplink: StoredUplink): StoredUplink => {
      const digest = Buffer.from(uplink.digest);
      digest.writeUInt32BE(process.pid);
      return { ...uplink, digest };
    };
    return overriding(store, {
      readEvents: async (...args: Parameters<Store['readEvents']>) => (await store.readEvents(...args)).map(renamed),
      readDueDeliveries: async (...args: Parameters<Store['readDueDeliveries']>): Promise<DueDelivery[]> =>
        (await store.readDueDeliveries(...args)).map((due) => ({ ...due, uplink: renamed(due.uplink) })),
    });
  },

  /** What was not answered is forgotten at a restart. */
  'forget-commands': (store) => withCommands(store, { readUnfinished: async () => [] }),

  /** What was sent and not answered is sent again under another id after a restart. */
  'new-command-ids': (store) =>
    withCommands(store, {
      readUnfinished: async () =>
        (await store.commands.readUnfinished()).map((record) => {
          return record.state === 'sent' ? { ...record, id: record.id + OTHER_IDS } : record;
        }),
    }),

  /** The uplink with the answer is stored, the answer is not. */
  'forget-answers': (store) =>
    overriding(store, {
      append: (commit: Commit) =>
        store.append({ ...commit, commands: (commit.commands ?? []).filter(({ type }) => type === 'sent') }),
    }),
};

/** A store of which something about commands is different. */
function withCommands(store: Store, changed: Partial<CommandStore>): Store {
  return overriding(store, { commands: overriding(store.commands, changed) });
}

/** A store that does some things differently and the rest as before. */
export function overriding<T extends object>(store: T, changed: Partial<T>): T {
  return new Proxy(store, {
    get: (target, name) => {
      const own = (changed as Record<string | symbol, unknown>)[name];
      if (own !== undefined) return own;
      const inherited = Reflect.get(target, name, target) as unknown;
      return typeof inherited === 'function' ? inherited.bind(target) : inherited;
    },
  });
}
