/**
 * Faults of the store while locks flood the gateway: an fsync fails (of the log, or of the copy of its WAL), the
 * writing thread dies, the disk is full. No acknowledged ping is lost, and the next start works.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { realDelay } from '../helpers/clocks/change-signal.js';
import { floodFaults } from '../helpers/durability/flood-check.js';
import { FloodLocks } from '../helpers/durability/flood-locks.js';
import { GatewayChild } from '../helpers/gateway/gateway-child.js';
import { root } from '../helpers/house/our-files.js';
import { SeededChance } from '../helpers/pair/seeded-chance.js';
import { dyingThread } from '../helpers/store/dying-thread.js';
import { fillDisk } from '../helpers/store/full-disk.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const LOCKS = 300;
/** The store collects uplinks, and then writes the indexes of all of them at once. So few make this happen often. */
const SMALL_RUN_SIZE = { minUplinks: 2000, uplinksPerCredential: 1, maxUplinks: 6000 };
/** The gateway must end within a second (quality.md §2), plus some seconds for a busy machine. */
const MAX_EXIT_SECONDS = 8;
/** The WAL is copied into the database file only once per some ten thousand uplinks. */
const MAX_CHECKPOINT_SECONDS = 60;
const STOP_SECONDS = 10;
const FLOOD_MS = 60_000;
/** How long the locks send before the fault. */
const FLOOD_BEFORE_FAULT_MS = 1500;
/** The gateway must recover within 5 s (quality.md §2); the test tries to connect every 0.4 s, longer than that. */
const MAX_RECONNECT_TRIES = 20;

t.setTimeout(900_000);

const folder = tempFolder(t);
const library = path.join(folder, 'failing-fsync.so');
const source = path.join(root, 'test/helpers/store/failing-fsync.cc');
const isBuilt =
  process.platform === 'linux' && spawnSync('g++', ['-shared', '-fPIC', '-o', library, source]).status === 0;
const skip = isBuilt ? false : 'g++ is missing';

interface FloodedGateway {
  readonly gateway: GatewayChild;
  readonly locks: FloodLocks;
}

/** Starts a gateway and many locks that flood it. */
async function startFlood(t: Test, environment: NodeJS.ProcessEnv, data?: string): Promise<FloodedGateway> {
  const gateway = await GatewayChild.create(t, { runSize: SMALL_RUN_SIZE, data });
  const size = { locks: LOCKS, locksWithUrl: 0, chance: new SeededChance(1) };
  // Defined, since without g++, which builds the load generator too, the tests are skipped.
  const locks = (await FloodLocks.create(t, gateway.options.data, size)) as FloodLocks;
  gateway.environment = environment;
  await gateway.start();
  // The locks continue after their last ping; from `first`, they would send all again.
  await locks.connect(gateway.mqttPort, 'last');
  await locks.flood(FLOOD_MS);
  await realDelay(FLOOD_BEFORE_FAULT_MS);
  return { gateway, locks };
}

/** Asserts that the gateway ends by itself, that every acknowledged ping is stored, and that the next start works. */
async function assertExitAndRestart(t: Test, { gateway, locks }: FloodedGateway, seconds: number): Promise<void> {
  const { data } = gateway.options;
  t.equal(await gateway.waitForExit(seconds), 4, 'with the exit code of an internal error');
  await locks.waitForEnd();
  t.match(gateway.errorLines.join('\n'), /what is on the disk is uncertain now/);
  t.comment(`${locks.acked} acknowledged`);
  t.ok(locks.acked > 0);
  t.same(floodFaults(data, locks.locks).slice(0, 5), []);
  gateway.environment = {};
  await gateway.start();
  await locks.connect(gateway.mqttPort, 'first');
  await locks.flood(2 * FLOOD_BEFORE_FAULT_MS);
  await locks.waitForEnd();
  t.same(floodFaults(data, locks.locks).slice(0, 5), [], 'after the locks sent everything again');
  t.equal(await gateway.stop(STOP_SECONDS), 0);
}

const FAULTS: readonly {
  readonly title: string;
  /** The end of the name of the file whose fsync fails; undefined for any file. */
  readonly failingFile: string | undefined;
  readonly maxExitSeconds: number;
}[] = [
  { title: 'an fsync fails', failingFile: undefined, maxExitSeconds: MAX_EXIT_SECONDS },
  { title: 'an fsync of the WAL fails', failingFile: '.sqlite-wal', maxExitSeconds: MAX_EXIT_SECONDS },
  { title: 'an fsync of the copy of the WAL fails', failingFile: '.sqlite', maxExitSeconds: MAX_CHECKPOINT_SECONDS },
];
for (const { title, failingFile, maxExitSeconds } of FAULTS)
  t.test(title, { skip, timeout: 200_000 }, async (t) => {
    const triggerFile = path.join(tempFolder(t), 'now');
    const fault = {
      LD_PRELOAD: library,
      FAILING_FSYNC: triggerFile,
      ...(failingFile && { FAILING_FSYNC_OF: failingFile }),
    };
    const running = await startFlood(t, fault);
    writeFileSync(triggerFile, '');
    await assertExitAndRestart(t, running, maxExitSeconds);
  });

t.test('the writing thread dies', { skip, timeout: 200_000 }, async (t) => {
  const triggerFile = path.join(tempFolder(t), 'now');
  const running = await startFlood(t, dyingThread(triggerFile));
  writeFileSync(triggerFile, '');
  await assertExitAndRestart(t, running, MAX_EXIT_SECONDS);
});

/** Mounts a file system of 48 MiB; undefined if this process may not. */
function mountSmall(): string | undefined {
  const smallFileSystem = path.join(folder, 'small');
  mkdirSync(smallFileSystem);
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return undefined;
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=48m', 'lockgate-test', smallFileSystem]);
  if (status !== 0) return undefined;
  t.teardown(() => void spawnSync('umount', ['-l', smallFileSystem]));
  return smallFileSystem;
}

const smallFileSystem = skip ? undefined : mountSmall();
const noMount = smallFileSystem === undefined ? 'only root may mount a small file system to fill' : false;
t.test('the disk is full several times', { skip: noMount, timeout: 300_000 }, async (t) => {
  const data = path.join(smallFileSystem as string, 'data');
  const filler = path.join(smallFileSystem as string, 'filler');
  const { gateway, locks } = await startFlood(t, {}, data);
  for (let round = 0; round < 3; round++) {
    fillDisk(filler);
    await locks.waitForEnd();
    const { acked } = locks;
    t.ok(acked > 0);
    t.same(floodFaults(data, locks.locks).slice(0, 5), [], `round ${round}: nothing acknowledged is missing`);
    await t.rejects(locks.connect(gateway.mqttPort, 'last'), 'no lock can connect while the disk is full');
    rmSync(filler);
    let isConnected = false;
    for (let tries = 0; tries < MAX_RECONNECT_TRIES && !isConnected; tries++) {
      await realDelay(400);
      isConnected = await locks.connect(gateway.mqttPort, 'last').then(
        () => true,
        () => false,
      );
    }
    t.ok(isConnected, 'the gateway recovers by itself');
    await locks.flood(FLOOD_MS);
    await realDelay(FLOOD_BEFORE_FAULT_MS);
    t.ok(locks.acked >= acked);
  }
  t.equal(await gateway.stop(STOP_SECONDS), 0);
  await locks.waitForEnd();
  t.same(floodFaults(data, locks.locks).slice(0, 5), []);
});
