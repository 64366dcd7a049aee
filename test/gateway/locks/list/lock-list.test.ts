/**
 * Lists of locks: filters, search, orders, and pages that have each lock once while the locks' states change
 * (interfaces.md §2, §4). The statement that reads locks from the store uses an index. A lock's belief is what the
 * gateway concludes from its uplinks about its state; its presence says whether it is connected, asleep, late and so
 * on.
 */
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t, { type Test } from 'tap';
import { type DeviceState, newDeviceState } from '../../../../gateway/locks/device-state.js';
import { LockDirectory } from '../../../../gateway/locks/list/lock-directory.js';
import { parseLabelFilter } from '../../../../gateway/locks/list/lock-filter.js';
import { type ListPosition, LockList, type LockListQuery } from '../../../../gateway/locks/list/lock-list.js';
import { parseSort, SORTS } from '../../../../gateway/locks/list/lock-order.js';
import { ReadTurns } from '../../../../gateway/locks/list/read-turns.js';
import { sortInTurns } from '../../../../gateway/locks/list/sort-in-turns.js';
import { DEVICE_WRITES, watchDevices } from '../../../../gateway/locks/list/watch-devices.js';
import type { NewDevice } from '../../../../gateway/store/contract/devices/device.js';
import type { Store } from '../../../../gateway/store/contract/store.js';
import { STORE_METHODS } from '../../../../gateway/store/contract/store-methods.js';
import { ManualClock } from '../../../../proto/clock.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import { testMac } from '../../../helpers/gateway/test-gateway.js';
import { SeededChance } from '../../../helpers/pair/seeded-chance.js';
import { openStore } from '../../../helpers/store/new-store.js';
import { tempFolder } from '../../../helpers/store/temp-folder.js';

const NOW_MS = Date.UTC(2026, 10, 20);
const LOCKS = 1_300;
const CITIES = ['Berlin', 'Hamburg', 'Köln'];

interface ListSetup {
  readonly folder: string;
  readonly store: Store;
  readonly states: Map<number, { state: DeviceState }>;
  makeList(): LockList;
}

/** A store with two merchants' locks. Every third lock has a state, because it has sent something. */
async function setUpList(test: Test): Promise<ListSetup> {
  const folder = tempFolder(test);
  const opened = await openStore(folder);
  test.teardown(() => opened.close());
  const directory = new LockDirectory(opened);
  const store = watchDevices(opened, directory);
  for (const name of ['Amber', 'Basil']) await store.addMerchant(name, 0);
  const devices = Array.from({ length: LOCKS }, (_, index): NewDevice => {
    const city = CITIES[index % CITIES.length] ?? '';
    return {
      mac: testMac(index + 1),
      merchant: index % 10 === 9 ? 'Basil' : 'Amber',
      simulated: false,
      secretHash: Buffer.alloc(32),
      nowMs: 0,
      ...(index % 2 === 0 && { name: `Lock ${index}`, labels: { city, row: String(index % 7) } }),
    };
  });
  await store.addDevices(devices);
  const states = new Map<number, { state: DeviceState }>();
  const chance = new SeededChance(5);
  for (const device of await store.readDevices({ limit: LOCKS }))
    if (device.id % 3 === 0) states.set(device.id, { state: someState(device.mac, chance) });
  const turns = new ReadTurns();
  const clock = new ManualClock(NOW_MS);
  return {
    folder,
    store,
    states,
    makeList: () =>
      new LockList({
        directory,
        isClosed: () => false,
        states: { find: (id) => states.get(id) },
        clock,
        turns,
      }),
  };
}

/** A random state: some locks are connected, a few have a low battery or report a theft. */
function someState(mac: Parameters<typeof newDeviceState>[0], chance: SeededChance): DeviceState {
  const state = newDeviceState(mac, NOW_MS, NOW_MS);
  state.belief.batteryPercent = Math.floor(chance.next() * 100);
  state.belief.uplinks = 1;
  state.receivedAtMs = NOW_MS - Math.floor(chance.next() * 1e6);
  if (chance.next() < 0.3) {
    state.belief.isConnected = true;
    state.belief.connectedSinceMs = NOW_MS;
  }
  if (chance.next() < 0.05) state.belief.state = 'LOW_BATTERY';
  if (chance.next() < 0.02)
    state.ping = {
      credential: 1,
      life: 0,
      boot: 1,
      sequence: 1,
      timeMs: NOW_MS,
      reason: 'REASON_THEFT',
      kind: 'gps',
    };
  return state;
}

/** The query of a list. @param sort an order, such as `-battery`: by the battery, highest first */
const queryOf = (sort: string, filter: LockListQuery['filter'] = {}): LockListQuery => ({
  filter,
  order: parseSort(sort),
});

