/**
 * 10,000 connected locks, and five storms: all are cut at once and come back at once (quality.md §2). After each of
 * them every lock is back, the gateway counts as many connections as there are sockets, and memory and descriptors are
 * what they were after the first. LOCKGATE_LOCKS makes it smaller.
 */
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { provisionCrowd } from '../bench/load/crowd-accounts.js';
import type { CrowdRequest } from '../bench/load/lock-crowd.js';
import { Obedient } from '../bench/load/obedient.js';
import { GatewayChild } from '../helpers/gateway/gateway-child.js';
import { eventually } from '../helpers/gateway/webhook-bench.js';
import { establishedOn } from '../helpers/soak/soak-run.js';

const LOCKS = Number(process.env.LOCKGATE_LOCKS ?? 10_000);
const STORMS = 5;
/** Both ends of a socket are on this machine, each in a process of its own. */
const CROWD = fileURLToPath(new URL('../bench/load/lock-crowd.js', import.meta.url));
const MEGABYTE = 1e6;
/** What two collections of the same state may differ by. */
const MOST_GROWTH_BYTES = 10 * MEGABYTE;

t.setTimeout(900_000);

interface Look {
  readonly heapBytes: number;
  readonly descriptors: number;
}

t.test(`${LOCKS} locks and ${STORMS} storms`, async (t) => {
  t.setTimeout(900_000);
  const gateway = await GatewayChild.make(t);
  await provisionCrowd(gateway.request.data, LOCKS);
  await gateway.start();
  const request: CrowdRequest = { port: gateway.mqttPort, locks: LOCKS, subscribes: true };
  const crowd = new Obedient(process.execPath, [CROWD, JSON.stringify(request)]);
  t.teardown(() => crowd.end());

  const connected = async (): Promise<number> =>
    (await gateway.get<{ mqtt: { connected: number } }>('/status')).mqtt.connected;
  const look = async (when: string): Promise<Look> => {
    const { heapUsed, rss } = await gateway.memoryAfterCollection();
    const descriptors = readdirSync(`/proc/${gateway.program.pid}/fd`).length;
    const megabytes = (bytes: number): string => `${(bytes / MEGABYTE).toFixed(1)} MB`;
    t.comment(`${when}: heap ${megabytes(heapUsed)}, resident ${megabytes(rss)}, ${descriptors} descriptors`);
    return { heapBytes: heapUsed, descriptors };
  };

  const idle: Look[] = [];
  const full: Look[] = [];
  for (let storm = 0; storm <= STORMS; storm += 1) {
    const { retries, ms } = await crowd.answer<{ retries: number; ms: number }>('connect');
    t.comment(`storm ${storm}: all are back after ${(ms / 1000).toFixed(1)} s, ${retries} tries failed`);
    await eventually('every lock counted', async () => (await connected()) === LOCKS);
    // The system's list is read in pieces while connections move in it, so one look may miss some.
    await eventually('as many sockets as connections', () => establishedOn(gateway.mqttPort) === LOCKS);
    full.push(await look('all connected'));
    await crowd.answer('drop');
    await eventually('every end counted', async () => (await connected()) === 0);
    idle.push(await look('all gone'));
  }
  for (const looks of [full, idle]) {
    const [, second, ...later] = looks;
    for (const { heapBytes, descriptors } of later) {
      t.ok(heapBytes < (second?.heapBytes ?? 0) + MOST_GROWTH_BYTES, 'the heap is what it was');
      t.ok(descriptors <= (second?.descriptors ?? 0) + 20, 'descriptors are what they were');
    }
  }
  t.equal(await gateway.stop(10), 0);
  t.same(gateway.complaints, []);
});
