/**
 * `npm run bench`: measures lockgate and the systems that it is compared with in one run (quality.md §1), and prints a
 * table with one row for each figure. A figure below its floor fails nothing; if a measurement itself fails, the exit
 * code is 4. `--help` lists the flags.
 */

import { mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { wrapWords } from '../../cli/terminal/word-wrap.js';
import { benchConsole } from './console/console.js';
import { type Flags, readFlags } from './flags.js';
import { benchNeighbour } from './neighbour/neighbour.js';
import { benchArrivalAcross, benchPostgres, benchTwoGateways } from './postgres/postgres.js';
import { benchTakeover } from './postgres/takeover.js';
import { profileLines } from './profile-shares.js';
import { benchReads } from './reads/reads.js';
import { closingLine, headLine, machine, machineLine, markdownLines, rowJson, rowLines } from './report.js';
import { isInterrupted, releaseAllResources } from './resources.js';
import type { BenchOptions, BenchRow } from './row.js';
import { benchAck } from './rows/ack.js';
import { benchBadReceivers } from './rows/bad-receivers.js';
import { benchConnections, benchGrowth } from './rows/growth.js';
import { benchIdleLocks, benchReconnect } from './rows/idle-locks.js';
import { benchIngest, benchUrls } from './rows/ingest.js';
import { benchIngestPath } from './rows/ingest-path.js';
import { benchLiveLocks } from './rows/live-locks.js';
import { benchRetention } from './rows/retention.js';
import { benchStart } from './rows/start.js';
import { benchTraceCheck } from './rows/trace-check.js';
import { benchVirtual } from './rows/virtual.js';
import { benchArrival, benchDeliveries } from './rows/webhooks.js';

/**
 * The functions that measure the rows, by row name, in the order of quality.md §1. Rows that need the large stores are
 * next to each other.
 */
const BENCHES: Readonly<Record<string, (options: BenchOptions) => Promise<BenchRow>>> = {
  ingest: benchIngest,
  'ingest-path': benchIngestPath,
  urls: benchUrls,
  ack: benchAck,
  idle: benchIdleLocks,
  reconnect: benchReconnect,
  deliveries: benchDeliveries,
  arrival: benchArrival,
  virtual: benchVirtual,
  'trace-check': benchTraceCheck,
  connections: benchConnections,
  retention: benchRetention,
  growth: benchGrowth,
  start: benchStart,
  'bad-receivers': benchBadReceivers,
  neighbour: benchNeighbour,
  reads: benchReads,
  console: benchConsole,
  live: benchLiveLocks,
  postgres: benchPostgres,
  'two-gateways': benchTwoGateways,
  'arrival-two': benchArrivalAcross,
  takeover: benchTakeover,
};

/** Rows that can profile their gateway, to show where the time of a ping goes. */
const PROFILED_ROWS = ['ingest', 'urls', 'ack', 'retention', 'reads', 'neighbour', 'postgres', 'two-gateways'];

/** The width of the table, in columns. */
const TABLE_WIDTH = 80;
const EXIT_INTERRUPTED = 130;
const EXIT_BROKEN = 4;
const EXIT_WRONG_FLAGS = 2;

/** The results of a run. */
interface Measured {
  readonly rows: readonly BenchRow[];
  /** The names of rows whose measurement failed. */
  readonly broken: readonly string[];
}

/** Measures the rows one after another, and prints each in the table when it is ready. */
async function measureAll({ names, output, quick, flood }: Flags, profiles: string | null): Promise<Measured> {
  const [rows, broken]: [BenchRow[], string[]] = [[], []];
  if (output === 'table') console.log(headLine());
  for (const [index, name] of names.entries()) {
    const startedAt = performance.now();
    console.error(`${index + 1} of ${names.length}: ${name} …`);
    try {
      // Defined, since `readFlags` takes only names of rows.
      const row = (await BENCHES[name]?.({ quick, profiles, flood })) as BenchRow;
      rows.push(row);
      if (output === 'table') console.log(rowLines(row).join('\n'));
    } catch (error) {
      // After Ctrl-C this never resolves: releaseOnSignals ends the process once all resources are released.
      if (isInterrupted()) return await new Promise<never>(() => undefined);
      broken.push(name);
      console.error(`The measurement of ${name} failed: ${(error as Error).stack}`);
    }
    console.error(`  ${((performance.now() - startedAt) / 1000).toFixed(0)} s`);
  }
  return { rows, broken };
}

async function main(args: readonly string[]): Promise<void> {
  const flags = readFlags(args, Object.keys(BENCHES), PROFILED_ROWS);
  if ('text' in flags) {
    if (flags.isHelp) console.log(flags.text);
    else console.error(flags.text);
    process.exitCode = flags.isHelp ? 0 : EXIT_WRONG_FLAGS;
    return;
  }
  const { output, quick, profile } = flags;
  const startedAt = performance.now();
  const profiles = profile === null ? null : mkdtempSync(path.join(tmpdir(), `lockgate-profile-${profile}-`));
  const { rows, broken } = await measureAll(flags, profiles);
  await releaseAllResources();
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  const closing = closingLine(rows, broken);
  const environment = machine();
  if (output === 'json')
    console.log(JSON.stringify({ ...environment, quick, seconds, rows: rows.map(rowJson), broken }));
  else if (output === 'markdown') console.log([machineLine(environment), '', ...markdownLines(rows)].join('\n'));
  else console.log([...wrapWords(machineLine(environment), TABLE_WIDTH), closing].join('\n'));
  if (output !== 'table') console.error(closing);
  console.error(`${seconds} s in all${quick ? ', in a quick run whose figures are rough' : ''}.`);
  if (profiles !== null) for (const line of profileLines(profiles, readdirSync(profiles))) console.error(line);
  process.exitCode = broken.length > 0 ? EXIT_BROKEN : 0;
}

/** On a signal, releases all resources and exits; on a second signal, exits at once. */
function releaseOnSignals(): void {
  let isEnding = false;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => {
      if (isEnding) process.exit(EXIT_INTERRUPTED);
      isEnding = true;
      void releaseAllResources().finally(() => process.exit(EXIT_INTERRUPTED));
    });
}

releaseOnSignals();
await main(process.argv.slice(2));
