/**
 * The checks of the data folder at a start: a store that is missing, emptied, damaged or another program's is refused
 * with a sentence and a remedy, and other users can't read the folder's files. Beside the store (FILE) there may be its
 * checksums (FILE.sums) and SQLite's write-ahead log (FILE-wal), which has the latest commits while the gateway runs.
 */
import { execFile } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import SqliteDatabase from 'better-sqlite3';
import t, { type Test } from 'tap';
import { type Gateway, type GatewayOptions, startGateway } from '../../../gateway/gateway.js';
import { openStore, sqliteUrl } from '../../../gateway/store/open-store.js';
import { type CommandOutput, LOCKGATE, runLockgate, runProgram } from '../../helpers/cli/program.js';
import { MERCHANT, NO_THREADS, testBytes, testConfig, testMac } from '../../helpers/gateway/test-gateway.js';
import { connectedLock } from '../../helpers/mqtt/test-lock.js';
import { makeStore } from '../../helpers/store/new-store.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const FILE = 'lockgate.sqlite';
/** The id of a user who owns no files: nobody on Linux. */
const NOBODY = 65_534;
const runFile = promisify(execFile);
t.setTimeout(170_000);

/** Starts a gateway on a folder as it is; the gateway makes a store if there is none. */
async function startTestGateway(t: Test, data: string, options: GatewayOptions = {}): Promise<Gateway> {
  const gateway = await startGateway({ ...testConfig(data) }, { ...NO_THREADS, ...options });
  let closed: Promise<void> | undefined;
  const gatewayClosedOnce: Gateway = { ...gateway, close: () => (closed ??= gateway.close()) };
  t.teardown(() => gatewayClosedOnce.close());
  return gatewayClosedOnce;
}

/** Makes a folder with the store of a gateway that ran and was closed. */
async function closedFolder(t: Test): Promise<{ folder: string; file: string }> {
  const folder = tempFolder(t);
  await makeStore(folder);
  const gateway = await startTestGateway(t, folder);
  await gateway.accounts.addMerchant(MERCHANT);
  const lock = await connectedLock(t, gateway, testMac());
  for (let sequence = 1; sequence <= 20; sequence++) await lock.send(testBytes(sequence));
  await gateway.close();
  return { folder, file: path.join(folder, FILE) };
}

/** Makes a folder as a kill leaves it: copied while the gateway runs, with its latest commits only in the WAL. */
async function killedFolder(t: Test): Promise<{ folder: string; file: string }> {
  const runningFolder = tempFolder(t);
  const gateway = await startTestGateway(t, runningFolder);
  await gateway.accounts.addMerchant(MERCHANT);
  const lock = await connectedLock(t, gateway, testMac());
  for (let sequence = 1; sequence <= 20; sequence++) await lock.send(testBytes(sequence));
  const folder = tempFolder(t);
  for (const name of readdirSync(runningFolder)) copyFileSync(path.join(runningFolder, name), path.join(folder, name));
  await gateway.close();
  return { folder, file: path.join(folder, FILE) };
}

const lockgate = (...args: readonly string[]): Promise<CommandOutput> => runLockgate(args);

const PORTS = ['--mqtt-port', '0', '--http-port', '0', '--operator-port', '0'];

