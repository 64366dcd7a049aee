/**
 * The statements of every list and every page of a merchant's own data and of the operators' lists: each searches by an
 * index, and none scans a table or sorts in memory, however many rows there are.
 */
import path from 'node:path';
import SqliteDatabase, { type Database } from 'better-sqlite3';
import t, { type Test } from 'tap';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { callMerchantApi } from '../../helpers/http/merchant-call.js';
import { OWN_DATA_CALLS } from '../../helpers/http/own-data/calls.js';
import { ownDataSite } from '../../helpers/http/own-data/site.js';

/**
 * Tables with few rows, which may be scanned: merchants, their URLs and keys, operators' tokens, where notices are
 * sent, one row of settings each.
 */
const SMALL_TABLES = [
  ...['merchant', 'webhook_url', 'webhook_gap', 'webhook_old_secret', 'fact', 'price_plan', 'uplink_settled'],
  ...['api_key', 'operator_token', 'notify_recipient'],
  // Events that the next commit moves to the log, read from the first one on.
  'staged_event',
];

/** Statements that timers of the gateway run, and no list. They may come while the test records. */
const TIMER_STATEMENTS = ['select "kind", count(*) as "unread" from "notice"'];

/**
 * Statements that may sort in memory, since few rows match: of one lock its power settings to come, its refusals and
 * its phones; unread notices of one kind, of which there are at most 10,000.
 */
const SORTED_STATEMENTS = [
  ...['select "parameters" from "command"', 'select "refusal".* from "refusal"', 'select * from "credential"'],
  'select * from "notice" where "read_at_ms" is null and "kind" = ?',
];

/** Statements that count, in a thread of their own: all locks, and what a URL got after its cursor. */
const COUNTING_STATEMENTS = [
  'SELECT count(*) FROM device WHERE removed_at_ms IS NULL',
  'SELECT count(*) FROM (SELECT uplink_id FROM delivery',
];

/** Further queries of the same lists: filters, orders, cursors. */
const FURTHER_PATHS: readonly ((mac: string, webhookId: number) => string)[] = [
  () => '/v1/locks?sort=trouble&presence=late&label=a&search=x',
  (mac) => `/v1/locks/${mac}/pings?from=2026-11-01T00:00:00Z&to=2026-11-20T00:00:00Z&reason=REASON_THEFT&ping_type=gps`,
  (mac) => `/v1/locks/${mac}/track?from=2026-11-01T00:00:00Z&format=gpx`,
  () => '/v1/events?limit=1&reasons=REASON_THEFT',
  () => '/v1/commands?state=queued&limit=1',
  () => '/v1/commands?limit=1',
  (mac) => `/v1/commands?mac_addr=${mac}&state=expired&limit=1`,
  (_mac, id) => `/v1/webhooks/${id}/deliveries?state=dead&limit=1`,
  (_mac, id) => `/v1/webhooks/${id}/deliveries?state=pending&limit=1`,
  () => '/v1/usage?month=2026-10&limit=1',
];

t.test('no list of a merchant’s own data scans a table or sorts in memory', async (t) => {
  const statements = recordStatements(t);
  // Without the thread that scans the log: only this thread's statements are recorded.
  const { gateway, folder, amber } = await ownDataSite(t, { scanThread: false });
  const { mac, webhookId, key } = amber;
  statements.clear();
  const calls = Object.entries(OWN_DATA_CALLS).filter(([operation]) => operation.startsWith('GET'));
  for (const [operation, { callFor, status }] of calls) {
    const [route, options = {}] = callFor(amber);
    t.equal((await callMerchantApi(gateway, route, { ...options, key })).status, status, operation);
  }
  for (const pathOf of FURTHER_PATHS) {
    const first = await callMerchantApi(gateway, pathOf(mac, webhookId), { key });
    t.equal(first.status, 200, `${pathOf(mac, webhookId)} ${first.text.slice(0, 200)}`);
    const { next_cursor: cursor } = (first.body ?? {}) as { next_cursor?: string | null };
    if (typeof cursor !== 'string') continue;
    const name = pathOf(mac, webhookId).startsWith('/v1/events') ? 'after' : 'cursor';
    const next = await callMerchantApi(gateway, `${pathOf(mac, webhookId)}&${name}=${cursor}`, { key });
    t.equal(next.status, 200, 'the next page');
  }
  checkPlans(t, folder, statements);
});

