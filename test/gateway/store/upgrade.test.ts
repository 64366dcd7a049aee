/**
 * Stores that older versions wrote, with rows in most tables (test/stores/), are upgraded: nothing is lost, and every
 * key, password and token stays valid. Each migration from 0023 on has a store of the version before it.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import SqliteDatabase from 'better-sqlite3';
import t, { type Test } from 'tap';
import { checkDatabase } from '../../../gateway/store/sqlite/check/check.js';
import { migrateFolder } from '../../../gateway/store/sqlite/migrate.js';
import { STEPS } from '../../../gateway/store/sqlite/migrations.js';
import { systemClock } from '../../../proto/clock.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { openGateway } from '../../helpers/gateway/test-gateway.js';
import { callMerchantApi } from '../../helpers/http/merchant-call.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const STORES = path.join('test', 'stores');
// The secrets of the older version's store: an API key, a user's password and an operator's token.
const KEY = 'lgk_62c63096c909_tacKUHhqZVMlWp3heLHOolRllDB04on01QJGYYkA8-Q';
const PASSWORD = 'hZM8nhN8ZCtYDyIpxstCrTpo';
const TOKEN = 'lgo_ZY3aomNVBWh1p-lLsij4KA0SrMdxFJ4lmIpLFtYHXY0';

/** When the older version stopped: commands and tokens have not expired, and no retry is due. */
const STOPPED_AT_MS = Date.UTC(2026, 10, 23, 11, 14, 4);

/** Tables whose rows an upgrade and a start leave unchanged, except for new columns and checksums. */
const UNCHANGED_TABLES = [
  ...['merchant', 'credential', 'device', 'uplink', 'quarantine', 'user_account', 'pet', 'idempotent_answer'],
  ...['command', 'audit', 'access_token', 'webhook_url', 'delivery', 'sim', 'usage'],
];

type Row = Readonly<Record<string, unknown>>;

/** The rows of some tables of a store, or of all. */
function readTables(file: string, names?: readonly string[]): ReadonlyMap<string, readonly Row[]> {
  const db = new SqliteDatabase(file, { readonly: true });
  try {
    const tableNames = db
      .prepare(`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`)
      .pluck();
    const read = (table: string) => db.prepare(`SELECT * FROM "${table}"`).all() as Row[];
    return new Map((names ?? (tableNames.all() as string[])).map((table) => [table, read(table)]));
  } finally {
    db.close();
  }
}

/** Unpacks a store of test/stores/, and its key if there is one, into a new folder. Returns the store’s file. */
function copyStore(folder: string, name: string): string {
  const file = path.join(folder, 'lockgate.sqlite');
  writeFileSync(file, gunzipSync(readFileSync(path.join(STORES, `${name}.sqlite.gz`))), { mode: 0o600 });
  const key = path.join(STORES, `${name}.key`);
  if (existsSync(key)) writeFileSync(path.join(folder, 'key'), readFileSync(key), { mode: 0o600 });
  return file;
}

/** Reports each row of `before` that is not in `after`, apart from new columns. */
function compareRows(test: Test, before: ReadonlyMap<string, readonly Row[]>, after: typeof before): void {
  for (const [table, rows] of before)
    rows.forEach((row, index) => {
      const upgraded = withColumnsOf(after.get(table)?.[index] ?? {}, row);
      test.same(upgraded, row, `${table}, row ${index + 1}`);
    });
}

/** The columns that the older version had. Checksums cover new columns too, so they differ. */
function withColumnsOf(row: Row, before: Row): Row {
  return Object.fromEntries(Object.keys(before).map((column) => [column, column === 'sum' ? before.sum : row[column]]));
}

t.test('a store from before users had roles is upgraded without loss', async (t) => {
  const folder = tempFolder(t);
  const file = copyStore(folder, 'before-0023');
  const before = readTables(file, UNCHANGED_TABLES);
  const machine = { wall: () => STOPPED_AT_MS, monotonic: () => 0, after: systemClock.after };
  const gateway = await openGateway(t, folder, { machine });
  compareRows(t, before, readTables(file, UNCHANGED_TABLES));
  t.match(await callMerchantApi(gateway, '/v1/locks', { key: KEY }), {
    status: 200,
    body: { data: [{ mac_addr: 'A4:C1:38:00:00:01', name: null, labels: {} }, {}, {}] },
  });
  const login = await callMerchantApi(gateway, `/v2/user/login?username=ada&password=${PASSWORD}`, { key: KEY });
  t.equal(login.status, 200, 'the password is valid');
  t.match(await callMerchantApi(gateway, '/v1/users', { key: KEY }), {
    status: 200,
    body: {
      data: [
        { username: 'ada', dashboard: null },
        { username: 'bob', dashboard: null },
      ],
    },
  });
  const repeated = await callMerchantApi(gateway, '/v1/locks/A4:C1:38:00:00:03/commands', {
    key: KEY,
    body: { type: 'unlock' },
    headers: { 'idempotency-key': 'one' },
  });
  t.match(repeated, { status: 202, body: { id: 2 } }, 'the idempotency key is still known');
  t.match(await callMerchantApi(gateway, '/v1/events', { key: KEY }), { body: { data: [{}, {}, {}, {}, {}] } });
  t.match(await callOperator(gateway, 'GET', '/webhooks', undefined, TOKEN), {
    status: 200,
    body: { webhooks: [{ id: 1, events: ['ping'], reasons: null, labels: null, state: 'active' }, { id: 2 }] },
  });
  t.match(await callOperator(gateway, 'GET', '/merchants'), { body: { merchants: [{ closed_at: null }, {}] } });
  t.match(await callOperator(gateway, 'GET', '/audit?action=token.create'), {
    body: { entries: [{ object: 'dashboards', merchant: null, user: null }] },
  });
  await gateway.close();
  const { schema, damage } = await checkDatabase(file);
  t.equal(schema, STEPS.at(-1));
  t.same(damage, []);
  t.ok(
    readdirSync(folder).some((name) => name.startsWith('lockgate.sqlite.0022-operator-tokens.')),
    'a copy for the older version',
  );
});