t.test('a missing or empty store is refused if other files show that there was a store', async (t) => {
  // The file that shows it, and how to leave only that file in a folder.
  const remainders: readonly (readonly [what: string, leave: (folder: string) => void])[] = [
    ['key', (folder) => deleteAllExcept(folder, ['key'])],
    [`${FILE}.sums`, (folder) => deleteAllExcept(folder, [`${FILE}.sums`])],
    [
      `${FILE}-wal`,
      (folder) => {
        deleteAllExcept(folder, []);
        writeFileSync(path.join(folder, `${FILE}-wal`), Buffer.alloc(4096, 1));
      },
    ],
    // The copy of the store that an upgrade makes before it changes the store, named after that change.
    [
      `${FILE}.0009-narrow-log.2026-11-22T00-00-00Z`,
      (folder) => {
        deleteAllExcept(folder, []);
        writeFileSync(path.join(folder, `${FILE}.0009-narrow-log.2026-11-22T00-00-00Z`), 'a copy');
      },
    ],
  ];
  const { folder: undamaged } = await closedFolder(t);
  for (const [what, leave] of remainders)
    for (const isEmpty of [false, true]) {
      const folder = copyFolder(t, undamaged);
      leave(folder);
      const file = path.join(folder, FILE);
      if (isEmpty) writeFileSync(file, '');
      const message = isEmpty ? /lockgate\.sqlite is empty.*--new/ : /there is no .*lockgate\.sqlite.*--new/;
      await t.rejects(startTestGateway(t, folder), { code: 'store-missing', message });
      t.equal(existsSync(file) ? statSync(file).size : 0, 0, `${what}: no store was made`);
      const newGateway = await startTestGateway(t, folder, { makeNew: true });
      t.same(await newGateway.store.listMerchants(), [], 'with makeNew a new store is created');
      await newGateway.close();
      await (await startTestGateway(t, folder)).close();
    }
});

/** Deletes all files but these. */
function deleteAllExcept(folder: string, remaining: readonly string[]): void {
  for (const name of readdirSync(folder))
    if (!remaining.includes(name)) rmSync(path.join(folder, name), { recursive: true });
}

/** Copies the files of a folder into a new one, and returns that. */
function copyFolder(t: Test, folder: string): string {
  const copy = tempFolder(t);
  for (const name of readdirSync(folder)) copyFileSync(path.join(folder, name), path.join(copy, name));
  return copy;
}

t.test('a new folder gets a new store, also if the setting names an existing key', async (t) => {
  const folder = path.join(tempFolder(t), 'new', 'data');
  await (await startTestGateway(t, folder)).close();
  const keyFile = path.join(folder, 'key');
  const other = tempFolder(t);
  await (await startGateway({ ...testConfig(other), keyFile }, NO_THREADS)).close();
  t.ok(existsSync(path.join(other, FILE)));
});

t.test('serve and demo refuse a missing store in one sentence with exit code 3', async (t) => {
  const { folder } = await closedFolder(t);
  rmSync(path.join(folder, FILE));
  for (const command of ['serve', 'demo']) {
    const { exit, stdout, stderr } = await lockgate(command, '--data', folder, ...PORTS);
    t.equal(exit?.code, 3, command);
    t.same(stdout, []);
    t.equal(stderr.length, 1, stderr.join('\n'));
    t.match(stderr[0], /^lockgate: there is no .*lockgate\.sqlite.* --new/);
  }
});

t.test('a folder with the name of the store is refused in one sentence', async (t) => {
  const folder = tempFolder(t);
  mkdirSync(path.join(folder, FILE));
  await t.rejects(startTestGateway(t, folder), {
    code: 'store-foreign',
    message: /lockgate\.sqlite is not a lockgate store: it is not a file/,
  });
});

t.test('a file that is not a lockgate store is refused and not changed', async (t) => {
  const folder = tempFolder(t);
  const file = path.join(folder, FILE);
  writeFileSync(file, 'Dear diary,\n'.repeat(500));
  await t.rejects(startTestGateway(t, folder), { code: 'store-foreign', message: /is not an SQLite database/ });
  rmSync(file);
  const other = new SqliteDatabase(file);
  other.exec('CREATE TABLE bookmark (url TEXT); CREATE TABLE visit (at INTEGER)');
  other.close();
  const bytes = readFileSync(file);
  await t.rejects(startTestGateway(t, folder), { code: 'store-foreign', message: /another program.*bookmark, visit/ });
  t.ok(readFileSync(file).equals(bytes));
  t.same(
    readdirSync(folder).filter((name) => name.startsWith(FILE)),
    [FILE],
    'no file was created next to it',
  );
});

