/**
 * What merchants read of findings and deliveries is read in a thread of its own (gateway/store/sqlite/scan/), so that
 * pings don't wait for it, and is the same as what the gateway's own thread reads.
 */
import t from 'tap';
import type { Store } from '../../../../gateway/store/contract/store.js';
import type { DeliveryState } from '../../../../gateway/store/contract/webhook-store.js';
import type { AttemptFigures } from '../../../../gateway/store/contract/webhooks/attempt-figures.js';
import { openSqliteStore } from '../../../../gateway/store/sqlite/open-sqlite-store.js';
import { chooseSeed, SeededChance } from '../../../helpers/pair/seeded-chance.js';
import { sharedStock } from '../../../helpers/store/shared-stock.js';

const STOCK = { locks: 3, pings: 400 };
const [ANY_URL, FILTERED_URL] = [1, 2];
const STATES: readonly DeliveryState[] = ['pending', 'delivered', 'dead', 'kept', 'damaged'];
const ALL = { states: STATES, fromId: 0, toId: Number.MAX_SAFE_INTEGER, limit: 200 };
const RANGE = { afterId: 10, toId: 350, limit: 100 };

/** Figures; an empty list if they are about no attempts, as other reads of nothing. */
const summed = (figures: AttemptFigures) => (figures.attempts === 0 ? [] : figures);

/** Each read, by what it reads. */
const READS: Readonly<Record<string, (store: Store) => Promise<unknown>>> = {
  findings: async (store) => await store.readFindings(1, 50),
  'older findings': async (store) => await store.readFindings(1, 50, 5),
  deliveries: async ({ webhooks }) => await webhooks.readDeliveries({ ...ALL, urlIds: [ANY_URL] }),
  'deliveries at a URL with a filter': async ({ webhooks }) =>
    await webhooks.readDeliveries({ ...ALL, urlIds: [FILTERED_URL] }),
  'deliveries of one lock': async ({ webhooks }) =>
    await webhooks.readDeliveries({ ...ALL, urlIds: [ANY_URL], deviceId: 1 }),
  'figures of attempts': async ({ webhooks }) =>
    summed(await webhooks.sumUpNewestAttempts(ANY_URL, { limit: 50, sinceMs: 0 })),
  'counts of attempted events': async ({ webhooks }) => await webhooks.countAttempted(ANY_URL, RANGE),
  'counts of pings': async ({ webhooks }) => await webhooks.countPings(ANY_URL, RANGE),
};

t.setTimeout(60_000);

const seed = chooseSeed();
const copyStock = sharedStock(t, STOCK, new SeededChance(seed));

/** Makes each read in a store that was just opened, and counts the threads that it starts. */
async function readAll(folder: string, scanThread: boolean) {
  const results: Record<string, { readonly read: unknown; readonly threads: number }> = {};
  for (const [name, read] of Object.entries(READS)) {
    const store = await openSqliteStore(folder, { scanThread });
    let threads = 0;
    const count = (): void => {
      threads += 1;
    };
    process.on('worker', count);
    try {
      results[name] = { read: await read(store), threads };
    } finally {
      process.off('worker', count);
      await store.close();
    }
  }
  return results;
}

t.test('findings and deliveries are read in another thread', async (t) => {
  const { folder } = await copyStock(t);
  const here = await readAll(folder, false);
  const there = await readAll(folder, true);
  for (const name of Object.keys(READS)) {
    const [expected, found] = [here[name], there[name]];
    t.equal(expected?.threads, 0, `${name}: without a thread for scans, in the caller's`);
    t.equal(found?.threads, 1, `${name}: in another thread`);
    t.strictSame(found?.read, expected?.read, `seed ${seed}: ${name}: the same`);
    t.ok(JSON.stringify(expected?.read).length > 20, `${name}: there are some`);
  }
});