/** The first migration for which test/stores/ has a store of the version before it. */
const FIRST_STORE_BEFORE = '0023-dashboard-roles';

for (const step of STEPS.filter((name) => name >= FIRST_STORE_BEFORE))
  t.test(`a store of the version before ${step} loses no row, and is undamaged`, async (t) => {
    const folder = tempFolder(t);
    const file = copyStore(folder, `before-${step.slice(0, 4)}`);
    const before = readTables(file);
    t.ok([...before.values()].filter((rows) => rows.length > 0).length >= 20, 'most tables have rows');
    const from = STEPS[STEPS.indexOf(step) - 1];
    t.match(await migrateFolder(folder), { from, steps: STEPS.slice(STEPS.indexOf(step)) });
    const after = readTables(file);
    compareRows(t, before, after);
    for (const [table, rows] of before)
      if (table !== 'kysely_migration') t.equal(after.get(table)?.length, rows.length, `no new row in ${table}`);
    t.same((await checkDatabase(file)).damage, []);
  });

/** Secrets of the store before 0032, and when that gateway stopped. */
const BEFORE_0032 = {
  key: 'lgk_fa37cda9a2c3_ZupClhoPC29t7Nv0XBdH_El0-20n9NYmoicb91g17HY',
  basilsKey: 'lgk_fbabcc97e5aa_zgHECjib955627t0IBdczn9RhVk--5pA0mUMmJ8h_do',
  password: 'rbaSjt0-CvCT-G2coR0Ve3mm',
  token: 'lgo_gvtQ0O9A09M3kuVP4Do8y9mJ90XK6q62Qnffyr4XI0o',
  stoppedAtMs: Date.UTC(2026, 10, 23, 13, 22, 33),
};

t.test('roles, invitations, filters, a closed merchant, notify URLs and sessions outlive an upgrade', async (t) => {
  const folder = tempFolder(t);
  copyStore(folder, 'before-0032');
  const machine = { wall: () => BEFORE_0032.stoppedAtMs, monotonic: () => 0, after: systemClock.after };
  const gateway = await openGateway(t, folder, { machine });
  const ask = (route: string, key = BEFORE_0032.key) => callMerchantApi(gateway, route, { key });
  t.match(await ask('/v1/users'), {
    body: {
      data: [
        { username: 'ada', dashboard: 'owner' },
        { username: 'bob', dashboard: null },
      ],
    },
  });
  t.match(await ask('/v1/invitations'), { body: { data: [{ username: 'cy' }, { username: null }] } });
  t.match(await ask('/v1/webhooks'), {
    body: {
      data: [
        { events: ['ping'], reasons: null },
        { ordered: true },
        { reasons: ['REASON_STATE_PING'], labels: { city: 'Hamburg' } },
        { events: ['ping', 'command', 'presence', 'battery'] },
      ],
    },
  });
  t.match(await ask('/v1/commands?state=cancelled'), { body: { data: [{ id: 3, type: 'siren' }] } });
  t.equal((await ask(`/v2/user/login?username=ada&password=${BEFORE_0032.password}`)).status, 200);
  t.equal((await ask('/v1/locks', BEFORE_0032.basilsKey)).status, 401, 'the merchant is closed');
  const merchants = [
    { name: 'Amber', closed_at: null, notify_url: 'http://127.0.0.1:9/notify' },
    { name: 'Basil', closed_at: /^2026-11-23/ },
  ];
  t.match(await callOperator(gateway, 'GET', '/merchants?all=true', undefined, BEFORE_0032.token), {
    body: { merchants },
  });
  await callOperator(gateway, 'POST', '/merchants/Basil/reopen');
  t.equal((await ask('/v1/locks', BEFORE_0032.basilsKey)).status, 200, 'and its key is valid again');
});