t.test('a store that does not match its checksums is refused, and neither is overwritten', async (t) => {
  const { folder, file } = await closedFolder(t);
  const sums = readFileSync(`${file}.sums`);
  const offsetInSecondBlock = 70_000;
  flipBit(file, offsetInSecondBlock);
  const bytes = readFileSync(file);
  for (let start = 1; start <= 2; start++)
    await t.rejects(startTestGateway(t, folder), {
      code: 'store-damaged',
      message: /bytes 65536 to 131071 .*lockgate\.sqlite.*db check.*backup.*db accept/,
    });
  await t.rejects(openStore(sqliteUrl(folder)), { code: 'store-damaged' });
  for (const words of [
    ['config', 'rotate-key', '--data', folder],
    ['db', 'migrate', '--data', folder],
    ['db', 'backup', '--data', folder, '--out', path.join(tempFolder(t), 'b.sqlite')],
  ]) {
    const { exit, stderr } = await lockgate(...words);
    t.equal(exit?.code, 3, `${words.join(' ')}: ${stderr.join('\n')}`);
    t.match(stderr[0], /damaged/);
  }
  t.ok(readFileSync(`${file}.sums`).equals(sums));
  t.ok(readFileSync(file).equals(bytes));
});

t.test('damaged checksums and a truncated store are refused with the reason', async (t) => {
  const { folder, file } = await closedFolder(t);
  const sums = readFileSync(`${file}.sums`);
  flipBit(`${file}.sums`, 40);
  await t.rejects(startTestGateway(t, folder), { code: 'store-damaged', message: /\.sums .*own checksum/ });
  writeFileSync(`${file}.sums`, sums);
  truncateSync(file, statSync(file).size - 4096);
  await t.rejects(startTestGateway(t, folder), { code: 'store-damaged', message: /bytes; expected/ });
});

/** Changes a bit of the byte at this offset. */
function flipBit(file: string, offset: number): void {
  const bytes = readFileSync(file);
  bytes.writeUInt8(bytes.readUInt8(offset) ^ 4, offset);
  writeFileSync(file, bytes);
}

// `lockgate db accept` makes new checksums for a damaged store and renames the old ones, as evidence of the damage.
t.test('after db accept a damaged store starts, and the evidence is retained', async (t) => {
  const { folder, file } = await closedFolder(t);
  const undamaged = await lockgate('db', 'accept', '--data', folder, '--yes');
  t.equal(undamaged.exit?.code, 3);
  t.match(undamaged.stderr[0], /has no damage/);
  const sums = readFileSync(`${file}.sums`);
  // A bit of a stored ping: SQLite reads the row without an error.
  flipBit(file, readFileSync(file).lastIndexOf(testBytes(7)) + 3);
  const unconfirmed = await lockgate('db', 'accept', '--data', folder);
  t.equal(unconfirmed.exit?.code, 2);
  t.match(unconfirmed.stderr[0], /--yes/);
  const accepted = await lockgate('db', 'accept', '--data', folder, '--yes', '--json');
  t.equal(accepted.exit?.code, 0, accepted.stderr.join('\n'));
  const { kept, damage } = JSON.parse(accepted.stdout.join('\n'));
  t.match(damage, [/^bytes \d+ to \d+/]);
  t.match(kept, [/lockgate\.sqlite\.sums\.failed\./]);
  t.ok(readFileSync(kept[0]).equals(sums), 'the old checksums are retained');
  const gateway = await startTestGateway(t, folder);
  const [entry] = await gateway.store.audit.list({ limit: 9 });
  t.match(entry, { action: 'store.accept-damage', outcome: 'done' });
  t.match(await gateway.notices.list({ kind: 'store-damaged', limit: 9 }), [{ text: /sums\.failed/ }]);
  await gateway.close();
  t.ok(existsSync(kept[0]));
});

t.test('db accept refuses a store that can’t be opened, and changes no file', async (t) => {
  const { folder, file } = await closedFolder(t);
  truncateSync(file, 4096);
  const before = readdirSync(folder).sort();
  const sums = readFileSync(`${file}.sums`);
  const { exit, stderr } = await lockgate('db', 'accept', '--data', folder, '--yes');
  t.match(stderr.join('\n'), /^lockgate: the store could not open: [^\n]*$/, 'one sentence');
  t.equal(exit?.code, 4);
  t.same(readdirSync(folder).sort(), before);
  t.ok(readFileSync(`${file}.sums`).equals(sums));
  await t.rejects(startTestGateway(t, folder), { code: 'store-damaged' });
});

