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
const RUNS = { minUplinks: 2000, uplinksPerCredential: 1, maxUplinks: 6000 };
/** The gateway must end within a second (quality.md §2), plus some seconds for a busy machine. */
const END_SECONDS = 8;
/** The WAL is copied only once per some ten thousand uplinks. */
const COPY_SECONDS = 60;
const STOP_SECONDS = 10;
const FLOOD_MS = 60_000;
/** How long the flood runs before the fault. */
const BEFORE_MS = 1500;
/** The gateway must recover within 5 s (quality.md §2); attempts to connect, up to 0.4 s apart. */
const TRIES = 20;

t.setTimeout(900_000);

const folder = tempFolder(t);
const library = path.join(folder, 'failing-fsync.so');
const source = path.join(root, 'test/helpers/store/failing-fsync.cc');
const isBuilt =
  process.platform === 'linux' && spawnSync('g++', ['-shared', '-fPIC', '-o', library, source]).status === 0;
const skip = isBuilt ? false : 'g++ is missing';

interface Flooded {
  readonly gateway: GatewayChild;
  readonly crowd: FloodLocks;
}

/** Starts a gateway and a crowd of locks that floods it. */
async function startFlood(t: Test, environment: NodeJS.ProcessEnv, data?: string): Promise<Flooded> {
  const gateway = await GatewayChild.create(t, undefined, false, RUNS, data);
  const made = { locks: LOCKS, locksWithUrl: 0, chance: new SeededChance(1) };
  const crowd = (await FloodLocks.create(t, gateway.request.data, made)) as FloodLocks;
  gateway.environment = environment;
  await gateway.start();
  await crowd.connect(gateway.mqttPort, 'last');
  await crowd.flood(FLOOD_MS);
  await realDelay(BEFORE_MS);
  return { gateway, crowd };
}

/** Asserts that the gateway ends by itself, that every acknowledged ping is stored, and that the next start works. */
async function endsAndRestarts(t: Test, { gateway, crowd }: Flooded, seconds: number): Promise<void> {
  const { data } = gateway.request;
  t.equal(await gateway.waitForExit(seconds), 4, 'with the exit code of an internal error');
  await crowd.waitForEnd();
  t.match(gateway.errorLines.join('\n'), /what is on the disk is uncertain now/);
  t.comment(`${crowd.acked} acknowledged`);
  t.ok(crowd.acked > 0);
  t.same(floodFaults(data, crowd.locks).slice(0, 5), []);
  gateway.environment = {};
  await gateway.start();
  await crowd.connect(gateway.mqttPort, 'first');
  await crowd.flood(2 * BEFORE_MS);
  await crowd.waitForEnd();
  t.same(floodFaults(data, crowd.locks).slice(0, 5), [], 'after the locks sent everything again');
  t.equal(await gateway.stop(STOP_SECONDS), 0);
}

const FAULTS: readonly { readonly what: string; readonly of: string | undefined; readonly seconds: number }[] = [
  { what: 'an fsync fails', of: undefined, seconds: END_SECONDS },
  { what: 'an fsync of the WAL fails', of: '.sqlite-wal', seconds: END_SECONDS },
  { what: 'an fsync of the copy of the WAL fails', of: '.sqlite', seconds: COPY_SECONDS },
];
for (const { what, of, seconds } of FAULTS)
  t.test(what, { skip, timeout: 200_000 }, async (t) => {
    const trigger = path.join(tempFolder(t), 'now');
    const fault = { LD_PRELOAD: library, FAILING_FSYNC: trigger, ...(of && { FAILING_FSYNC_OF: of }) };
    const running = await startFlood(t, fault);
    writeFileSync(trigger, '');
    await endsAndRestarts(t, running, seconds);
  });

t.test('the writing thread dies', { skip, timeout: 200_000 }, async (t) => {
  const trigger = path.join(tempFolder(t), 'now');
  const running = await startFlood(t, dyingThread(trigger));
  writeFileSync(trigger, '');
  await endsAndRestarts(t, running, END_SECONDS);
});

/** Mounts a file system of 48 MiB; undefined if this process may not. */
function mountSmall(): string | undefined {
  const small = path.join(folder, 'small');
  mkdirSync(small);
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return undefined;
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=48m', 'lockgate-test', small]);
  if (status !== 0) return undefined;
  t.teardown(() => void spawnSync('umount', ['-l', small]));
  return small;
}

const small = skip ? undefined : mountSmall();
const noMount = small === undefined ? 'only root may mount a small file system to fill' : false;
t.test('the disk is full several times', { skip: noMount, timeout: 300_000 }, async (t) => {
  const data = path.join(small as string, 'data');
  const filler = path.join(small as string, 'filler');
  const { gateway, crowd } = await startFlood(t, {}, data);
  for (let round = 0; round < 3; round++) {
    fillDisk(filler);
    await crowd.waitForEnd();
    const { acked } = crowd;
    t.ok(acked > 0);
    t.same(floodFaults(data, crowd.locks).slice(0, 5), [], `round ${round}: nothing acknowledged is missing`);
    await t.rejects(crowd.connect(gateway.mqttPort, 'last'), 'no lock can connect while the disk is full');
    rmSync(filler);
    let isConnected = false;
    for (let tries = 0; tries < TRIES && !isConnected; tries++) {
      await realDelay(400);
      isConnected = await crowd.connect(gateway.mqttPort, 'last').then(
        () => true,
        () => false,
      );
    }
    t.ok(isConnected, 'the gateway recovers by itself');
    await crowd.flood(FLOOD_MS);
    await realDelay(BEFORE_MS);
    t.ok(crowd.acked >= acked);
  }
  t.equal(await gateway.stop(STOP_SECONDS), 0);
  await crowd.waitForEnd();
  t.same(floodFaults(data, crowd.locks).slice(0, 5), []);
});
