/** An unusable database is refused at the start, in a clear sentence; so is a request with a text it can’t store. */
import t from 'tap';
import { exitCodeOf } from '../../../../cli/terminal/exit-codes.js';
import { readConfig } from '../../../../gateway/config-reader.js';
import { startGateway } from '../../../../gateway/gateway.js';
import { resolveSettings, settingsInForce } from '../../../../gateway/resolved-settings.js';
import { openStore } from '../../../../gateway/store/open-store.js';
import { refuseUnsafe } from '../../../../gateway/store/postgres/connections/connections.js';
import { serverWarnings } from '../../../../gateway/store/postgres/connections/server-warnings.js';
import { openPostgresStore } from '../../../../gateway/store/postgres/open-postgres-store.js';
import { MERCHANT, testGateway } from '../../../helpers/gateway/test-gateway.js';
import { accessToken, apiKey, callMerchantApi } from '../../../helpers/http/merchant-call.js';
import { postgresMissing } from '../../../helpers/store/postgres/server.js';
import { TestDatabases } from '../../../helpers/store/postgres/test-database.js';
import { tempFolder } from '../../../helpers/store/temp-folder.js';

t.setTimeout(170_000);
const options = { skip: postgresMissing ?? false };
const databases = new TestDatabases(t);

/** The error of a start on this database. */
async function failureOf(url: string): Promise<Error & { readonly code?: string }> {
  return await openStore(url).then(
    () => new Error('it started'),
    (error: Error) => error,
  );
}

t.test('a URL that names no database is refused without quoting it; a password is never shown', async (t) => {
  for (const store of ['mysql://ann:secret@db/x', 'postgres://ann:secret@db', 'postgres', 'sqlite:./data'])
    t.throws(() => readConfig(resolveSettings({ store }, {})), {
      code: 'input-setting',
      message: /^--store is not the URL of a database: expected postgres:\/\/USER/,
    });
  const resolved = resolveSettings({}, { LOCKGATE_STORE: 'postgresql://ann:secret@db:6000/locks?sslmode=require' });
  t.equal(readConfig(resolved).store, 'postgres://ann:secret@db:6000/locks?sslmode=require');
  t.match(
    settingsInForce(resolved).find(({ flag }) => flag === '--store'),
    { value: 'postgres://db:6000/locks', given: 'postgres://db:6000/locks' },
  );
  const config = readConfig(resolveSettings({ store: 'postgres://db/locks', data: tempFolder(t) }, {}));
  const sped = await startGateway(config, { speed: 60 }).catch((error: Error) => error);
  t.match(sped, { code: 'input-setting', message: /^--store and --speed exclude each other/ });
});

t.test('a server that would lose commits is refused', async (t) => {
  // The version is that of PostgreSQL 15.0, as the server's setting `server_version_num` has it.
  const good = { fsync: 'on', full_page_writes: 'on', synchronous_commit: 'on', is_standby: false, version: 150_000 };
  refuseUnsafe(good);
  const wrong: readonly (readonly [object, RegExp])[] = [
    [{ fsync: 'off' }, /its setting fsync is off$/],
    [{ full_page_writes: 'off' }, /full_page_writes is off$/],
    [{ synchronous_commit: 'local' }, /synchronous_commit can’t be set to on$/],
    [{ is_standby: true }, /it is a standby: connect to the primary$/],
    [{ version: 140_010 }, /it is older than PostgreSQL 15$/],
  ];
  for (const [changed, message] of wrong)
    t.throws(() => refuseUnsafe({ ...good, ...changed }), { code: 'store-unsafe', message });
});

t.test('a start warns of a server without a standby or checksums, and of a connection pooler', options, async (t) => {
  // The process 7 of the server accepted the connection, and runs its queries.
  const good = { standbys: 'ANY 1 (two)', checksums: 'on', queryPid: 7, startupPid: 7 };
  t.same(serverWarnings(good), []);
  t.match(serverWarnings({ ...good, queryPid: 8 }), [/^a connection pooler is between/]);
  const warnings: string[] = [];
  const store = await databases.open(tempFolder(t), { onWarning: (what) => warnings.push(what) });
  await store.close();
  t.match(warnings, [/no synchronous standby/, /no checksums of pages/]);
  t.equal(warnings.length, 2, 'the tests connect directly');
});

t.test('a server that can’t be used is refused in a sentence, with exit code 3', options, async (t) => {
  const server = await databases.server();
  const nobody = await failureOf('postgres://ann:secret@127.0.0.1:1/locks');
  t.match(nobody, {
    code: 'store-unreachable',
    message: /^postgres:\/\/127.0.0.1:1\/locks can't be reached: .*REFUSED/,
  });
  t.notMatch(nobody.message, /secret/);
  const missing = await failureOf(server.url('none'));
  t.match(missing, { code: 'store-refused', message: /it has no such database: make one with createdb/ });
  const stranger = await failureOf(server.url('postgres').replace('postgres@', 'nobody@'));
  t.match(stranger, { code: 'store-refused', message: /it refuses the user/ });
  for (const error of [nobody, missing, stranger]) t.equal(exitCodeOf(error), 3);
  await server.query('postgres', 'ALTER SYSTEM SET full_page_writes = off');
  await server.query('postgres', 'SELECT pg_reload_conf()');
  // The reload takes a moment. Until then, a start still fails only because there is no database “none”.
  let unsafe = await failureOf(server.url('none'));
  while (unsafe.code === 'store-refused') {
    const [row] = await server.query('postgres', `SELECT current_setting('full_page_writes') AS value`);
    if (row?.value === 'off') unsafe = await failureOf(server.url('postgres'));
  }
  t.match(unsafe, { code: 'store-unsafe', message: /full_page_writes is off/ });
  await server.query('postgres', 'ALTER SYSTEM RESET full_page_writes');
  await server.query('postgres', 'SELECT pg_reload_conf()');
});

t.test('an ordinary user that owns the database is enough', options, async (t) => {
  const server = await databases.server();
  await server.query('postgres', 'CREATE ROLE owner LOGIN');
  await server.query('postgres', 'CREATE DATABASE owned OWNER owner');
  const url = server.url('owned').replace('postgres@', 'owner@');
  // The first start makes the tables, the second finds them.
  for (let start = 1; start <= 2; start += 1) {
    const store = await openPostgresStore(url);
    // Each gateway that shares a database has a number, its slot; a free one is taken again.
    t.match(store.description, /^PostgreSQL, postgres:\/\/127.0.0.1:\d+\/owned, slot 1$/);
    await store.addMerchant(`Amber ${start}`, 1);
    await store.scrub();
    await store.close();
  }
});

t.test('a text with U+0000 is a mistake of the caller, whose members are named', options, async (t) => {
  const gateway = await testGateway(t, {}, { store: await databases.urlOf(tempFolder(t)) });
  const key = await apiKey(gateway, MERCHANT);
  const token = await accessToken(gateway, key);
  const users = [{ username: 'ann' }, { username: 'bob', firstName: 'b\0', email: 'b\0@example.com' }];
  const refused = await callMerchantApi(gateway, '/v2/user/createWithList', { key, body: users });
  t.match(refused, { status: 400, body: { code: 'input-text' } }, refused.text);
  t.match(
    (refused.body as { errors?: readonly { pointer: string }[] }).errors?.map(({ pointer }) => pointer),
    ['/1/firstName', '/1/email'],
  );
  const found = await callMerchantApi(gateway, '/v2/user/a%00', { token });
  t.ok(found.status < 500, found.text);
  const search = await callMerchantApi(gateway, '/v1/locks?search=%00', { key });
  t.ok(search.status < 500, search.text);
});
