/**
 * 10,000 locks lose their connections and reconnect at the same time, five times ("storms"; quality.md §2). After each
 * storm every lock is connected, the gateway counts as many connections as there are sockets, and memory and
 * descriptors have not grown since the first storm. LOCKGATE_LOCKS sets another number of locks.
 */
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { ChildProgram } from '../bench/load/child-program.js';
import { registerLocks } from '../bench/load/lock-logins.js';
import type { ManyLocksRequest } from '../bench/load/many-locks.js';
import { GatewayChild } from '../helpers/gateway/gateway-child.js';
import { eventually } from '../helpers/gateway/webhook-setup.js';
import { establishedConnections } from '../helpers/soak/soak-run.js';

const LOCKS = Number(process.env.LOCKGATE_LOCKS ?? 10_000);
const STORMS = 5;
/** The program of the locks. It is a separate process, so that it has its own limit of descriptors. */
const LOCK_PROGRAM = fileURLToPath(new URL('../bench/load/many-locks.js', import.meta.url));
const MEGABYTE = 1e6;
/** How much the heap may differ between two garbage collections of the same state. */
const MAX_GROWTH_BYTES = 10 * MEGABYTE;
/** Descriptors that come and go in normal work. A leak would grow with each of the many reconnects. */
const MAX_DESCRIPTOR_GROWTH = 20;
const STOP_TIMEOUT_SECONDS = 10;

t.setTimeout(900_000);

/** What the gateway uses, after a garbage collection. */
interface Sample {
  readonly heapBytes: number;
  readonly descriptors: number;
}

t.test(`${LOCKS} locks survive ${STORMS} storms, and nothing leaks`, async (t) => {
  t.setTimeout(900_000);
  const gateway = await GatewayChild.create(t);
  await registerLocks(gateway.options.data, LOCKS);
  await gateway.start();
  const request: ManyLocksRequest = { port: gateway.mqttPort, locks: LOCKS, subscribes: true };
  const lockProgram = new ChildProgram(process.execPath, [LOCK_PROGRAM, JSON.stringify(request)]);
  t.teardown(() => lockProgram.stop());

  const connected = async (): Promise<number> =>
    (await gateway.get<{ mqtt: { connected: number } }>('/status')).mqtt.connected;
  const takeSample = async (when: string): Promise<Sample> => {
    const { heapUsed, rss } = await gateway.memoryAfterCollection();
    const descriptors = readdirSync(`/proc/${gateway.program.pid}/fd`).length;
    const megabytes = (bytes: number): string => `${(bytes / MEGABYTE).toFixed(1)} MB`;
    t.comment(`${when}: heap ${megabytes(heapUsed)}, resident ${megabytes(rss)}, ${descriptors} descriptors`);
    return { heapBytes: heapUsed, descriptors };
  };

  const idle: Sample[] = [];
  const full: Sample[] = [];
  for (let storm = 0; storm <= STORMS; storm += 1) {
    const { retries, ms } = await lockProgram.ask<{ retries: number; ms: number }>('connect');
    t.comment(`storm ${storm}: all are connected after ${(ms / 1000).toFixed(1)} s, ${retries} tries failed`);
    await eventually('the gateway counts every lock', async () => (await connected()) === LOCKS);
    // The system's list of sockets changes while it is read, so one reading may miss some.
    await eventually('as many sockets as connections', () => establishedConnections(gateway.mqttPort) === LOCKS);
    full.push(await takeSample('all connected'));
    await lockProgram.ask('drop');
    await eventually('the gateway counts no lock', async () => (await connected()) === 0);
    idle.push(await takeSample('all disconnected'));
  }
  for (const samples of [full, idle]) {
    // The first sample is from before the first storm, which fills caches.
    const [, second, ...later] = samples;
    for (const { heapBytes, descriptors } of later) {
      t.ok(heapBytes < (second?.heapBytes ?? 0) + MAX_GROWTH_BYTES, 'the heap did not grow');
      t.ok(descriptors <= (second?.descriptors ?? 0) + MAX_DESCRIPTOR_GROWTH, 'descriptors did not grow');
    }
  }
  t.equal(await gateway.stop(STOP_TIMEOUT_SECONDS), 0);
  t.same(gateway.errorLines, []);
});