t.test('after a kill and a start that fails for another reason, the next start does not miss the WAL', async (t) => {
  const { folder, file } = await killedFolder(t);
  const db = new SqliteDatabase(file);
  // A store of a newer version is refused.
  db.prepare("INSERT INTO kysely_migration VALUES ('9999-of-tomorrow', '2026-11-22')").run();
  // Copied before the close, which would remove the WAL.
  const newer = tempFolder(t);
  for (const name of readdirSync(folder)) copyFileSync(path.join(folder, name), path.join(newer, name));
  db.close();
  for (let start = 1; start <= 2; start++) {
    const { exit, stderr } = await lockgate('serve', '--data', newer, ...PORTS);
    t.equal(exit?.code, 3);
    t.match(stderr.join('\n'), /newer version/, `start ${start}`);
  }
});

t.test('--new changes nothing in the folder of a running gateway, even if its store was moved away', async (t) => {
  const { folder } = await closedFolder(t);
  const gateway = await startTestGateway(t, folder);
  const elsewhere = path.join(tempFolder(t), FILE);
  renameSync(path.join(folder, FILE), elsewhere);
  const before = readdirSync(folder).sort();
  await t.rejects(startTestGateway(t, folder, { makeNew: true }), { code: 'data-in-use' });
  t.same(readdirSync(folder).sort(), before);
  renameSync(elsewhere, path.join(folder, FILE));
  await gateway.close();
});

t.test('after a kill a missing, foreign or damaged WAL is refused', async (t) => {
  const undamaged = await killedFolder(t);
  const copy = (): string => copyFolder(t, undamaged.folder);
  const stored = await startTestGateway(t, copy());
  t.equal((await stored.store.listMerchants()).length, 1, 'with its WAL the store starts');
  await stored.close();

  const withoutWal = copy();
  rmSync(path.join(withoutWal, `${FILE}-wal`));
  rmSync(path.join(withoutWal, `${FILE}-shm`), { force: true });
  await t.rejects(startTestGateway(t, withoutWal), {
    code: 'store-damaged',
    message: /lockgate\.sqlite-wal is missing/,
  });

  t.match((await lockgate('db', 'check', '--data', withoutWal)).stdout.join('\n'), /wal: it is missing/);
  await t.rejects(startTestGateway(t, withoutWal), { code: 'store-damaged' }, 'also after db check has opened it');

  const withOthersWal = copy();
  const { folder: other } = await killedFolder(t);
  copyFileSync(path.join(other, `${FILE}-wal`), path.join(withOthersWal, `${FILE}-wal`));
  await t.rejects(startTestGateway(t, withOthersWal), { code: 'store-damaged', message: /-wal is another store’s/ });

  const withDamagedWal = copy();
  // A byte of the second of the WAL's frames, which are a page of 4096 bytes and a header each.
  flipBit(path.join(withDamagedWal, `${FILE}-wal`), 5000);
  await t.rejects(startTestGateway(t, withDamagedWal), { code: 'store-damaged', message: /-wal.*lost/ });

  const closed = await closedFolder(t);
  copyFileSync(path.join(other, `${FILE}-wal`), `${closed.file}-wal`);
  await t.rejects(startTestGateway(t, closed.folder), { code: 'store-damaged', message: /was closed.*-wal/ });
  for (const folder of [withoutWal, withOthersWal, withDamagedWal, closed.folder]) {
    const { exit, stderr } = await lockgate('db', 'accept', '--data', folder, '--yes');
    t.equal(exit?.code, 0, stderr.join('\n'));
    await (await startTestGateway(t, folder)).close();
  }
});

t.test('other users can’t read the files of the data folder, even if its mode is 755', async (t) => {
  const before = process.umask(0o022);
  t.teardown(() => process.umask(before));
  const folder = path.join(tempFolder(t), 'data');
  mkdirSync(folder, { mode: 0o755 });
  const gateway = await startTestGateway(t, folder);
  await gateway.accounts.addMerchant(MERCHANT);
  t.same(filesOpenToOthers(folder), [], 'while it runs');
  const copy = await gateway.store.readCopy();
  t.same(filesOpenToOthers(folder), [], 'while a backup is made');
  copy.remove();
  await gateway.close();
  t.same(filesOpenToOthers(folder), [], 'once it is closed');
});

