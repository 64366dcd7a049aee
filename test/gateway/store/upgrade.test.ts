/**
 * A store that an older version wrote, with rows in most tables (test/stores/), is upgraded at the start: nothing is
 * lost, and every key, password and token stays valid.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import { checkDatabase } from '../../../gateway/store/sqlite/check/check.js';
import { STEPS } from '../../../gateway/store/sqlite/migrations.js';
import { systemClock } from '../../../proto/clock.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { openGateway } from '../../helpers/gateway/test-gateway.js';
import { callMerchantApi } from '../../helpers/http/merchant-call.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const STORES = path.join('test', 'stores');
/* Secrets of the stored merchant's key and user, and of the operators' token. */
const KEY = 'lgk_62c63096c909_tacKUHhqZVMlWp3heLHOolRllDB04on01QJGYYkA8-Q';
const PASSWORD = 'hZM8nhN8ZCtYDyIpxstCrTpo';
const TOKEN = 'lgo_ZY3aomNVBWh1p-lLsij4KA0SrMdxFJ4lmIpLFtYHXY0';

/** When the older version stopped: commands and tokens have not expired, and no retry is due. */
const STOPPED_AT_MS = Date.UTC(2026, 10, 23, 11, 14, 4);

/** Tables whose rows an upgrade and a start leave unchanged, except for new columns and checksums. */
const KEPT_TABLES = [
  ...['merchant', 'credential', 'device', 'uplink', 'quarantine', 'user_account', 'pet', 'idempotent_answer'],
  ...['command', 'audit', 'access_token', 'webhook_url', 'delivery', 'sim', 'usage'],
];

type Row = Readonly<Record<string, unknown>>;

function readTables(file: string): ReadonlyMap<string, readonly Row[]> {
  const db = new SqliteDatabase(file, { readonly: true });
  try {
    return new Map(
      KEPT_TABLES.map((table) => [table, db.prepare(`SELECT * FROM "${table}" ORDER BY rowid`).all() as Row[]]),
    );
  } finally {
    db.close();
  }
}

/** The columns that the older version had. Checksums cover new columns too, so they differ. */
function withColumnsOf(row: Row, before: Row): Row {
  return Object.fromEntries(Object.keys(before).map((column) => [column, column === 'sum' ? before.sum : row[column]]));
}

t.test('a store from before users had roles is upgraded without loss', async (t) => {
  const folder = tempFolder(t);
  const file = path.join(folder, 'lockgate.sqlite');
  writeFileSync(file, gunzipSync(readFileSync(path.join(STORES, 'before-0023.sqlite.gz'))), { mode: 0o600 });
  writeFileSync(path.join(folder, 'key'), readFileSync(path.join(STORES, 'before-0023.key')), { mode: 0o600 });
  const before = readTables(file);
  const machine = { wall: () => STOPPED_AT_MS, monotonic: () => 0, after: systemClock.after };
  const gateway = await openGateway(t, folder, { machine });
  for (const [table, rows] of readTables(file))
    (before.get(table) ?? []).forEach((row, index) => {
      t.same(withColumnsOf(rows[index] ?? {}, row), row, `${table}, row ${index + 1}`);
    });
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
