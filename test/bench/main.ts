/**
 * `npm run bench`: figures beside what they are compared with, taken in one run. It never fails for a time.
 *
 *     npm run bench -- [--json] [--only NAME]
 */
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { benchBadReceivers } from './bad-receivers.js';
import { benchIdleLocks, benchReconnect } from './idle-locks.js';
import { benchIngestPath } from './ingest-path.js';
import { benchLiveLocks } from './live-locks.js';
import type { Rates, Row } from './measure.js';
import { benchTraceCheck } from './trace-check.js';
import { benchVirtual } from './virtual.js';
import { benchArrival, benchDeliveries, benchUrls } from './webhooks.js';

const BENCHES: Readonly<Record<string, () => Promise<Row>>> = {
  'trace-check': benchTraceCheck,
  virtual: benchVirtual,
  'ingest-path': benchIngestPath,
  idle: benchIdleLocks,
  reconnect: benchReconnect,
  deliveries: benchDeliveries,
  arrival: benchArrival,
  urls: benchUrls,
  live: benchLiveLocks,
  'bad-receivers': benchBadReceivers,
};

function figure({ median, least, most }: Rates): string {
  const whole = (rate: number): string => Math.round(rate).toLocaleString('en');
  return `${whole(median)} (${whole(least)}–${whole(most)})`;
}

function printRow(row: Row): void {
  console.log(`${row.name}: ${figure(row.rates)} ${row.unit}`);
  if (row.peer !== null)
    console.log(`  beside: ${figure(row.peer.rates)} ${row.peer.name}: ${row.ratio?.toFixed(2)} ×`);
  console.log(`  floor ${row.floor}, aim ${row.aim}`);
}

const FLAGS = { json: { type: 'boolean' }, only: { type: 'string' }, help: { type: 'boolean' } } as const;

/** What was asked for; undefined where nothing is to be measured, which has been said then. */
function readFlags(args: readonly string[]): { names: string[]; isJson: boolean } | undefined {
  const benches = Object.keys(BENCHES);
  const usage = `npm run bench -- [--json] [--only NAME], NAME one of ${benches.join(', ')}`;
  try {
    const { help, json, only } = parseArgs({ args: [...args], options: FLAGS }).values;
    if (help === true) console.log(usage);
    else if (only !== undefined && !benches.includes(only)) throw new Error(`There is no bench named ${only}.`);
    else return { names: only === undefined ? benches : [only], isJson: json === true };
  } catch (error) {
    console.error(`${(error as Error).message} Expected: ${usage}`);
    process.exitCode = 2;
  }
  return undefined;
}

async function main(args: readonly string[]): Promise<void> {
  const flags = readFlags(args);
  if (flags === undefined) return;
  const { names, isJson } = flags;
  const rows: Row[] = [];
  for (const name of names) {
    console.error(`Measuring ${name} …`);
    const row = await BENCHES[name]?.();
    if (row === undefined) continue;
    rows.push(row);
    if (!isJson) printRow(row);
  }
  if (isJson) console.log(JSON.stringify({ node: process.version, cores: cpus().length, rows }));
}

await main(process.argv.slice(2));