/** All pages of a list as ids; `between` runs after each page. */
async function readAll(list: LockList, query: LockListQuery, limit: number, between = () => {}): Promise<number[]> {
  const ids: number[] = [];
  for (let after: ListPosition | undefined; ; ) {
    const page = await list.page(query, { limit, after });
    ids.push(...page.locks.map(({ device }) => device.id));
    if (page.next === null) return ids;
    after = page.next;
    between();
  }
}

t.test('in every order, the pages together have each lock once, also while states change', async (t) => {
  const { states, makeList } = await setUpList(t);
  const chance = new SeededChance(6);
  for (const sort of SORTS) {
    const list = makeList();
    const completeList = await readAll(list, queryOf(sort), 5_000);
    t.equal(new Set(completeList).size, LOCKS, `${sort}: all`);
    const changing = await readAll(list, queryOf(sort), 97, () => {
      for (const { state } of states.values()) {
        state.belief.batteryPercent = Math.floor(chance.next() * 100);
        state.belief.isConnected = chance.next() < 0.5;
        state.receivedAtMs = NOW_MS + Math.floor(chance.next() * 1e6);
      }
    });
    t.strictSame(changing, completeList, `${sort}: page by page`);
  }
});

t.test('a list whose order is no longer in memory continues after the last lock of the previous page', async (t) => {
  const { makeList } = await setUpList(t);
  for (const sort of ['trouble', '-battery', 'name']) {
    const first = await makeList().page(queryOf(sort), { limit: 400 });
    const remainingPage = await makeList().page(queryOf(sort), { limit: 5_000, after: first.next ?? undefined });
    const ids = [...first.locks, ...remainingPage.locks].map(({ device }) => device.id);
    t.strictSame(ids, await readAll(makeList(), queryOf(sort), 5_000), sort);
  }
});

t.test('each order sorts by its value, with locks without a value last', async (t) => {
  const { makeList } = await setUpList(t);
  const sortedBy = async (sort: string) => (await makeList().page(queryOf(sort), { limit: 5_000 })).locks;
  const batteries = (await sortedBy('battery')).map(({ state }) => state?.belief.batteryPercent ?? null);
  const knownBatteries = batteries.filter((each) => each !== null);
  t.strictSame(
    batteries.slice(0, knownBatteries.length),
    knownBatteries.toSorted((one, other) => one - other),
  );
  t.strictSame((await sortedBy('-battery'))[0]?.state?.belief.batteryPercent, Math.max(...knownBatteries));
  t.equal((await sortedBy('-battery')).at(-1)?.state, null);
  const troubles = await sortedBy('trouble');
  t.equal(troubles[0]?.state?.ping?.reason, 'REASON_THEFT', 'the worst trouble first');
  const macs = (await sortedBy('-mac')).map(({ device }) => device.mac);
  t.strictSame(macs, macs.toSorted().reverse());
  t.equal((await sortedBy('name'))[0]?.device.name, 'Lock 0');
});

t.test('a list has the locks that its filters and its search text select', async (t) => {
  const { makeList } = await setUpList(t);
  const count = async (filter: LockListQuery['filter']) =>
    (await readAll(makeList(), queryOf('mac', filter), 300)).length;
  t.equal(await count({}), LOCKS);
  t.equal(await count({ merchantId: 2 }), LOCKS / 10);
  t.equal(await count({ search: 'lock 12' }), 56, 'names in any case: 12, 120 to 128, 1200 to 1298');
  t.equal(await count({ search: formatMac(testMac(7)).toLowerCase() }), 1);
  t.equal(await count({ search: testMac(7).slice(-6) }), 1, 'the end of a MAC');
  t.equal(await count({ search: 'city=köln' }), await count({ labels: [parseLabelFilter('city=Köln')] }));
  t.equal(await count({ labels: [parseLabelFilter('city')] }), LOCKS / 2);
  const both = [parseLabelFilter('city=Berlin'), parseLabelFilter('row=3')];
  t.equal(await count({ labels: both }), Math.ceil(LOCKS / 42), 'of those with labels, one in 3 × 7 has both');
  t.equal(await count({ labels: [parseLabelFilter('constructor')] }), 0, 'an inherited member is no label');
  const [online, unseen] = [await count({ presences: ['online'] }), await count({ presences: ['never-seen'] })];
  t.ok(online > 50 && unseen > LOCKS / 2, 'there are enough of both');
  t.equal(await count({ presences: ['online', 'never-seen'] }), online + unseen);
  t.ok((await count({ states: ['theft'] })) > 0);
  t.equal(await count({ states: ['LOW_BATTERY'], presences: ['online'], search: 'nothing' }), 0);
});

