/**
 * `lockgate db move`: a store in a data folder gets into a database with every row, and is refused in the folder from
 * then on; an interrupted move is completed. `lockgate db check --store` finds what is not consistent in a database.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import { LOG_START, positionAfter, slotOf } from '../../../../gateway/store/contract/log/log-position.js';
import { LEFT_TABLES, MOVED_TABLES } from '../../../../gateway/store/move/moved-tables.js';
import { openStore, sqliteUrl } from '../../../../gateway/store/open-store.js';
import { storable } from '../../../../gateway/store/postgres/move/target-tables.js';
import { openDurable } from '../../../../gateway/store/sqlite/durable-file.js';
import { checkStoreInDatabase } from '../../../../gateway/store/store-at-rest.js';
import { type MoveStep, moveStore } from '../../../../gateway/store/store-move.js';
import { runLockgate } from '../../../helpers/cli/program.js';
import { chooseSeed, SeededChance } from '../../../helpers/pair/seeded-chance.js';
import { type PostgresServer, postgresMissing } from '../../../helpers/store/postgres/server.js';
import { TestDatabases } from '../../../helpers/store/postgres/test-database.js';
import { stockStore } from '../../../helpers/store/stocked-store.js';
import { type Teardown, tempFolder } from '../../../helpers/store/temp-folder.js';
import { commit, uplink } from '../contract/contract-store.js';

t.setTimeout(170_000);
const options = { skip: postgresMissing ?? false };
const databases = new TestDatabases(t);
const seed = chooseSeed();
const STOCK = { locks: 12, pings: 120 };
const USERS = { merchantId: 1, afterId: null, limit: 10 };
const WHO = { actor: 'owner', address: null, agent: null, osUser: 'ann', token: null } as const;

/** A data folder with a store that has rows in most tables, and an empty database. */
async function folderAndDatabase(test: Teardown) {
  const folder = tempFolder(test);
  await stockStore(folder, STOCK, new SeededChance(seed));
  const server = await databases.server();
  const url = await server.createDatabase();
  return { folder, url, server, name: new URL(url).pathname.slice(1) };
}

/** Moves, and stops after a step, as a killed process would. */
async function interruptedMove(folder: string, url: string, after: MoveStep): Promise<void> {
  const onStep = (step: MoveStep): void => {
    if (step === after) throw new Error('killed');
  };
  await t.rejects(moveStore(folder, url, { who: WHO, onStep }), { message: 'killed' });
}

const refusalOf = async (url: string): Promise<unknown> => {
  const opened = await openStore(url).catch((error: { code?: string }) => error.code);
  if (typeof opened !== 'object') return opened;
  await opened.close();
  return 'it starts';
};

t.test('a U+0000 becomes U+FFFD, in a filter its escape too; an escaped backslash before u0000 stays', async (t) => {
  const table = { name: 'webhook_url', columns: ['url', 'filter'], types: ['text', 'jsonb'] };
  const filter = JSON.stringify({ labels: { a: 'x\0', b: '\\u0000' } });
  const [url, stored] = storable(table, ['a\0', filter]);
  t.equal(url, 'a\uFFFD');
  t.same(JSON.parse(String(stored)), { labels: { a: 'x\uFFFD', b: '\\u0000' } });
});

