/** Names and labels of locks: their rules, labels as text, and that the store has them until the lock is removed. */
import path from 'node:path';
import t from 'tap';
import { labelsText, nameFault, parseLabels } from '../../../gateway/store/contract/devices/device-labels.js';
import { checkDatabase } from '../../../gateway/store/sqlite/check/check.js';
import { openDurable } from '../../../gateway/store/sqlite/durable-file.js';
import { migrationProvider } from '../../../gateway/store/sqlite/migrations.js';
import { openSqliteStore } from '../../../gateway/store/sqlite/open-sqlite-store.js';
import { Kysely, Migrator, SqliteDialect } from '../../../gateway/store/tables/kysely.js';
import { testMac } from '../../helpers/gateway/test-gateway.js';
import { openStore } from '../../helpers/store/new-store.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

t.test('labels are parsed from text and written as text; a wrong one is named', async (t) => {
  t.same(parseLabels('b=2, a = x=y ;c='), { a: 'x=y', b: '2', c: '' });
  t.same(Object.keys(parseLabels('b=1,a=2')), ['a', 'b'], 'in the order of their keys');
  t.equal(labelsText({ a: '1', b: 'Köln 2' }), 'a=1, b=Köln 2');
  t.same(parseLabels(' ; '), {});
  for (const [text, fault] of [
    ['Berlin', /no label: expected key=value/],
    ['=x', /no label/],
    ['a=1;a=2', /given twice/],
    ['a b=1', /letters, digits/],
    [`${'k'.repeat(41)}=1`, /1 to 40/],
    [`a=${'v'.repeat(61)}`, /at most 60/],
    ['a=\u0007', /control characters/],
    [Array.from({ length: 17 }, (_, index) => `k${index}=1`).join(','), /at most 16 labels/],
  ] as const)
    t.match(parseLabels(text), fault, text);
  t.equal(nameFault('🔒'.repeat(60)), undefined, 'characters, not UTF-16 units');
  t.match(nameFault('x'.repeat(61)), /60/);
  t.match(nameFault('a\nb'), /control/);
});

t.test('the store keeps names and labels, and drops them with a removed lock', async (t) => {
  const store = await openStore(tempFolder(t));
  t.teardown(() => store.close());
  for (const name of ['Amber', 'Basil']) await store.addMerchant(name, 0);
  const mac = testMac(1);
  const device = { mac, merchant: 'Amber', simulated: false, secretHash: Buffer.alloc(32), nowMs: 0 };
  t.match(await store.addDevice(device), { name: null, labels: {} });
  const read = async () => (await store.findDevice(mac))?.device;
  await store.describeLock({ merchantId: 1, mac, name: 'Harbour 7', labels: { z: '1', a: '2' } });
  t.match(await read(), { name: 'Harbour 7', labels: { a: '2', z: '1' } });
  t.same(Object.keys((await read())?.labels ?? {}), ['a', 'z']);
  await store.describeLock({ merchantId: 1, mac, labels: {} });
  t.match(await read(), { name: 'Harbour 7', labels: {} }, 'the name was left out');
  await store.describeLock({ merchantId: 2, mac, name: 'Basil’s' });
  t.match(await read(), { name: 'Harbour 7' }, 'another merchant changes nothing');
  await store.describeLock({ merchantId: 1, mac, name: null });
  t.match(await read(), { name: null });
  await store.changeDevice({ mac, name: 'Again', labels: { a: '1' } });
  t.match(await store.findDevices([1]), [{ name: 'Again', labels: { a: '1' } }]);
  await store.removeDevice(mac, 1);
  t.same(await store.readDevices({ limit: 9 }), []);
  t.match(await store.addDevice(device), { name: null, labels: {} }, 'a lock that returns starts without them');
});

t.test('locks of an older store have no name and no labels', async (t) => {
  const folder = tempFolder(t);
  const file = path.join(folder, 'lockgate.sqlite');
  const db = openDurable(file);
  const tables = new Kysely<unknown>({ dialect: new SqliteDialect({ database: db }) });
  // The last migration before names and labels.
  const { error } = await new Migrator({ db: tables, provider: migrationProvider }).migrateTo('0017-key-scopes');
  t.notOk(error);
  db.exec(`INSERT INTO merchant (id, name, created_at_ms) VALUES (1, 'Amber', 1);
    INSERT INTO device (id, mac, merchant_id, simulated, created_at_ms) VALUES (7, '${testMac(1)}', 1, 0, 1);`);
  db.close();
  const store = await openSqliteStore(folder);
  t.match(await store.readDevices({ merchantId: 1, limit: 9 }), [{ id: 7, name: null, labels: {} }]);
  await store.describeLock({ merchantId: 1, mac: testMac(1), name: 'Harbour 7' });
  await store.close();
  t.same((await checkDatabase(file)).damage, [], 'the store is undamaged');
});
