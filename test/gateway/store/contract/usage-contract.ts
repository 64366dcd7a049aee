/**
 * The contract suite of the store's usage part (usage-store.ts): SIM cards, counts, price plans and statements. Each
 * engine's test file calls it with a function that opens the engine. Times of changes are small numbers of ms: nothing
 * depends on them.
 */
import t from 'tap';
import type { Store } from '../../../../gateway/store/contract/store.js';
import type { UsageDelta } from '../../../../gateway/store/contract/usage-store.js';
import { type Month, monthEndMs } from '../../../../gateway/usage/month.js';
import type { StatementBasis } from '../../../../gateway/usage/statement.js';
import { testMac } from '../../../helpers/gateway/test-gateway.js';
import { type Teardown, tempFolder } from '../../../helpers/store/temp-folder.js';
import type { OpenStore } from './contract-store.js';

const MAC = testMac();
const OCTOBER = '2026-10' as Month;
const NOVEMBER = '2026-11' as Month;
const PLAN = { perMb: '0.12', perSim: '0.80', currency: 'EUR' };

/** What a lock used since the last write: counts that the store adds up. */
function delta(members: Partial<UsageDelta> = {}): UsageDelta {
  const counts = { messagesUp: 1, messagesDown: 2, connections: 3, bytesUp: 4, bytesDown: 5 };
  return { month: NOVEMBER, mac: MAC, merchantId: 1, simulated: false, ...counts, ...members };
}

/** Opens a store that has the merchant Amber, with the id 1. */
async function openWithAmber(test: Teardown, open: OpenStore, folder = tempFolder(test)): Promise<Store> {
  const store = await open(folder);
  test.teardown(() => store.close().catch(() => undefined));
  if ((await store.listMerchants()).length === 0) await store.addMerchant('Amber', 5);
  return store;
}

/** Closes a month of Amber's. Returns whether it was open, and if so, what its statement is made from (`basis`). */
async function closeMonth(
  store: Store,
  month: Month,
  body = '{}',
): Promise<{ isNew: boolean; basis?: StatementBasis }> {
  let basis: StatementBasis | undefined;
  const isNew = await store.usage.close(1, month, monthEndMs(month), (usageBasis) => {
    basis = usageBasis;
    return body;
  });
  return { isNew, ...(basis !== undefined && { basis }) };
}

/** Runs the suite. */
export function usageStoreContract(engine: string, open: OpenStore): void {
  t.test(`${engine}: a SIM keeps the time of its first activation`, async (t) => {
    const folder = tempFolder(t);
    const store = await openWithAmber(t, open, folder);
    await store.usage.activate([{ mac: MAC, atMs: 7 }]);
    await store.usage.activate([
      { mac: MAC, atMs: 8 },
      { mac: testMac(2), atMs: 9 },
    ]);
    await store.close();
    const reopened = await openWithAmber(t, open, folder);
    t.same(
      new Set(await reopened.usage.readActivations()),
      new Set([
        { mac: MAC, activatedAtMs: 7 },
        { mac: testMac(2), activatedAtMs: 9 },
      ]),
    );
  });

  t.test(`${engine}: counts add up by month, lock, merchant, and whether the lock is simulated`, async (t) => {
    const store = await openWithAmber(t, open);
    await store.addMerchant('Blue', 6);
    const large = delta({ mac: testMac(2), bytesUp: 2 ** 40 });
    await store.usage.add([delta(), delta(), delta({ month: OCTOBER }), delta({ merchantId: 2 }), large], 10);
    await store.usage.add([delta({ simulated: true }), large], 11);
    t.match(await store.usage.read({ mac: MAC, month: NOVEMBER, merchant: 'Amber' }), [
      { simulated: false, messagesUp: 2, messagesDown: 4, connections: 6, bytesUp: 8, bytesDown: 10 },
      { simulated: true, messagesUp: 1 },
    ]);
    t.match(await store.usage.read({ mac: testMac(2) }), [{ bytesUp: 2 ** 41, merchantName: 'Amber' }]);
    t.equal(
      (await store.usage.read({})).length,
      5,
      'a row for each month, lock, merchant, and whether it is simulated',
    );
    t.match(await store.usage.read({ merchant: 'Blue' }), [{ merchantId: 2, mac: MAC }]);
  });

  t.test(`${engine}: a month is closed once, and later counts are left for the next statement`, async (t) => {
    const folder = tempFolder(t);
    const store = await openWithAmber(t, open, folder);
    await store.usage.putPlan('Amber', PLAN, OCTOBER, 9);
    await store.usage.add([delta({ month: OCTOBER }), delta()], 10);
    const october = await closeMonth(store, OCTOBER, '{"a":1}');
    t.match(october, { isNew: true, basis: { plan: PLAN, usage: [{ bytesUp: 4 }], late: [] } });
    t.same(await closeMonth(store, OCTOBER, '{"a":2}'), { isNew: false });
    t.match(await store.usage.readStatements(OCTOBER), [{ merchantName: 'Amber', body: '{"a":1}' }]);
    await t.rejects(store.usage.putPlan('Amber', PLAN, OCTOBER, 11), { code: 'usage-month-closed' });
    await store.usage.add([delta({ month: OCTOBER, bytesUp: 100 })], 12);
    const failed = store.usage.close(1, NOVEMBER, 13, () => {
      throw new Error('broken');
    });
    await t.rejects(failed, /broken/);
    t.same(await store.usage.readClosedMonths(1), [OCTOBER], 'a month whose statement can’t be made stays open');
    const { basis } = await closeMonth(store, NOVEMBER);
    t.match(basis, { usage: [{ month: NOVEMBER, bytesUp: 4 }], late: [{ month: OCTOBER, bytesUp: 100 }] });
    await store.close();
    const reopened = await openWithAmber(t, open, folder);
    t.same(await reopened.usage.readClosedMonths(1), [OCTOBER, NOVEMBER]);
    t.match(await reopened.usage.readStatements(OCTOBER, 'Amber'), [{ body: '{"a":1}' }]);
  });
}