t.test('a store is moved with every row, and goes on in the database', options, async (t) => {
  const { folder, url, server, name } = await folderAndDatabase(t);
  const file = path.join(folder, 'lockgate.sqlite');
  const before = await openStore(sqliteUrl(folder));
  const events = await before.readEvents(1, LOG_START, 1_000);
  const urls = await before.listWebhookUrls();
  const users = await before.people.listUsers(USERS);
  await before.addMerchant('Left', 1);
  await before.close();
  const source = new SqliteDatabase(file, { readonly: true });
  const tables = source
    .prepare(`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`)
    .pluck()
    .all() as string[];
  const named = tables.filter((table) => !table.startsWith('kysely_'));
  t.same([...MOVED_TABLES, ...LEFT_TABLES].sort(), named, 'each table is moved, or left on purpose');
  const countOf = (table: string) => source.prepare(`SELECT count(*) FROM "${table}"`).pluck().get() as number;
  const counts = MOVED_TABLES.map((table) => ({ name: table, rows: countOf(table) }));
  source.close();

  const moved = await moveStore(folder, url, { who: WHO });
  t.match(moved, { to: /^postgres:\/\/127.0.0.1:\d+\/lockgate_\d+$/, replacedRows: 0 });
  t.same(moved.tables, counts);
  t.equal(await refusalOf(sqliteUrl(folder)), 'store-moved');
  await t.rejects(moveStore(folder, url, { who: WHO }), { code: 'store-moved' });
  t.match((await checkStoreInDatabase(url, () => undefined)).damage, []);

  const store = await openStore(url);
  t.teardown(() => store.close());
  t.same(await store.readEvents(1, LOG_START, 1_000), events);
  t.same(await store.readEvents(1, positionAfter(events[49]?.id ?? 0), 1_000), events.slice(50), 'from a cursor');
  t.same(await store.listWebhookUrls(), urls);
  t.same(await store.people.listUsers(USERS), users);
  t.match(await store.audit.list({ limit: 1 }), [{ action: 'store.move', osUser: 'ann', outcome: 'done' }]);
  t.equal((await store.addMerchant('Next', 1)).id, 3, 'ids that were given once are not given again');
  t.match(await store.append(commit(uplink(5_000))), { repeatedUplinks: [] });
  t.match(await store.readEvents(1, positionAfter(events.at(-1)?.id ?? 0), 10), [{ sequence: 5_000 }]);
  const [row] = await server.query(name, 'SELECT max(id)::text AS id FROM uplink');
  t.equal(slotOf(Number(row?.id)), store.ownership.slot, 'the new uplink is in the gateway’s slot');
});

t.test('a move that is interrupted before the store is marked leaves the folder in charge', options, async (t) => {
  const { folder, url } = await folderAndDatabase(t);
  await interruptedMove(folder, url, 'filled');
  t.equal(await refusalOf(url), 'move-unfinished');
  const store = await openStore(sqliteUrl(folder));
  await store.addMerchant('Later', 1);
  await store.close();
  await moveStore(folder, url, { who: WHO });
  t.equal(await refusalOf(sqliteUrl(folder)), 'store-moved');
  const inDatabase = await openStore(url);
  t.teardown(() => inDatabase.close());
  t.ok(
    (await inDatabase.listMerchants()).some(({ name }) => name === 'Later'),
    'what the folder got meanwhile is there',
  );
});

t.test('a move that is interrupted after the store is marked can only be completed', options, async (t) => {
  const { folder, url, server } = await folderAndDatabase(t);
  await interruptedMove(folder, url, 'marked');
  t.equal(await refusalOf(url), 'move-unfinished');
  t.equal(await refusalOf(sqliteUrl(folder)), 'store-moved');
  await t.rejects(moveStore(folder, await server.createDatabase(), { who: WHO }), { code: 'store-moved' });
  t.same((await moveStore(folder, url, { who: WHO })).tables, []);
  t.equal(await refusalOf(url), 'it starts');
});

t.test(
  'a database with rows, a damaged store and a running gateway are refused; nothing changes',
  options,
  async (t) => {
    const { folder, url, server } = await folderAndDatabase(t);
    const used = await openStore(url);
    await t.rejects(moveStore(folder, url, { who: WHO }), { code: 'data-in-use' });
    await used.addMerchant('Amber', 1);
    await used.close();
    await t.rejects(moveStore(folder, url, { who: WHO }), {
      code: 'store-not-empty',
      message: /its table merchant has/,
    });
    const empty = await server.createDatabase();
    const running = await openStore(sqliteUrl(folder));
    await t.rejects(moveStore(folder, empty, { who: WHO }), { code: 'data-in-use' });
    await running.close();
    const file = path.join(folder, 'lockgate.sqlite');
    const bytes = readFileSync(file);
    // One flipped bit in the name of a user.
    const damaged = Buffer.from(bytes);
    const at = damaged.lastIndexOf('Zoë');
    damaged.writeUInt8(damaged.readUInt8(at) ^ 1, at);
    writeFileSync(file, damaged);
    await t.rejects(moveStore(folder, empty, { who: WHO }), { code: 'store-damaged' });
    writeFileSync(file, bytes);
    t.equal(await refusalOf(sqliteUrl(folder)), 'it starts');
    t.equal(await refusalOf(empty), 'it starts');
  },
);

