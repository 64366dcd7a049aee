/**
 * The pages of the long lists are read by an index: the statements that the store really runs are explained by SQLite,
 * for each filter, and none of them reads or sorts a whole table.
 */
import path from 'node:path';
import SqliteDatabase, { type Database } from 'better-sqlite3';
import t, { type Test } from 'tap';
import { LOG_START, positionAfter } from '../../../gateway/store/contract/log/log-position.js';
import type { StoredUplink } from '../../../gateway/store/contract/log/stored-uplink.js';
import { DELIVERY_STATES } from '../../../gateway/store/contract/webhook-store.js';
import type { WebhookUrl } from '../../../gateway/store/contract/webhooks/webhook-url.js';
import { UplinkMemtable } from '../../../gateway/store/sqlite/log/memtable/uplink-memtable.js';
import { SqlitePeople } from '../../../gateway/store/sqlite/tables/people.js';
import { SQLITE } from '../../../gateway/store/sqlite/tables/sqlite-dialect.js';
import { PassingEvents } from '../../../gateway/store/sqlite/tables/webhooks/passing-events.js';
import { DeliveryReader } from '../../../gateway/store/sqlite/tables/webhooks/webhook-rows.js';
import { SqliteWhy } from '../../../gateway/store/sqlite/tables/why.js';
import { Audit } from '../../../gateway/store/tables/audit.js';
import { CommandTableStore } from '../../../gateway/store/tables/commands.js';
import { Kysely, SqliteDialect } from '../../../gateway/store/tables/kysely.js';
import { Notices } from '../../../gateway/store/tables/notices.js';
import type { Tables } from '../../../gateway/store/tables/schema.js';
import { MERCHANT } from '../../helpers/gateway/test-gateway.js';
import { makeStore } from '../../helpers/store/new-store.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

/** A store file whose statements are collected. */
interface Recorded {
  readonly db: Database;
  readonly tables: Kysely<Tables>;
  /** The plans of the statements since the last call, one line each. */
  readonly takePlans: () => string[];
}

