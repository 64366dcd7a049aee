/**
 * Measures only the store's append: batches of uplinks (here all are pings) of random locks, without the other parts of
 * the gateway.
 *
 *   node dist/test/bench/peers/store-append.js [--rows 0] [--locks 1000] [--batches 200] [--json]
 *
 * Prints the cost of an uplink: CPU time of the event loop's thread and of the writing thread, bytes written (log, WAL,
 * checkpoints), and the duration of an append. CPU time and bytes come from Linux's /proc, so they are meaningful even
 * on a busy machine. Before the measurement, `--rows` uplinks are stored in the same way, but at least 20,000, so that
 * the code is compiled.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import type { Commit } from '../../../gateway/store/contract/log/commit.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { openStore, sqliteUrl } from '../../../gateway/store/open-store.js';
import { monotonicMs } from '../../../proto/clock.js';
import { UplinkSource } from '../../helpers/store/append-fleet.js';

const UPLINKS_PER_COMMIT = 1000;
/** Commits that may be pending while the next one is appended, as in a gateway at its highest rate. */
const MAX_PENDING_COMMITS = 2;
/** Appended before every measurement, so that the code is compiled. */
const MIN_STORED_COMMITS = 20;

/** What a thread has used so far. */
interface ThreadUsage {
  readonly cpuUs: number;
  readonly writtenBytes: number;
}

/** The usage of each thread of this process so far, by thread id. */
function readThreadUsage(): Map<string, ThreadUsage> {
  const uses = new Map<string, ThreadUsage>();
  for (const id of readdirSync('/proc/self/task')) {
    const read = (name: string): string => readFileSync(`/proc/self/task/${id}/${name}`, 'utf8');
    // The first number of schedstat is the CPU time in ns; `wchar` of io counts the bytes of all writes.
    const cpuUs = Number(read('schedstat').split(' ')[0]) / 1000;
    uses.set(id, { cpuUs, writtenBytes: Number(/^wchar: (\d+)$/m.exec(read('io'))?.[1]) });
  }
  return uses;
}

interface AppendLatencies {
  /** From each call of append until it resolved, ms. */
  readonly latencies: number[];
}

/**
 * Appends the commits, with a few pending at a time. They are built beforehand, so that building them is not measured.
 */
async function measureAppends(store: Store, commits: readonly Commit[]): Promise<AppendLatencies> {
  const latencies: number[] = [];
  const pending: Promise<void>[] = [];
  for (const commit of commits) {
    if (pending.length >= MAX_PENDING_COMMITS) await pending.shift();
    const startedAt = monotonicMs();
    pending.push(store.append(commit).then(() => void latencies.push(monotonicMs() - startedAt)));
  }
  await Promise.all(pending);
  return { latencies };
}

/** Stores `rows` uplinks, rounded up to a multiple of ten commits. */
async function fill(store: Store, fleet: UplinkSource, rows: number): Promise<void> {
  for (let filled = 0; filled < rows; filled += UPLINKS_PER_COMMIT * 10)
    await measureAppends(
      store,
      Array.from({ length: 10 }, () => fleet.nextCommit(UPLINKS_PER_COMMIT)),
    );
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      rows: { type: 'string', default: '0' },
      locks: { type: 'string', default: '1000' },
      batches: { type: 'string', default: '200' },
      json: { type: 'boolean', default: false },
    },
  });
  const [rows, locks, batches] = [Number(values.rows), Number(values.locks), Number(values.batches)];
  const folder = mkdtempSync(path.join(tmpdir(), 'lockgate-append-'));
  const store = await openStore(sqliteUrl(folder), { logThread: true });
  try {
    const fleet = new UplinkSource(locks);
    await fill(store, fleet, Math.max(rows, MIN_STORED_COMMITS * UPLINKS_PER_COMMIT));
    const commits = Array.from({ length: batches }, () => fleet.nextCommit(UPLINKS_PER_COMMIT));
    const before = readThreadUsage();
    const startedAt = monotonicMs();
    const { latencies } = await measureAppends(store, commits);
    const seconds = (monotonicMs() - startedAt) / 1000;
    const pings = batches * UPLINKS_PER_COMMIT;
    // The thread of the event loop has the id of the process.
    const mainThreadId = String(process.pid);
    // Of the other threads, the writing one uses the most CPU time.
    let [mainUs, writerUs, bytes] = [0, 0, 0];
    for (const [id, { cpuUs, writtenBytes }] of readThreadUsage()) {
      const cpuUsedUs = cpuUs - (before.get(id)?.cpuUs ?? 0);
      if (id === mainThreadId) mainUs = cpuUsedUs;
      else writerUs = Math.max(writerUs, cpuUsedUs);
      bytes += writtenBytes - (before.get(id)?.writtenBytes ?? 0);
    }
    latencies.sort((a, b) => a - b);
    const latencyAt = (share: number): number => latencies[Math.floor(latencies.length * share)] as number;
    const result = {
      rows,
      locks,
      pings,
      main_us_per_ping: round(mainUs / pings),
      writer_us_per_ping: round(writerUs / pings),
      bytes_per_ping: Math.round(bytes / pings),
      append_ms_median: round(latencyAt(0.5)),
      append_ms_p99: round(latencyAt(0.99)),
      append_ms_most: round(latencyAt(1 - 1 / latencies.length)),
      pings_per_second: Math.round(pings / seconds),
    };
    process.stdout.write(
      values.json
        ? `${JSON.stringify(result)}\n`
        : `${Object.entries(result)
            .map(([name, value]) => `${name} ${value}`)
            .join('\n')}\n`,
    );
  } finally {
    await store.close();
    rmSync(folder, { recursive: true });
  }
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

await main();