t.test('rows that arrive changed are noticed, and texts with U+0000 are replaced', options, async (t) => {
  const { folder, url, server, name } = await folderAndDatabase(t);
  const writer = openDurable(path.join(folder, 'lockgate.sqlite'));
  writer.prepare('UPDATE pet SET name = ? WHERE merchant_id = 1').run('R\0x');
  writer.close();
  // The first call makes the tables, of which a trigger then changes a value, as a broken disk would.
  await interruptedMove(folder, url, 'filled');
  await server.query(
    name,
    `CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.duration_ms := 4; RETURN NEW; END $$;
     CREATE TRIGGER spoil BEFORE INSERT ON attempt FOR EACH ROW WHEN (NEW.id = 7) EXECUTE FUNCTION spoil()`,
  );
  await t.rejects(moveStore(folder, url, { who: WHO }), { code: 'move-differs', message: /^the table attempt has/ });
  await server.query(name, 'DROP TRIGGER spoil ON attempt');
  t.match(await moveStore(folder, url, { who: WHO }), { replacedRows: 1 });
  t.same(await server.query(name, 'SELECT name FROM pet'), [{ name: 'R\uFFFDx' }]);
});

/** Damage of each kind, as a change of a database, and the check and the table that report it. */
const DAMAGE = [
  ['log', 'uplink', `UPDATE uplink SET bytes = set_byte(bytes, 3, 255) WHERE id = 5`],
  ['log', 'uplink', 'UPDATE uplink SET slot = 1 WHERE id = 5'],
  ['log', 'uplink', 'INSERT INTO uplink SELECT * FROM uplink WHERE id = 5'],
  ['outbox', 'url_cursor', 'UPDATE url_cursor SET slot = 9 WHERE url_id = 1'],
  ['outbox', 'webhook_url', 'DELETE FROM attempt WHERE url_id = 1 AND uplink_id = 3'],
  ['outbox', 'attempt', 'UPDATE attempt SET uplink_id = 5000 WHERE id = 1'],
  ['outbox', 'delivery', 'UPDATE delivery SET next_attempt_at_ms = NULL WHERE uplink_id = 7 AND url_id = 1'],
  ['outbox', 'webhook_gap', 'INSERT INTO webhook_gap (url_id, slot, after_id, until_id) VALUES (1, 0, 9, 7)'],
  ['usage', 'usage', 'UPDATE usage SET billed_bytes_up = billed_bytes_up - 1'],
  ['kept', 'merchant_kept', 'UPDATE merchant_kept SET pets = pets + 1'],
] as const;

async function damagedChecks(server: PostgresServer, template: string, sql: string) {
  const url = await server.createDatabase(template);
  await server.query(new URL(url).pathname.slice(1), sql);
  return (await checkStoreInDatabase(url, () => undefined)).damage;
}

t.test('db check finds what is damaged in a database, and exits with 1', options, async (t) => {
  const { folder, url, server, name } = await folderAndDatabase(t);
  const check = (database: string) => runLockgate(['db', 'check', '--store', database]);
  t.match(await check(url), { exit: { code: 2 }, stderr: [/is not a lockgate store/] });
  const moved = await runLockgate(['db', 'move', '--data', folder, '--to', url, '--json']);
  t.equal(moved.exit?.code, 0, moved.stderr.join('\n'));
  t.match(JSON.parse(moved.stdout.join('')), { data: folder, to: /^postgres:/, replaced_rows: 0 });
  for (const [check, table, sql] of DAMAGE) t.match((await damagedChecks(server, name, sql))[0], { check, table }, sql);
  const withAmcheck = await server.createDatabase(name);
  await server.query(new URL(withAmcheck).pathname.slice(1), 'CREATE EXTENSION amcheck');
  const { checks, damage } = await checkStoreInDatabase(withAmcheck, () => undefined);
  t.same(damage, []);
  t.match(checks.at(-1), { name: 'pages', damaged: 0, note: 'the cluster has no data_checksums' });
  t.ok((checks.at(-1)?.count ?? 0) > 60, 'amcheck read the tables and indexes');
  const sound = await check(url);
  t.equal(sound.exit?.code, 0, sound.stderr.join('\n'));
  t.match(sound.stdout.join('\n'), /amcheck is not installed/);
  await server.query(name, 'UPDATE merchant_kept SET pets = pets + 1');
  t.match(await check(url), { exit: { code: 1 }, stdout: /Damaged in one place: postgres:/ });
});
