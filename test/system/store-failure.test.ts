/**
 * The gateway's process on a failing disk (quality.md §2, disk full and I/O error). Tests that need root or a compiler
 * are skipped without it.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import got from 'got';
import t, { type Test } from 'tap';
import { LOCKGATE, Program } from '../helpers/cli/program.js';
import { ServeProgram } from '../helpers/cli/serve-program.js';
import { ChangeSignal } from '../helpers/clocks/change-signal.js';
import { DiaryLock } from '../helpers/durability/diary-lock.js';
import { GatewayChild } from '../helpers/gateway/gateway-child.js';
import { root } from '../helpers/house/our-files.js';
import { SeededChance } from '../helpers/pair/seeded-chance.js';
import { fillDisk } from '../helpers/store/full-disk.js';
import { beginFault, endFault } from '../helpers/store/store-faults.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const WIRE_MAC = 'A4C138F0E1D2';

/** The limits of quality.md §2 (1 s to end, 5 s to recover) plus a few seconds for a busy machine. */
const END_SECONDS = 4;
const RECOVER_SECONDS = 8;
/** A wait that takes longer fails the test. */
const WAIT_SECONDS = 30;

t.setTimeout(170_000);

/** A lock that sends one ping after the other, and signals `changeSignal` at each line of its diary. */
function busyLock(t: Test, port: number, secret: string, changeSignal: ChangeSignal): DiaryLock {
  const lock = new DiaryLock({
    mac: WIRE_MAC,
    secret,
    port,
    maxUnacked: 2,
    chance: new SeededChance(1),
    mayCreateUplinks: () => true,
    onLine: () => changeSignal.notify(),
  });
  t.teardown(() => lock.cut());
  lock.allowConnections();
  return lock;
}

/** Waits until this many pings of the lock are acknowledged. */
async function untilAcked(
  lock: DiaryLock,
  count: number,
  changeSignal: ChangeSignal,
  seconds = WAIT_SECONDS,
): Promise<void> {
  await changeSignal.waitUntil(
    () => lock.acked.length >= count,
    seconds,
    () => `${count} acknowledgements, there are ${lock.acked.length}`,
  );
}

/** Counts the acknowledged pings that the store lacks, and runs SQLite's integrity check. */
function checkFile(data: string, lock: DiaryLock): { readonly missing: number; readonly integrity: unknown } {
  const db = new Database(path.join(data, 'lockgate.sqlite'), { readonly: true });
  const rows = db.prepare('SELECT boot, sequence FROM uplink').all() as { boot: number; sequence: number }[];
  const integrity = db.pragma('integrity_check', { simple: true });
  db.close();
  const stored = new Set(rows.map(({ boot, sequence }) => `${boot}/${sequence}`));
  return { missing: lock.acked.filter(({ boot, sequence }) => !stored.has(`${boot}/${sequence}`)).length, integrity };
}

t.test('an I/O error ends the process; the next start has everything that was acknowledged', async (t) => {
  const changeSignal = new ChangeSignal();
  // From beginFault on, the store's writes fail.
  const gateway = await GatewayChild.start(t, { fault: 'io-error' });
  const { data } = gateway.options;
  const lock = busyLock(t, gateway.mqttPort, await gateway.addLock(WIRE_MAC), changeSignal);
  await untilAcked(lock, 20, changeSignal);
  beginFault(data);
  t.equal(await gateway.waitForExit(END_SECONDS), 4, 'with the exit code of an internal error');
  t.match(gateway.errorLines.join('\n'), /^store broken: .*disk I\/O error; what is on the disk is uncertain now/m);
  const acked = lock.acked.length;
  t.same(checkFile(data, lock), { missing: 0, integrity: 'ok' });
  endFault(data);
  await gateway.start();
  await untilAcked(lock, acked + 5, changeSignal);
  lock.cut();
  t.equal(await gateway.stop(WAIT_SECONDS), 0);
  t.same(checkFile(data, lock), { missing: 0, integrity: 'ok' });
});

/**
 * A stop first closes the MQTT listener, which waits until the uplinks that it received are stored. If all of them
 * are, a later step hangs, "the storing of received pings": it also stores that the gateway has stopped.
 */
const HANG_MESSAGE = /^the gateway did not stop within 9 s: (the MQTT listener|the storing of received pings) hangs$/m;

t.test('the process ends although the store never answers', async (t) => {
  const changeSignal = new ChangeSignal();
  // From beginFault on, the store's writes never end.
  const gateway = await GatewayChild.start(t, { fault: 'never-ends' });
  const lock = busyLock(t, gateway.mqttPort, await gateway.addLock(WIRE_MAC), changeSignal);
  await untilAcked(lock, 5, changeSignal);
  beginFault(gateway.options.data);
  lock.forbidConnections();
  t.equal(await gateway.stop(WAIT_SECONDS), 4);
  t.match(gateway.errorLines.join('\n'), HANG_MESSAGE);
});

