/**
 * Merchants' API keys that expire: an expired key and its access tokens are refused, and don't count to the maximum.
 */
import path from 'node:path';
import t from 'tap';
import { MAX_KEYS_PER_MERCHANT } from '../../../gateway/store/contract/merchants/access-store.js';
import { checkDatabase } from '../../../gateway/store/sqlite/check/check.js';
import { openDurable } from '../../../gateway/store/sqlite/durable-file.js';
import { migrationProvider } from '../../../gateway/store/sqlite/migrations.js';
import { openSqliteStore } from '../../../gateway/store/sqlite/open-sqlite-store.js';
import { Kysely, Migrator, SqliteDialect } from '../../../gateway/store/tables/kysely.js';
import { Days, Minutes, systemClock } from '../../../proto/clock.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { MERCHANT, testGateway } from '../../helpers/gateway/test-gateway.js';
import { accessToken, callMerchantApi } from '../../helpers/http/merchant-call.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const START_MS = Date.UTC(2026, 10, 20);

t.test('an expired key is refused like an unknown one, and so are its tokens', async (t) => {
  let nowMs = START_MS;
  const machine = { wall: () => nowMs, monotonic: () => nowMs, after: systemClock.after };
  const gateway = await testGateway(t, { machine });
  const { apiKeys } = gateway.merchants;
  const made = await callOperator(gateway, 'POST', '/keys', { name: 'till', expires_at: '2026-11-20T00:20:00Z' });
  t.match(made, { status: 201, body: { state: 'active', expires_at: '2026-11-20T00:20:00.000Z' } });
  const { key, id } = made.body as { key: string; id: string };
  const issued = await callMerchantApi(gateway, '/oauth/token', {
    key,
    body: 'grant_type=client_credentials',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
  t.match(issued, { status: 200, body: { expires_in: 20 * 60 } }, 'the token ends with the key');
  const token = await accessToken(gateway, key);
  /** A call with the key: a logout is 200 for every valid key, also without a session. */
  const callWithKey = () => callMerchantApi(gateway, '/v2/user/logout', { key });
  /** A call with the key's token, which updates a pet (the interface has a pet registry): 404, as there is none. */
  const callWithToken = () =>
    callMerchantApi(gateway, '/v2/pet', { method: 'PUT', token, body: { id: 1, name: 'Rex', photoUrls: [] } });
  t.match([await callWithKey(), await callWithToken()], [{ status: 200 }, { status: 404 }], 'both are accepted');
  nowMs += Minutes(20);
  const expired = await callWithKey();
  t.match(expired, { status: 401 });
  const unknown = await callMerchantApi(gateway, '/v2/user/logout', { key: key.replace(id, '0123456789ab') });
  t.same(expired.body, unknown.body, 'the same answer as for an unknown key');
  t.match(await callWithToken(), { status: 401 }, 'so is its token');
  t.equal(await accessToken(gateway, key), undefined);
  t.match(await callOperator(gateway, 'GET', '/keys'), { body: { keys: [{ id, state: 'expired' }] } });
  t.match(await apiKeys.revoke(id), { revokedAtMs: Number });
  t.match(await callOperator(gateway, 'GET', '/keys'), { body: { keys: [{ state: 'revoked' }] } });
});

t.test('an expiry is a date in the future', async (t) => {
  const gateway = await testGateway(t);
  const create = (expiry: string) => callOperator(gateway, 'POST', '/keys', { name: 'till', expires_at: expiry });
  for (const wrong of ['tomorrow', '2020-01-01T00:00:00Z', '2100-02-30T00:00:00Z'])
    t.match(await create(wrong), { status: 400, body: { code: 'input-expiry' } }, wrong);
  t.match(await create('2100-01-01T00:00:00Z'), { status: 201 });
});

t.test('expired keys don’t count toward the maximum', async (t) => {
  const store = await openSqliteStore(tempFolder(t));
  t.teardown(() => store.close());
  await store.addMerchant(MERCHANT, 0);
  // `spec` is the scope for the operations of the service specification.
  const key = { merchant: MERCHANT, name: 'k', secretHash: Buffer.alloc(32), scopes: ['spec'] as const };
  const add = (publicId: number, nowMs: number) =>
    store.access.addKey({ ...key, publicId: String(publicId), nowMs, expiresAtMs: Days(1) });
  for (let count = 0; count < MAX_KEYS_PER_MERCHANT; count += 1) await add(count, 0);
  await t.rejects(add(1_000, Days(1) - 1), { code: 'too-many-keys' });
  t.match(await add(1_001, Days(1)), { publicId: '1001' });
});

t.test('keys of a store that was made before keys could expire don’t expire', async (t) => {
  const folder = tempFolder(t);
  const file = path.join(folder, 'lockgate.sqlite');
  const db = openDurable(file);
  const tables = new Kysely<unknown>({ dialect: new SqliteDialect({ database: db }) });
  // The last migration before the one that gave keys an expiry.
  const { error } = await new Migrator({ db: tables, provider: migrationProvider }).migrateTo('0020-usage-by-lock');
  t.notOk(error);
  db.exec(`INSERT INTO merchant (id, name, created_at_ms) VALUES (1, 'Amber', 1);
    INSERT INTO api_key (merchant_id, public_id, name, secret_hash, created_at_ms, scopes)
    VALUES (1, '3f9a0c2b7d41', 'till', x'07', 1, 'spec users');`);
  db.close();
  const store = await openSqliteStore(folder);
  t.match(await store.access.findKey('3f9a0c2b7d41'), { scopes: ['spec', 'users'], expiresAtMs: null });
  await store.close();
  t.same((await checkDatabase(file)).damage, [], 'the store is undamaged');
});
