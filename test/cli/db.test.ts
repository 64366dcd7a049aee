/**
 * `lockgate db` (interfaces.md §4): the commands `check` and `backup`; a backup has everything that was acknowledged
 * before it started. db-damage.test.ts has the damage that a check finds, db-migrate.slow.test.ts the migrations.
 */
import { appendFileSync, existsSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import { copyDatabase, requireRoom } from '../../gateway/store/sqlite/backup/copy.js';
import { checkDatabase } from '../../gateway/store/sqlite/check/check.js';
import { openDurable } from '../../gateway/store/sqlite/durable-file.js';
import { STEPS } from '../../gateway/store/sqlite/migrations.js';
import { openSqliteStore } from '../../gateway/store/sqlite/open-sqlite-store.js';
import { type CommandOutput, runLockgate } from '../helpers/cli/program.js';
import { openGateway } from '../helpers/gateway/test-gateway.js';
import { chooseSeed, SeededChance } from '../helpers/pair/seeded-chance.js';
import { runBackup } from '../helpers/store/backup-run.js';
import { sharedStock } from '../helpers/store/shared-stock.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const seed = chooseSeed();
t.comment(`seed ${seed}; repeat: LOCKGATE_SEED=${seed} node dist/test/cli/db.test.js`);
t.setTimeout(170_000);

/** Copies a closed store with rows in every table; more locks and pings only take more time. */
const stockedStore = sharedStock(t, { locks: 12, pings: 120 }, new SeededChance(seed));

/** Runs `lockgate db …`. */
function db(...args: readonly string[]): Promise<CommandOutput> {
  return runLockgate(['db', ...args]);
}

t.test(
  'db check prints a table or JSON and exits with 0 sound, 1 damaged, 2 no store; also while a gateway runs',
  async (t) => {
    const { folder, file } = await stockedStore(t);
    const sound = await db('check', file);
    t.equal(sound.exit?.code, 0);
    t.match(sound.stdout[0], /^CHECK +CHECKED +DAMAGED/);
    t.match(sound.stdout.at(-1), /^Intact: /);
    const running = tempFolder(t);
    const gateway = await openGateway(t, running);
    t.equal((await db('check', '--data', running)).exit?.code, 0, 'while a gateway runs');
    await gateway.close();
    // A closed file must have the size and the checksums of its last close (`blocks`).
    appendFileSync(file, 'x');
    const damaged = await db('check', '--data', folder, '--json');
    t.equal(damaged.exit?.code, 1);
    t.match(JSON.parse(damaged.stdout.join('')), {
      sound: false,
      damage: [{ check: 'blocks', table: null, row: null }],
    });
    const { exit, stderr } = await db('check', path.join(folder, 'nothing'));
    t.equal(exit?.code, 2);
    t.equal(stderr.length, 1, 'one sentence');
    await t.rejects(checkDatabase(path.join(running, 'key')), { code: 'input-database' });
  },
);

t.test('db backup copies a folder to a file with mode 600, and does not overwrite an existing file', async (t) => {
  const { folder } = await stockedStore(t);
  const out = path.join(tempFolder(t), 'b.sqlite');
  const backup = await db('backup', '--out', out, '--data', folder, '--json');
  t.equal(backup.exit?.code, 0, backup.stderr.join('\n'));
  t.match(JSON.parse(backup.stdout.join('')), {
    file: out,
    from: 'folder',
    schema: STEPS.at(-1),
    not_included: ['key'],
  });
  t.equal(statSync(out).mode & 0o777, 0o600);
  t.same(readdirSync(path.dirname(out)).sort(), ['b.sqlite', 'b.sqlite.sums']);
  t.same((await checkDatabase(out)).damage, []);
  t.equal((await db('backup', '--out', out, '--data', folder)).exit?.code, 2);
  t.equal((await db('backup', '--out', out, '--data', folder, '--force')).exit?.code, 0);
  const toFolder = await db('backup', '--out', path.dirname(out), '--data', folder, '--force');
  t.match(toFolder, { exit: { code: 2 }, stderr: [/is not a file: expected a file or a new name$/] });
  // File names of common file systems have at most 255 bytes.
  const longName = path.join(path.dirname(out), 'x'.repeat(300));
  const toLongName = await db('backup', '--out', longName, '--data', folder);
  t.match(toLongName, { exit: { code: 2 }, stderr: [/can’t be written: its name is too long$/] });
  t.same(readdirSync(path.dirname(out)).sort(), ['b.sqlite', 'b.sqlite.sums'], 'no partial file is left');
  t.equal((await db('backup', '--out', `${out}2`, '--gateway', 'http://127.0.0.1:9', '--token', 'x')).exit?.code, 3);
  t.notOk(existsSync(`${out}2.part`));
});

t.test('a disk without room is reported before anything is written', async (t) => {
  // More bytes than any disk has.
  t.throws(() => requireRoom(tempFolder(t), 2 ** 60, 'a backup'), { code: 'no-room', message: /^a backup needs/ });
});

t.test('a running store makes one copy at a time, and removes it at the end', async (t) => {
  const folder = tempFolder(t);
  const store = await openSqliteStore(folder);
  const first = store.readCopy();
  await t.rejects(store.readCopy(), { code: 'backup-exists' });
  const copy = await first;
  t.equal(statSync(copy.file).mode & 0o777, 0o600);
  copy.remove();
  const interruptedCopy = t.rejects(store.readCopy(), { code: 'stopping' });
  await store.close();
  await interruptedCopy;
  t.notOk(readdirSync(folder).some((name) => name.startsWith('backup')));
});

t.test('a backup under load has everything acknowledged before it, and a store restored from it works', async (t) => {
  const run = await runBackup(t, { locks: 3, ackedBeforeBackup: 150 });
  t.equal(run.code, 0);
  t.match(run.printed, { from: 'gateway', key_id: /^[0-9a-f]{16}$/ });
  t.ok(run.ackedDuringBackup > 0, `${run.ackedDuringBackup} pings were acknowledged during the backup`);
  t.same(
    run.acked.filter((name) => !run.restored.has(name)),
    [],
    'no ping is missing',
  );
  t.same(run.damage, []);
  t.same(run.withSeveralIds, [], 'no ping has two event ids');
  t.same(run.undelivered, []);
});

t.test('a copy shows the store at one moment, even during writes', async (t) => {
  const { file } = await stockedStore(t);
  const writer = openDurable(file);
  t.teardown(() => writer.close());
  const to = path.join(tempFolder(t), 'copy.sqlite');
  let written = 0;
  // Writes between two parts of the copy. The table `fact` holds named values of the store.
  await copyDatabase(file, to, () => {
    writer.prepare('INSERT INTO fact (name, value) VALUES (?, ?)').run(`late-${written}`, 'x');
    written += 1;
  });
  t.ok(written > 0);
  const copy = new SqliteDatabase(to, { readonly: true });
  t.equal(copy.prepare(`SELECT count(*) FROM fact WHERE name LIKE 'late-%'`).pluck().get(), 0);
  copy.close();
  t.same((await checkDatabase(to)).damage, []);
});