/** Builds the library that makes fsync fail; undefined without a compiler. */
function buildFailingFsync(folder: string): string | undefined {
  const library = path.join(folder, 'failing-fsync.so');
  const source = path.join(root, 'test/helpers/store/failing-fsync.cc');
  const { status } = spawnSync('g++', ['-shared', '-fPIC', '-O1', '-o', library, source]);
  return status === 0 ? library : undefined;
}

const folder = tempFolder(t);
const library = process.platform === 'linux' ? buildFailingFsync(folder) : undefined;

/** `serve` on this folder, with JSON on stderr. */
function serveWith(t: Test, data: string, environment: NodeJS.ProcessEnv): Program {
  const ports = ['--mqtt-port', '0', '--http-port', '0', '--operator-port', '0'];
  return new Program(t, process.execPath, [LOCKGATE, 'serve', '--data', data, ...ports], environment);
}

/** The port in the line that `serve` prints about one of its listeners, such as `merchants`. */
async function portOf(serve: Program, name: string): Promise<number> {
  return Number(/:(\d+)$/.exec(await serve.waitForLine(new RegExp(`^ +${name} `)))?.[1]);
}

const noLibrary = library === undefined ? 'the library that makes fsync fail needs Linux and g++' : false;
t.test('a failing fsync ends serve', { skip: noLibrary }, async (t) => {
  const changeSignal = new ChangeSignal();
  const data = path.join(folder, 'data');
  const trigger = path.join(folder, 'fail-now');
  const serve = serveWith(t, data, { LD_PRELOAD: library, FAILING_FSYNC: trigger });
  const port = await portOf(serve, 'locks');
  await serve.waitForLine(/^Ctrl-C/);
  const run = async (...args: string[]): Promise<string> => {
    const program = new Program(t, process.execPath, [LOCKGATE, ...args, '--data', data, '--json']);
    await program.waitForExit();
    return program.stdout.join('');
  };
  await run('merchant', 'add', 'Amber');
  const { secret } = JSON.parse(await run('device', 'add', WIRE_MAC)) as { secret: string };
  const lock = busyLock(t, port, secret, changeSignal);
  await untilAcked(lock, 50, changeSignal);
  writeFileSync(trigger, '');
  t.same(await serve.waitForExit(END_SECONDS), { code: 4, signal: null });
  lock.forbidConnections();
  const lines = serve.stderr.map((line) => JSON.parse(line) as { event: string; why?: string; level: string });
  const ends = lines.filter(({ event }) => event === 'store-broken');
  t.match(ends, [{ level: 'fatal', why: /disk I\/O error; what is on the disk is uncertain now/ }], 'one sentence');
  t.same(checkFile(data, lock), { missing: 0, integrity: 'ok' });
  t.match(serve.stdout.join('\n'), /merchants/, 'stdout has the addresses that serve prints when it starts');
});

/** Mounts a file system of 4 MiB; false if this process may not. */
function mountSmall(folder: string): boolean {
  mkdirSync(folder);
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false;
  return spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'lockgate-test', folder]).status === 0;
}

const smallDisk = path.join(folder, 'small');
const isMounted = mountSmall(smallDisk);
if (isMounted) t.teardown(() => void spawnSync('umount', ['-l', smallDisk]));

/** The status of `/readyz` on the merchants' port: 200 if the gateway takes pings. */
async function statusOf(port: number): Promise<number> {
  return (await got(`http://127.0.0.1:${port}/readyz`, { throwHttpErrors: false, retry: { limit: 0 } })).statusCode;
}

const noMount = isMounted ? false : 'filling a small file system needs Linux, and root to mount it';
t.test(
  'with a full disk nothing is acknowledged; once there is room, the gateway recovers by itself',
  { skip: noMount },
  async (t) => {
    const changeSignal = new ChangeSignal();
    const data = path.join(smallDisk, 'data');
    const serve = await ServeProgram.start(t, data);
    const httpPort = await portOf(serve.program, 'merchants');
    await serve.json('merchant', 'add', 'Amber');
    const { secret } = await serve.json<{ secret: string }>('device', 'add', WIRE_MAC);
    const lock = busyLock(t, serve.mqttPort, secret, changeSignal);
    await untilAcked(lock, 20, changeSignal);
    t.equal(await statusOf(httpPort), 200);

    fillDisk(path.join(smallDisk, 'filler'));
    await serve.program.waitForLine(/"event":"degraded","reason":"store"/, 'stderr', WAIT_SECONDS);
    t.equal(await statusOf(httpPort), 503);
    const acked = lock.acked.length;
    await serve.program.waitForLines(/"event":"refused".*the store can’t write now/, 5, 'stderr', WAIT_SECONDS);
    t.equal(lock.acked.length, acked, 'the lock reconnects again and again, and nothing is acknowledged');
    t.equal(await statusOf(httpPort), 503);

    rmSync(path.join(smallDisk, 'filler'));
    await untilAcked(lock, acked + 20, changeSignal, RECOVER_SECONDS);
    t.equal(await statusOf(httpPort), 200);
    lock.cut();
    serve.program.kill('SIGTERM');
    t.same(await serve.program.waitForExit(10), { code: 0, signal: null });
    t.same(checkFile(data, lock), { missing: 0, integrity: 'ok' });
  },
);
