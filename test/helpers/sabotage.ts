/**
 * Stores that break a promise on purpose. A durability test that stays green with one of them proves nothing.
 *
 * There is none for synchronous NORMAL: what was written survives the process, so kill -9 can't tell it from FULL; only
 * a loss of power can (quality.md §2).
 */
import type { Commit, DueDelivery, Store, StoredUplink } from '../../gateway/store/store.js';

export type SabotageName = 'ack-first' | 'skip-event' | 'early-cursor' | 'new-ids';

/** How long the commit comes after the acknowledgement. */
const COMMIT_DELAY_MS = 150;
/** One event of so many is left out. */
const SKIPPED_SHARE = 16;

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
};

/** A store, or a part of one, that does some things differently and the rest as before. */
export function overriding<Part extends object>(store: Part, changed: Partial<Part>): Part {
  return new Proxy(store, {
    get: (target, name) => {
      const own = (changed as Record<string | symbol, unknown>)[name];
      if (own !== undefined) return own;
      const inherited = Reflect.get(target, name, target) as unknown;
      return typeof inherited === 'function' ? inherited.bind(target) : inherited;
    },
  });
}