t.test('locks that are removed while a list is read are left out', async (t) => {
  const { store, makeList } = await setUpList(t);
  const list = makeList();
  const first = await list.page(queryOf('trouble'), { limit: 10 });
  const next = (await list.page(queryOf('trouble'), { limit: 1, after: first.next ?? undefined })).locks[0]?.device;
  await store.removeDevice(next?.mac ?? testMac(0), 1);
  const remainingPage = await list.page(queryOf('trouble'), { limit: 5_000, after: first.next ?? undefined });
  t.equal(remainingPage.locks.length, LOCKS - 11);
  t.notOk(
    remainingPage.locks.some(({ device }) => device.id === next?.id),
    'the removed lock is left out',
  );
});

t.test('the store reads locks by MAC with an index, without a scan of all locks and without sorting', async (t) => {
  const { folder } = await setUpList(t);
  const db = new SqliteDatabase(path.join(folder, 'lockgate.sqlite'), { readonly: true });
  t.teardown(() => db.close());
  // As readDevices of gateway/store/tables/devices/devices.ts, with which LockDirectory reads the locks.
  const plan = (where: string): string =>
    (
      db
        .prepare(`EXPLAIN QUERY PLAN SELECT * FROM device JOIN merchant ON merchant.id = device.merchant_id
      WHERE device.removed_at_ms IS NULL AND ${where} ORDER BY device.mac LIMIT 500`)
        .all() as { detail: string }[]
    )
      .map(({ detail }) => detail)
      .join('; ');
  const planOfMerchant = plan("device.merchant_id = 1 AND device.mac > 'A4'");
  t.match(planOfMerchant, /device USING INDEX device_by_merchant \(merchant_id=\? AND mac>\?\)/);
  t.notMatch(planOfMerchant, /TEMP B-TREE|SCAN device/);
  const planOfAll = plan("device.mac > 'A4'");
  t.match(planOfAll, /device USING INDEX \w+ \(mac>\?\)/);
  t.notMatch(planOfAll, /TEMP B-TREE|SCAN device/);
});

t.test(
  'sorting in turns of the event loop gives the order of an ordinary sort, and stops if it is aborted',
  async (t) => {
    const chance = new SeededChance(7);
    const items = Array.from({ length: 9_001 }, (_, index) => ({ value: Math.floor(chance.next() * 50), index }));
    const compare = (one: { value: number }, other: { value: number }) => one.value - other.value;
    t.strictSame(await sortInTurns(items, compare, new ReadTurns()), items.toSorted(compare));
    t.strictSame(await sortInTurns([], compare, new ReadTurns()), []);
    const aborted = AbortSignal.abort(new Error('gone'));
    await t.rejects(sortInTurns(items, compare, new ReadTurns(), aborted), { message: 'gone' });
  },
);

t.test('the list shows each change of a lock at once, also changes that are made while it is read', async (t) => {
  const { store, makeList } = await setUpList(t);
  const list = makeList();
  const [amber, basil] = await store.listMerchants();
  const find = async (search: string, merchantId = amber?.id) => {
    const query = { filter: { merchantId, search }, order: parseSort('trouble') };
    return (await list.page(query, { limit: 10 })).locks.map(({ device }) => device.mac);
  };
  const [first, second] = [testMac(1), testMac(2)];
  t.strictSame(await find('quay'), []);
  const firstFind = find('quay');
  await store.changeDevice({ mac: first, name: 'Quay 1' });
  await firstFind;
  t.strictSame(await find('quay'), [first]);
  await store.describeLock({ merchantId: amber?.id ?? 0, mac: second, name: 'Quay 2' });
  t.strictSame(await find('quay'), [first, second]);
  await store.changeDevice({ mac: first, merchant: 'Basil' });
  t.strictSame(await find('quay'), [second]);
  t.strictSame(await find('quay', basil?.id), [first]);
  await store.removeDevice(second, NOW_MS);
  t.strictSame(await find('quay'), []);
  const added = { merchant: 'Amber', simulated: false, secretHash: Buffer.alloc(32), nowMs: 0, name: 'Quay 3' };
  await store.addDevice({ ...added, mac: testMac(LOCKS + 1) });
  t.strictSame(await find('quay'), [testMac(LOCKS + 1)]);
});

t.test('every method of the store that writes locks is watched', async (t) => {
  // These methods change nothing that a list shows.
  const NOT_LISTED = ['replaceLockCredential'];
  const writes = Object.entries(STORE_METHODS).flatMap(([name, effect]) => (effect === 'writes' ? [name] : []));
  const aboutLocks = writes.filter((name) => /device|lock/i.test(name) && !NOT_LISTED.includes(name));
  const unwatched = aboutLocks.filter((name) => DEVICE_WRITES[name] === undefined);
  t.strictSame(unwatched, [], 'watch it in watch-devices.ts, or name it here if it changes nothing that a list shows');
  t.strictSame(
    Object.keys(DEVICE_WRITES).filter((name) => !writes.includes(name)),
    [],
  );
});