/** An empty store. A part of the store that only reads needs neither a mutex nor a queue of writes. */
async function recordedStore(test: Test): Promise<Recorded> {
  const folder = tempFolder(test);
  await makeStore(folder);
  const file = new SqliteDatabase(path.join(folder, 'lockgate.sqlite'));
  test.teardown(() => file.close());
  // The store's function for checksums of rows. The tests write one row and check no sum.
  file.function('row_sum', { varargs: true }, () => 0);
  file.prepare('INSERT INTO merchant (id, name, created_at_ms, sum) VALUES (1, ?, 0, 0)').run(MERCHANT);
  const statements: string[] = [];
  const db = new Proxy(file, {
    get: (target, name) => {
      if (name === 'prepare')
        return (sql: string) => {
          statements.push(sql);
          return target.prepare(sql);
        };
      const value = Reflect.get(target, name) as unknown;
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  const takePlans = (): string[] =>
    statements.splice(0).map((sql) => {
      const parameters = Object.fromEntries([...sql.matchAll(/@(\w+)/g)].map(([, name = '']) => [name, 1]));
      const unnamed = [...sql.matchAll(/\?/g)].map(() => 1);
      const rows = file.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...unnamed, ...(unnamed.length ? [] : [parameters]));
      return (rows as { detail: string }[]).map(({ detail }) => detail).join('; ');
    });
  return { db, tables: new Kysely<Tables>({ dialect: new SqliteDialect({ database: db }) }), takePlans };
}

/** Matches a plan that reads a whole table without an index (`SCAN command`) or sorts (`USE TEMP B-TREE`). */
const IS_SLOW = /SCAN (?!\w+ USING)|TEMP B-TREE/;

t.test('pages of commands use an index: of all, of one lock, in one state, of a merchant', async (t) => {
  const { tables, takePlans } = await recordedStore(t);
  const commands = new CommandTableStore(
    { mutex: undefined as never, tables, readTables: tables, dialect: SQLITE },
    async () => undefined,
  );
  const page = { beforeId: 1_000, limit: 50 };
  const wanted: readonly (readonly [object, RegExp])[] = [
    [{}, /command USING INTEGER PRIMARY KEY \(rowid<\?\)/],
    [{ deviceId: 1 }, /command USING INDEX command_by_device \(device_id=\? AND id<\?\)/],
    [{ state: 'failed' }, /command USING INDEX command_by_state \(state=\? AND id<\?\)/],
    [{ deviceId: 1, state: 'failed' }, /command USING INDEX command_by_\w+ \(\w+=\? AND id<\?\)/],
    [{ merchantId: 1 }, /command USING INDEX command_by_merchant \(merchant_id=\? AND id<\?\)/],
  ];
  for (const [filter, plan] of wanted) {
    await commands.list({ ...filter, ...page });
    const [found = ''] = takePlans();
    t.match(found, plan);
    t.notMatch(found, IS_SLOW);
  }
});

t.test('pages of a merchant’s findings use an index', async (t) => {
  const { db, takePlans } = await recordedStore(t);
  // It prepares its statements when it is made.
  const why = new SqliteWhy(db, undefined as never, undefined as never);
  const [plan = '', ...others] = takePlans().filter((each) => each.includes('finding_by_merchant'));
  t.match(plan, /f USING INDEX finding_by_merchant \(merchant_id=\? AND id<\?\)/);
  t.notMatch(plan, IS_SLOW);
  t.same(others, []);
  t.same(await why.readFindingsOfMerchant(1, 50, 9), []);
  t.same(takePlans(), [], 'a page prepares no other statement');
});

t.test('pages of notices, latest first, use an index', async (t) => {
  const { tables, takePlans } = await recordedStore(t);
  const notices = new Notices({
    mutex: undefined as never,
    tables,
    readTables: tables,
    dialect: SQLITE,
    queue: () => undefined,
  });
  for (const filter of [{}, { unread: true }, { unread: false, kind: 'statement' as const, sinceMs: 1 }]) {
    await notices.list({ ...filter, after: { lastAtMs: 9, id: 9 }, limit: 50 });
    const [plan = ''] = takePlans();
    t.match(plan, /notice USING INDEX notice_by_time/);
    t.notMatch(plan, IS_SLOW);
  }
});

t.test('pages of the audit log read a range of ids by an index', async (t) => {
  const { tables, takePlans } = await recordedStore(t);
  const audit = new Audit({ mutex: undefined as never, tables, readTables: tables, dialect: SQLITE });
  for (const filter of [
    {},
    { action: 'device' },
    { object: 'A' },
    { merchant: MERCHANT },
    { sinceMs: 1, action: 'device.set' },
  ]) {
    await audit.list({ ...filter, fromId: 1, beforeId: 2_001, limit: 50 });
    const plan = takePlans().at(-1) ?? '';
    t.match(plan, /audit USING (INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)|INDEX audit_\w+ \(\w+=\? AND id>)/);
    t.notMatch(plan, IS_SLOW);
  }
});

t.test('pages of a merchant’s users use an index', async (t) => {
  const { db, tables, takePlans } = await recordedStore(t);
  const people = new SqlitePeople({ reader: db, readTables: tables, write: undefined as never, quota: {} as never });
  // Without the statements that it has prepared for other uses.
  takePlans();
  await people.listUsers({ merchantId: 1, afterId: 5n, limit: 50 });
  const plan = takePlans().find((each) => each.includes('user_account')) ?? '';
  t.match(
    plan,
    /user_account USING PRIMARY KEY \(merchant_id=\? AND id>\?\)|user_account USING INDEX .*merchant_id=\? AND id>\?/,
  );
  t.notMatch(plan, IS_SLOW);
});

t.test('pages of deliveries use an index: a range of the log, of a merchant or a lock', async (t) => {
  const { db, takePlans } = await recordedStore(t);
  const reader = new DeliveryReader(db, new UplinkMemtable(0, 0), new PassingEvents(db));
  const positions = { cursor: positionAfter(50), startedAfter: LOG_START };
  const url = { id: 1, merchantId: 1, state: 'active', ...positions, filter: null } as WebhookUrl;
  const range = { urlIds: [1], states: DELIVERY_STATES, fromId: 1, toId: 100, limit: 50 };
  t.same(reader.read(url, [], range), [] satisfies StoredUplink[]);
  const plans = takePlans();
  t.ok(plans.length >= 11, 'each of the reader’s eleven statements was prepared');
  for (const plan of plans) t.notMatch(plan, IS_SLOW);
});
