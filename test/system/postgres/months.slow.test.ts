/**
 * Several stores on one database count and bill usage, as several gateways do: what one counted is billed once, however
 * answers are lost, months are closed at the same time, and counts arrive meanwhile.
 */
import t, { type Test } from 'tap';
import type { Store } from '../../../gateway/store/contract/store.js';
import type { UsageDelta } from '../../../gateway/store/contract/usage-store.js';
import { openPostgresStore } from '../../../gateway/store/postgres/open-postgres-store.js';
import { type Month, monthEndMs } from '../../../gateway/usage/month.js';
import { makeStatement, type StatementBasis } from '../../../gateway/usage/statement.js';
import { FaultProxy } from '../../helpers/chaos/fault-proxy.js';
import { ChangeSignal, realDelay } from '../../helpers/clocks/change-signal.js';
import { testMac } from '../../helpers/gateway/test-gateway.js';
import { postgresMissing } from '../../helpers/store/postgres/server.js';
import { TestDatabases } from '../../helpers/store/postgres/test-database.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

t.setTimeout(170_000);
const options = { skip: postgresMissing ?? false };
const databases = new TestDatabases(t);
const [OCTOBER, NOVEMBER] = ['2026-10', '2026-11'] as [Month, Month];
const LOCKS = 40;
const WAIT_SECONDS = 60;

function delta(number: number, month: Month, bytesUp = 1): UsageDelta {
  const counts = { messagesUp: 1, messagesDown: 0, connections: 0, bytesUp, bytesDown: 0 };
  return { month, mac: testMac(number), merchantId: 1, simulated: false, ...counts };
}

/** Opens a store that shares the database of a folder. */
async function openShared(test: Test, url: string): Promise<Store> {
  const store = await openPostgresStore(url, { isShared: true });
  test.teardown(() => store.close());
  return store;
}

async function countBytes(store: Store): Promise<number> {
  return (await store.usage.read({})).reduce((sum, { bytesUp }) => sum + bytesUp, 0);
}

/** The bytes that statements bill, corrections too. */
async function billedBytes(store: Store, months: readonly Month[]): Promise<number> {
  let billed = 0;
  for (const month of months)
    for (const { body } of await store.usage.readStatements(month)) {
      const { lines, corrections } = JSON.parse(body) as Record<'lines' | 'corrections', { bytes: number }[]>;
      for (const { bytes } of [...lines, ...corrections]) billed += bytes;
    }
  return billed;
}

t.test('a month that two close at the same time, while counts arrive, is billed once and whole', options, async (t) => {
  const url = await databases.urlOf(tempFolder(t));
  const [one, other] = [await openShared(t, url), await openShared(t, url)];
  await one.addMerchant('Amber', 0);
  const macs = Array.from({ length: LOCKS }, (_, index) => index + 1);
  const make = (basis: StatementBasis): string => JSON.stringify(makeStatement(basis));
  const add = async (store: Store): Promise<void> => {
    for (let round = 0; round < 20; round += 1)
      await store.usage.add(
        macs.map((mac) => delta(mac, OCTOBER)),
        round,
      );
  };
  const close = async (store: Store, month: Month): Promise<boolean> =>
    await store.usage.close(1, month, monthEndMs(month), make);
  await one.usage.add(
    macs.map((mac) => delta(mac, OCTOBER)),
    1,
  );
  const [isNew, isNewToo] = await Promise.all([close(one, OCTOBER), close(other, OCTOBER), add(one), add(other)]);
  t.same([isNew, isNewToo].filter(Boolean), [true], 'one of the two closed it');
  await close(other, NOVEMBER);
  t.equal(await countBytes(one), LOCKS * 41);
  t.equal(await billedBytes(one, [OCTOBER, NOVEMBER]), LOCKS * 41, 'late counts are billed as corrections');
});

t.test('counts whose answer is lost are added once', options, async (t) => {
  const url = new URL(await databases.urlOf(tempFolder(t)));
  const { port } = await databases.server();
  const proxy = await FaultProxy.start(t, () => port);
  url.port = String(proxy.port);
  const store = await openShared(t, url.href);
  await store.addMerchant('Amber', 0);
  for (let round = 1; round <= 12; round += 1) {
    const adding = store.usage.add([delta(1, NOVEMBER, round)], round);
    // The answers of some are lost after they were stored, and the bytes of others before.
    const cutAfterMs = round % 6;
    await realDelay(cutAfterMs);
    proxy.cut();
    // What certainly is not stored is the caller's to add again.
    for (let added = adding; ; added = store.usage.add([delta(1, NOVEMBER, round)], round)) {
      const isTaken = await added.then(
        () => true,
        () => false,
      );
      if (isTaken) break;
    }
  }
  await store.usage.add([delta(1, NOVEMBER, 0)], 13);
  t.equal(await countBytes(store), 78, 'the sum of 1 to 12');
});

t.test('a month is ready to be closed when each gateway has added its counts', options, async (t) => {
  const url = await databases.urlOf(tempFolder(t));
  const [one, other] = [await openShared(t, url), await openShared(t, url)];
  const endMs = monthEndMs(OCTOBER);
  one.usage.noteCounted(endMs + 1);
  t.equal(await one.usage.readCountedThrough(), 0, 'the other has added nothing yet');
  other.usage.noteCounted(endMs);
  const signal = new ChangeSignal();
  let through = 0;
  const look = async (): Promise<void> => {
    while (through === 0) through = await one.usage.readCountedThrough();
    signal.notify();
  };
  await Promise.all([
    look(),
    signal.waitUntil(
      () => through > 0,
      WAIT_SECONDS,
      () => 'the other’s next beat',
    ),
  ]);
  t.equal(through, endMs, 'the other’s beat says up to when it has counted');
});
