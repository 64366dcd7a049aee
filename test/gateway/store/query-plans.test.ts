/**
 * The statements of every list and every page of a merchant's own data and of the operators' lists: each searches by an
 * index, and none scans a table or sorts in memory, however many rows there are.
 */
import path from 'node:path';
import SqliteDatabase, { type Database } from 'better-sqlite3';
import t, { type Test } from 'tap';
import { callMerchantApi } from '../../helpers/http/merchant-call.js';
import { OWN_DATA_CALLS } from '../../helpers/http/own-data/calls.js';
import { ownDataSite } from '../../helpers/http/own-data/site.js';

/** Tables with few rows, which may be scanned: merchants, their URLs, operators' tokens, one row of settings each. */
const SMALL_TABLES = [
  ...['merchant', 'webhook_url', 'webhook_gap', 'webhook_old_secret', 'fact', 'price_plan', 'uplink_settled'],
  // Events that the next commit moves to the log, read from the first one on.
  'staged_event',
];

/** Statements that timers of the gateway run, and no list. They may come while the test records. */
const TIMER_STATEMENTS = ['select "kind", count(*) as "unread" from "notice"'];

/** Statements that may sort in memory, since few rows of one lock match: its power settings to come, its refusals. */
const SORTED_STATEMENTS = ['select "parameters" from "command"', 'select "refusal".* from "refusal"'];

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
  const { gateway, folder, amber } = await ownDataSite(t, { scanThread: false });
  const { mac, webhookId, key } = amber;
  statements.clear();
  const calls = Object.entries(OWN_DATA_CALLS).filter(([operation]) => operation.startsWith('GET'));
  for (const [operation, { call, status }] of calls) {
    const [route, options = {}] = call(amber);
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
  const db = new SqliteDatabase(path.join(folder, 'lockgate.sqlite'), { readonly: true });
  t.teardown(() => db.close());
  t.ok(statements.size > 20, `${statements.size} statements`);
  for (const sql of statements) {
    if (TIMER_STATEMENTS.some((start) => sql.startsWith(start))) continue;
    const faults = planOf(db, sql).filter((detail) => isFault(detail, sql));
    t.strictSame(faults, [], sql.replaceAll(/\s+/g, ' ').slice(0, 300));
  }
});

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

function isFault(detail: string, sql: string): boolean {
  if (detail.includes('TEMP B-TREE')) return !SORTED_STATEMENTS.some((start) => sql.startsWith(start));
  const scanned = /^SCAN (\S+)/.exec(detail)?.[1];
  if (scanned === undefined || SMALL_TABLES.includes(scanned)) return false;
  // A slice that is counted: the subquery's own search is another line of the plan.
  if (/^\(subquery-\d+\)$/.test(scanned) && / LIMIT @limit\)$/.test(sql.trim())) return false;
  // The first page in the order of an index.
  return !(/USING (COVERING )?INDEX/.test(detail) && /\blimit \?$/i.test(sql.trim()));
}
