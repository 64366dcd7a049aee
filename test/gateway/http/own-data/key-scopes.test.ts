/**
 * The scopes of merchants' API keys (interfaces.md §2): keys are created with scopes, a call outside them is refused,
 * and keys that were created before scopes existed have the scope `spec`, which allows the operations of the
 * specification.
 */
import path from 'node:path';
import t from 'tap';
import { ALL_KEY_SCOPES } from '../../../../gateway/store/contract/merchants/key-scopes.js';
import { checkDatabase } from '../../../../gateway/store/sqlite/check/check.js';
import { openDurable } from '../../../../gateway/store/sqlite/durable-file.js';
import { migrationProvider } from '../../../../gateway/store/sqlite/migrations.js';
import { openSqliteStore } from '../../../../gateway/store/sqlite/open-sqlite-store.js';
import { Kysely, Migrator, SqliteDialect } from '../../../../gateway/store/tables/kysely.js';
import { MERCHANT, testGateway } from '../../../helpers/gateway/test-gateway.js';
import { accessToken, callMerchantApi } from '../../../helpers/http/merchant-call.js';
import { tempFolder } from '../../../helpers/store/temp-folder.js';

t.test('a key has the scopes that it was created with, or all if none were given', async (t) => {
  const gateway = await testGateway(t);
  const { apiKeys } = gateway.merchants;
  t.strictSame((await apiKeys.create(MERCHANT, 'all')).key.scopes, ALL_KEY_SCOPES);
  const created = await apiKeys.create(MERCHANT, 'map', { scopes: ['commands', 'locks:read', 'commands'] });
  t.strictSame(created.key.scopes, ['locks:read', 'commands'], 'once each, in the order of ALL_KEY_SCOPES');
  t.match(await apiKeys.check(created.text), { scopes: ['locks:read', 'commands'] });
  await t.rejects(apiKeys.create(MERCHANT, 'x', { scopes: ['locks'] }), { code: 'input-scopes' });
  await t.rejects(apiKeys.create(MERCHANT, 'x', { scopes: [] }), { code: 'input-scopes' });
});

t.test('a key without the scope spec gets no token, and changes nothing', async (t) => {
  const gateway = await testGateway(t);
  const { text: key } = await gateway.merchants.apiKeys.create(MERCHANT, 'map', { scopes: ['locks:read'] });
  t.equal(await accessToken(gateway, key), undefined);
  const refused = await callMerchantApi(gateway, '/v1/pet', { key, body: { name: 'Rex' } });
  t.match(refused, { status: 403, body: { code: 'insufficient-scope', detail: /lacks the scope spec/ } });
  t.notOk(refused.headers['www-authenticate'], 'the client need not authenticate in another way, but with another key');
});

t.test('keys of a store that was made before scopes existed have the scope spec', async (t) => {
  const folder = tempFolder(t);
  const file = path.join(folder, 'lockgate.sqlite');
  const db = openDurable(file);
  const tables = new Kysely<unknown>({ dialect: new SqliteDialect({ database: db }) });
  // The last migration before keys had scopes.
  const { error } = await new Migrator({ db: tables, provider: migrationProvider }).migrateTo('0016-kept');
  t.notOk(error);
  db.exec(`INSERT INTO merchant (id, name, created_at_ms) VALUES (1, 'Amber', 1);
    INSERT INTO api_key (merchant_id, public_id, name, secret_hash, created_at_ms)
    VALUES (1, '3f9a0c2b7d41', 'till', x'07', 1);`);
  db.close();
  const store = await openSqliteStore(folder);
  t.match(await store.access.findKey('3f9a0c2b7d41'), { name: 'till', scopes: ['spec'] });
  await store.close();
  t.same((await checkDatabase(file)).damage, [], 'the store is undamaged');
});
