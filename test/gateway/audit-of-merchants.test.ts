/**
 * What merchants' users and programs change is in the audit log, with the merchant and the names of the API key or the
 * user; and however much a merchant changes, the entries of operators stay (interfaces.md §2, §4).
 */
import path from 'node:path';
import t from 'tap';
import { OWN_DATA_ROUTES } from '../../gateway/http/merchant/own-data/routes.js';
import {
  type AuditWho,
  MAX_AUDIT_ENTRIES,
  MAX_AUDIT_ENTRIES_PER_MERCHANT,
} from '../../gateway/store/contract/operators/audit-store.js';
import { checkDatabase } from '../../gateway/store/sqlite/check/check.js';
import { openDurable } from '../../gateway/store/sqlite/durable-file.js';
import { migrationProvider } from '../../gateway/store/sqlite/migrations.js';
import { Kysely, Migrator, SqliteDialect } from '../../gateway/store/tables/kysely.js';
import { callOperator } from '../helpers/cli/operator-call.js';
import { MERCHANT, testGateway } from '../helpers/gateway/test-gateway.js';
import { callMerchantApi } from '../helpers/http/merchant-call.js';
import { OWN_DATA_CALLS } from '../helpers/http/own-data/calls.js';
import { ownDataSite } from '../helpers/http/own-data/site.js';
import { openStore } from '../helpers/store/new-store.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

/**
 * An entry of the audit log, as far as this test reads it: `object` is what was changed, `actor` the kind of author.
 */
interface Entry {
  readonly id: number;
  readonly action: string;
  readonly object: string;
  readonly actor: string;
  readonly merchant: string | null;
}

/** What no entry may contain: hashes, API keys (lgk_), tokens of invitations (lgi_), passwords, addresses of URLs. */
const SECRETS = /hash|lgk_|lgi_|password":"|example\.com/;

t.test('each change that a merchant makes with an API key has one entry, which names the key', async (t) => {
  const { gateway, amber } = await ownDataSite(t);
  const entries = async (query = '') =>
    ((await callOperator(gateway, 'GET', `/audit${query}`)).body as { entries: Entry[] }).entries;
  const { text: key, key: row } = await gateway.merchants.apiKeys.create(amber.merchant, 'shop backend');
  for (const { method, path: route, audit } of OWN_DATA_ROUTES) {
    const operation = `${method} ${route}`;
    const ownDataCall = OWN_DATA_CALLS[operation];
    // own-data/access.test.ts checks that the table of calls has every route.
    if (ownDataCall === undefined) continue;
    const before = (await entries('?limit=1'))[0]?.id ?? 0;
    const [callPath, callOptions] = ownDataCall.callFor(amber);
    t.match(
      await callMerchantApi(gateway, callPath, { method, ...callOptions, key }),
      { status: ownDataCall.status },
      operation,
    );
    const [entry, ...others] = (await entries()).filter(({ id }) => id > before);
    if (method === 'GET') {
      t.equal(entry, undefined, `${operation} changes nothing`);
      continue;
    }
    t.type(audit, 'function', `${operation} says what the log records`);
    const author = { actor: 'key', key: 'shop backend', merchant: amber.merchant, token: row.publicId, user: null };
    t.match(entry, { ...author, outcome: 'done', address: '127.0.0.1', object: /./ }, operation);
    t.same(others, [], 'there is no other entry');
    t.notMatch(JSON.stringify(entry), SECRETS);
  }
  const refused = await callMerchantApi(gateway, '/v1/users/99', { method: 'PATCH', key: amber.key, body: {} });
  t.equal(refused.status, 404);
  const [last] = await entries('?limit=1');
  t.not(last?.object, '99', 'a refused call has no entry');
});

t.test('the log is filtered by merchant, by its present name', async (t) => {
  const gateway = await testGateway(t);
  await callOperator(gateway, 'POST', '/merchants', { name: 'Basil' });
  await callOperator(gateway, 'POST', '/users', { username: 'ada', merchant: MERCHANT });
  await callOperator(gateway, 'POST', '/devices', { mac: 'A4C138F0E1D2', merchant: 'Basil' });
  await callOperator(gateway, 'PATCH', '/devices/A4C138F0E1D2', { name: 'Harbour' });
  const merchant = { id: 1, name: MERCHANT };
  const who: AuditWho = { actor: 'user', address: null, agent: null, osUser: null, token: null, merchant, user: 'ada' };
  gateway.merchants.audit.note('key.create', '3f9a0c2b7d41', { name: 'till' }, who);
  const entriesOf = async (name: string) => {
    const { body } = await callOperator(gateway, 'GET', `/audit?merchant=${encodeURIComponent(name)}`);
    return (body as { entries: Entry[] }).entries;
  };
  t.match(await entriesOf(MERCHANT), [
    { action: 'key.create', actor: 'user', user: 'ada', key: null, merchant: MERCHANT },
    { action: 'user.add', actor: 'operator', user: null, merchant: MERCHANT },
  ]);
  t.same(
    (await entriesOf('Basil')).map(({ action }) => action),
    ['device.set', 'device.add', 'merchant.add'],
  );
  t.match(await callOperator(gateway, 'GET', '/audit?merchant=Nobody'), { status: 404 });
});