t.test('file modes that let others read are corrected, with a sentence', async (t) => {
  const { folder } = await closedFolder(t);
  writeFileSync(path.join(folder, 'operator-address'), 'http://127.0.0.1:1\n');
  const readable = [FILE, `${FILE}.sums`, 'gateway.lock', 'operator-address'];
  for (const name of readable) chmodSync(path.join(folder, name), 0o644);
  const migrated = await runProgram(t, process.execPath, [LOCKGATE, 'db', 'migrate', '--data', folder]);
  t.equal(migrated.exit?.code, 0);
  t.same(filesOpenToOthers(folder), []);
  for (const name of readable) chmodSync(path.join(folder, name), 0o644);
  const { exit, stderr } = await lockgate('config', 'rotate-key', '--data', folder);
  t.equal(exit?.code, 0);
  t.match(stderr.join('\n'), /4 files of .* could be read by others.*600/);
  t.same(filesOpenToOthers(folder), []);
});

/** Returns the files on which the group or others have any rights. */
function filesOpenToOthers(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && (statSync(path.join(entry.parentPath, entry.name)).mode & 0o077) !== 0)
    .map(({ name }) => name);
}

/** Runs the program as another user; if not root, as this user with a read-only folder. */
async function runAsOtherUser(folder: string, ...args: readonly string[]): Promise<{ code: number; stderr: string }> {
  const isRoot = process.geteuid?.() === 0;
  if (!isRoot) chmodSync(folder, 0o555);
  const user = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
  const options = { ...user, env: { ...process.env, NO_COLOR: '1', HOME: '/nonexistent' } };
  try {
    const { stderr } = await runFile(process.execPath, [LOCKGATE, ...args], options);
    return { code: 0, stderr };
  } catch (error) {
    const { code, stderr } = error as { code: number; stderr: string };
    return { code, stderr };
  } finally {
    if (!isRoot) chmodSync(folder, 0o700);
  }
}

/** Whether another user can run the compiled program at all. */
async function canOtherUsersRun(folder: string): Promise<boolean> {
  return process.platform !== 'win32' && (await runAsOtherUser(folder, '--version')).code === 0;
}

t.test('a data folder that is another user’s or read-only is refused in one sentence', async (t) => {
  const { folder, file } = await closedFolder(t);
  chmodSync(folder, 0o755);
  if (!(await canOtherUsersRun(folder))) return t.comment('skipped: the program cannot be run as another user here');
  for (const command of ['serve', 'demo']) {
    const { code, stderr } = await runAsOtherUser(folder, command, '--data', folder, ...PORTS);
    t.equal(code, 3, stderr);
    t.match(stderr, /^lockgate: the data folder .* can't be used: this user may not write there\n$/);
  }
  const unreadable = process.geteuid?.() === 0 ? 0o600 : 0;
  writeFileSync(path.join(folder, 'operator-address'), 'http://127.0.0.1:1', { mode: unreadable });
  const deviceList = await runAsOtherUser(folder, 'device', 'list', '--data', folder);
  t.equal(deviceList.code, 3, deviceList.stderr);
  t.match(deviceList.stderr, /^lockgate: [^\n]*operator-address[^\n]*can't be read[^\n]*--gateway[^\n]*\n$/);
  for (const name of [FILE, `${FILE}.sums`]) chmodSync(path.join(folder, name), 0o644);
  const before = readdirSync(folder);
  const dbCheck = await runAsOtherUser(folder, 'db', 'check', file);
  t.equal(dbCheck.code, 0, dbCheck.stderr);
  t.same(readdirSync(folder), before);
  flipBit(file, readFileSync(file).lastIndexOf(testBytes(7)) + 3);
  t.equal((await runAsOtherUser(folder, 'db', 'check', '--data', folder)).code, 1);
});