/** Lists of the operators' interface, with each filter alone and together, in the order in which they are shown. */
const OPERATOR_LISTS: readonly ((mac: string, urlId: number) => string)[] = [
  () => '/devices?limit=1',
  () => '/devices?presence=late&state=theft&label=a&search=x&sort=battery&merchant=Amber',
  (mac) => `/devices/${mac}`,
  (mac) => `/devices/${mac}/phones`,
  (mac) => `/devices/${mac}/pings?limit=1`,
  (mac) => `/devices/${mac}/pings?since=2026-11-01T00:00:00Z&until=2026-11-30T00:00:00Z`,
  (mac) => `/devices/${mac}/track`,
  (mac) => `/devices/${mac}/history`,
  (mac) => `/devices/${mac}/findings?limit=1`,
  () => '/commands?limit=1',
  (mac) => `/commands?mac=${mac}&state=queued&limit=1`,
  () => '/commands?state=expired&limit=1',
  () => '/deliveries?limit=1',
  (mac, urlId) => `/deliveries?url=${urlId}&state=pending&mac=${mac}&since=2026-11-01T00:00:00Z&limit=1`,
  () => '/deliveries?state=dead&until=2026-12-01T00:00:00Z&limit=1',
  () => '/webhooks',
  (_mac, urlId) => `/webhooks/${urlId}`,
  () => '/users?merchant=Amber&limit=1',
  () => '/invitations?merchant=Amber',
  () => '/keys',
  () => '/tokens',
  () => '/merchants?all=true',
  () => '/notices?limit=1',
  () => '/notices?unread=true&kind=lock-late&since=2026-11-01T00:00:00Z&limit=1',
  () => '/audit?limit=1',
  () => '/audit?since=2026-11-01T00:00:00Z&action=device&object=x&merchant=Amber',
  () => '/usage?merchant=Amber&month=2026-11',
  () => '/usage/statements?merchant=Amber',
  () => '/status',
];

t.test('no list of the operators’ interface scans a table or sorts in memory', async (t) => {
  const statements = recordStatements(t);
  const { gateway, folder, amber } = await ownDataSite(t, { scanThread: false });
  statements.clear();
  for (const pathOf of OPERATOR_LISTS) {
    const route = pathOf(amber.mac, amber.webhookId);
    const first = await callOperator(gateway, 'GET', route);
    t.equal(first.status, 200, route);
    const { next_cursor: cursor } = first.body as { readonly next_cursor?: string | null };
    if (typeof cursor !== 'string') continue;
    t.equal((await callOperator(gateway, 'GET', `${route}&cursor=${cursor}`)).status, 200, `${route}, the next page`);
  }
  checkPlans(t, folder, statements);
});

/** Checks that no statement scans a table or sorts in memory. */
function checkPlans(test: Test, folder: string, statements: ReadonlySet<string>): void {
  const db = new SqliteDatabase(path.join(folder, 'lockgate.sqlite'), { readonly: true });
  test.teardown(() => db.close());
  test.ok(statements.size > 20, `${statements.size} statements`);
  for (const sql of statements) {
    const text = sql.replaceAll(/\s+/g, ' ').trim();
    if ([...TIMER_STATEMENTS, ...COUNTING_STATEMENTS].some((start) => text.startsWith(start))) continue;
    const faults = planOf(db, sql).filter((detail) => isFault(detail, sql));
    test.strictSame(faults, [], text.slice(0, 300));
  }
}

/** Returns a set that gets the text of each statement that reads, in this thread, until the test ends. */
function recordStatements(test: Test): Set<string> {
  type Reader = (this: { readonly source: string }, ...values: unknown[]) => unknown;
  const texts = new Set<string>();
  const sample = new SqliteDatabase(':memory:');
  const statement = Object.getPrototypeOf(sample.prepare('SELECT 1')) as Record<string, Reader>;
  sample.close();
  for (const name of ['all', 'get', 'iterate']) {
    const original = statement[name] as Reader;
    statement[name] = function (...values: unknown[]): unknown {
      if (/^\s*(WITH|SELECT)\b/i.test(this.source)) texts.add(this.source);
      return original.apply(this, values);
    };
    test.teardown(() => {
      statement[name] = original;
    });
  }
  return texts;
}

/** The steps of a statement's plan. */
function planOf(db: Database, sql: string): string[] {
  // A plan does not depend on the values.
  const statement = db.prepare(`EXPLAIN QUERY PLAN ${sql}`);
  const named = Object.fromEntries([...sql.matchAll(/@(\w+)/g)].map(([, name]) => [name, 1]));
  const unnamed = [...sql.matchAll(/\?/g)].map(() => 1);
  const values = Object.keys(named).length > 0 ? [...unnamed, named] : unnamed;
  return (statement.all(...values) as { readonly detail: string }[]).map(({ detail }) => detail);
}

/** Whether a step of a statement's plan scans a large table or sorts many rows. */
function isFault(detail: string, sql: string): boolean {
  // Only rows that are equal in the index's columns are sorted.
  if (detail.includes('TEMP B-TREE FOR LAST TERM')) return false;
  if (detail.includes('TEMP B-TREE')) return !SORTED_STATEMENTS.some((start) => sql.startsWith(start));
  const scanned = /^SCAN (\S+)/.exec(detail)?.[1];
  if (scanned === undefined || SMALL_TABLES.includes(scanned)) return false;
  // A slice that is counted: the subquery's own search is another line of the plan.
  if (/^\(subquery-\d+\)$/.test(scanned) && / LIMIT @limit\)$/.test(sql.trim())) return false;
  // The first page in the order of an index, or of the ids.
  const isInOrder = /USING (COVERING )?INDEX/.test(detail) || /order by "\w+"\."id" desc limit \?$/.test(sql.trim());
  return !(isInOrder && /\blimit \?$/i.test(sql.trim()));
}