// Parts of an audit entry: two authors, what was done, and how it ended.
const OPERATOR: AuditWho = { actor: 'operator', address: null, agent: null, osUser: null, token: null };
const KEY: AuditWho = { ...OPERATOR, actor: 'key', merchant: { id: 1, name: MERCHANT }, key: 'till' };
const ENTRY = { atMs: 1, action: 'a.b', object: '', before: null };
const FINISHED = { outcome: 'done', code: null, after: null, endedAtMs: 1 } as const;

t.test('a merchant’s entries don’t push out those of operators or of another merchant', async (t) => {
  const folder = tempFolder(t);
  const store = await openStore(folder);
  for (const name of [MERCHANT, 'Basil']) await store.addMerchant(name, 0);
  await store.audit.write([
    { ...ENTRY, ...OPERATOR, ...FINISHED },
    { ...ENTRY, ...KEY, merchant: { id: 2, name: 'Basil' }, ...FINISHED },
  ]);
  const db = openDurable(path.join(folder, 'lockgate.sqlite'));
  /** Adds rows as a long time would; a given checksum is not computed. */
  const fill = (actor: string, merchantId: number | null, rows: number) =>
    db
      .prepare(
        `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
         INSERT INTO audit (at_ms, actor, action, object, outcome, merchant_id, sum)
         SELECT 1, ?, 'a.b', '', 'done', ?, 0 FROM n`,
      )
      .run(rows, actor, merchantId);
  // Old entries are deleted in batches, so that there may be a few more than the limit.
  const count = (where: string) => db.prepare(`SELECT count(*) FROM audit WHERE ${where}`).pluck().get() as number;
  fill('key', 1, MAX_AUDIT_ENTRIES_PER_MERCHANT + 200);
  await store.audit.write(Array.from({ length: 100 }, () => ({ ...ENTRY, ...KEY, ...FINISHED })));
  const ofAmber = count("merchant_id = 1 AND actor = 'key'");
  t.ok(ofAmber >= MAX_AUDIT_ENTRIES_PER_MERCHANT && ofAmber < MAX_AUDIT_ENTRIES_PER_MERCHANT + 20, `${ofAmber}`);
  t.same([count('id = 1'), count('id = 2')], [1, 1], 'the oldest two are of others');
  fill('operator', null, MAX_AUDIT_ENTRIES + 50);
  await store.audit.write(Array.from({ length: 100 }, () => ({ ...ENTRY, ...OPERATOR, ...FINISHED })));
  const ofOperators = count("actor = 'operator'");
  t.ok(ofOperators >= MAX_AUDIT_ENTRIES && ofOperators < MAX_AUDIT_ENTRIES + 100, `${ofOperators}`);
  t.same([count('id = 1'), count('id = 2')], [0, 1], 'the operator’s oldest entry is deleted, a merchant’s is not');
  const plans = [
    'SELECT * FROM audit WHERE merchant_id = 1 ORDER BY id DESC LIMIT 50',
    "SELECT id FROM audit WHERE merchant_id = 1 AND actor IN ('user', 'key') ORDER BY id DESC LIMIT 5 OFFSET 9",
  ].map((text) => JSON.stringify(db.prepare(`EXPLAIN QUERY PLAN ${text}`).all()));
  for (const plan of plans) t.match(plan, /USING INDEX audit_merchant \(merchant_id=\?/);
  db.close();
  await store.close();
});

t.test('the waiting entries of one merchant leave room for others', async (t) => {
  const gateway = await testGateway(t);
  await gateway.accounts.addMerchant('Basil');
  const basil = { ...KEY, merchant: { id: 2, name: 'Basil' } };
  // At most 300 entries of a merchant wait to be written.
  for (let count = 0; count < 1_500; count += 1) gateway.merchants.audit.note('command.send', '', null, KEY);
  gateway.merchants.audit.note('command.send', 'of Basil', null, basil);
  gateway.events.emit('url-disabled', { atMs: 0, urlId: 7, why: 'gone' });
  const list = async () =>
    ((await callOperator(gateway, 'GET', '/audit?limit=3')).body as { entries: Entry[] }).entries;
  t.match(await list(), [
    { action: 'audit.left-out', after: { count: 1_200 } },
    { action: 'webhook.disable' },
    { object: 'of Basil' },
  ]);
});

t.test('the entries of an older store name no merchant', async (t) => {
  const folder = tempFolder(t);
  const file = path.join(folder, 'lockgate.sqlite');
  const db = openDurable(file);
  const tables = new Kysely<unknown>({ dialect: new SqliteDialect({ database: db }) });
  // The last migration before the one that gave entries a merchant.
  const { error } = await new Migrator({ db: tables, provider: migrationProvider }).migrateTo('0023-dashboard-roles');
  t.notOk(error);
  db.exec(`INSERT INTO merchant (id, name, created_at_ms) VALUES (1, '${MERCHANT}', 1);
    INSERT INTO audit (at_ms, actor, os_user, action, object, after, outcome)
    VALUES (5, 'operator', 'jo', 'user.add', 'ada', '{"merchant":"${MERCHANT}"}', 'done')`);
  db.close();
  const store = await openStore(folder);
  t.match(await store.audit.list({ limit: 9 }), [{ osUser: 'jo', merchant: null, user: null, key: null }]);
  t.same(await store.audit.list({ limit: 9, merchant: MERCHANT }), []);
  await store.close();
  t.same((await checkDatabase(file)).damage, [], 'the store is undamaged');
});
