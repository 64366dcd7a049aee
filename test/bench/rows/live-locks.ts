/**
 * The bench's row `live`: 10,000 simulated locks in one process, all connected to a gateway on this machine, with
 * `lockgate sim run` and `lockgate serve` as a user starts them. Measures how long connecting takes, how much CPU time
 * each process then uses, and the memory per lock.
 */
import { readFileSync } from 'node:fs';
import { GatewayClient } from '../../../cli/client.js';
import { readOpenFileLimit } from '../../../gateway/network/descriptor-limit.js';
import { monotonicMs, systemClock } from '../../../proto/clock.js';
import { LOCKGATE, Program } from '../../helpers/cli/program.js';
import { ServeProgram } from '../../helpers/cli/serve-program.js';
import { summarizeFigures } from '../measure.js';
import { type Resources, withResources } from '../resources.js';
import type { BenchRow } from '../row.js';

const LOCKS = 10_000;
/** Files that each process has open besides one connection for each lock. */
const OTHER_FILES = 100;
/** The share of the locks that must be connected; at any time some are in a tunnel or a cellar without coverage. */
const CONNECTED_SHARE = 0.99;
/** How long CPU time is measured once the locks are connected. */
const OBSERVED_SECONDS = 20;
const POLL_EVERY_MS = 250;
/** Locks that take longer to connect end the measurement. */
const CONNECT_SECONDS = 900;
/** The unit of CPU times in /proc/PID/stat, on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

/** What `sim run --json` prints at its end. */
interface Summary {
  readonly memory_bytes_per_lock: number;
  readonly acknowledged: number;
  readonly refused: number;
}

/** The row `live`, with fewer locks if the machine's limit of open files is too low. */
export function benchLiveLocks(): Promise<BenchRow> {
  const locks = Math.min(LOCKS, (readOpenFileLimit() ?? LOCKS + OTHER_FILES) - OTHER_FILES);
  if (locks < LOCKS) console.error(`  ${locks} locks: "ulimit -n ${LOCKS + OTHER_FILES}" would allow ${LOCKS}`);
  return withResources(async (resources) => {
    const serve = await ServeProgram.start(resources, resources.makeFolder());
    await serve.json('merchant', 'add', 'Bench');
    return await measure(resources, serve, locks);
  });
}

/** Starts the simulator, waits until its locks are connected, and observes both processes. */
async function measure(resources: Resources, serve: ServeProgram, locks: number): Promise<BenchRow> {
  // Locks with recovery on stay connected; others connect only to send.
  const args = ['sim', 'run', '--locks', String(locks), '--mix', 'recovery', '--json', '--data', serve.data];
  const startedAtMs = monotonicMs();
  const sim = new Program(resources, process.execPath, [LOCKGATE, ...args]);
  const connected = await waitUntilConnected(serve, sim, locks, startedAtMs);
  const before = [cpuSeconds(serve.program.pid), cpuSeconds(sim.pid)] as const;
  const observedSinceMs = monotonicMs();
  await delay(OBSERVED_SECONDS * 1000);
  const seconds = (monotonicMs() - observedSinceMs) / 1000;
  const share = (now: number, earlier: number): string => `${((100 * (now - earlier)) / seconds).toFixed(0)} %`;
  const [serveShare, simShare] = [
    share(cpuSeconds(serve.program.pid), before[0]),
    share(cpuSeconds(sim.pid), before[1]),
  ];
  sim.kill('SIGINT');
  await sim.waitForExit();
  const { memory_bytes_per_lock, acknowledged, refused } = JSON.parse(sim.stdout.join('\n')) as Summary;
  const name = `${locks.toLocaleString('en')} live locks in one process`;
  const [serveSeconds, simSeconds] = before.map((cpuSecondsSoFar) => cpuSecondsSoFar.toFixed(1));
  return {
    name: 'live',
    title: name,
    unit: 'bytes of memory a lock',
    rates: summarizeFigures([memory_bytes_per_lock]),
    against: [],
    details: [
      `99 % connected after ${connected.toFixed(1)} s, ${refused} tries to connect failed; until then the gateway ` +
        `took ${serveSeconds} s of a core, the simulator ${simSeconds} s`,
      `connected and idle: gateway ${serveShare} of a core, simulator ${simShare}; ${acknowledged} pings in all`,
    ],
  };
}

/** Waits until nearly all locks are connected to the gateway. Returns how long this took, s. */
async function waitUntilConnected(
  serve: ServeProgram,
  sim: Program,
  locks: number,
  startedAtMs: number,
): Promise<number> {
  const client = new GatewayClient({ data: serve.data });
  for (;;) {
    const seconds = (monotonicMs() - startedAtMs) / 1000;
    const { mqtt } = await client.get<{ mqtt: { connected: number } }>('/status');
    if (mqtt.connected >= CONNECTED_SHARE * locks) return seconds;
    if (sim.exit !== undefined) throw new Error(`the simulator has ended: ${sim.stderr.join(' ')}`);
    if (seconds > CONNECT_SECONDS) throw new Error(`not enough locks are connected after ${CONNECT_SECONDS} s`);
    await delay(POLL_EVERY_MS);
  }
}

/** CPU time of a process so far, s: the fields utime and stime of /proc/PID/stat, after the name in brackets. */
function cpuSeconds(pid: number | undefined): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

function delay(milliseconds: number): Promise<void> {
  return new Promise((resolve) => void systemClock.after(milliseconds, resolve));
}
