/**
 * `npm run bench`: figures beside what they are compared with, taken in one run. It never fails for a time.
 *
 *     npm run bench -- [--json] [--only NAME]
 */
import { cpus } from 'node:os';
import { benchBadReceivers } from './bad-receivers.js';
import { benchIdleLocks, benchReconnect } from './idle-locks.js';
import { benchLiveLocks } from './live-locks.js';
import type { Rates, Row } from './measure.js';
import { benchTraceCheck } from './trace-check.js';
import { benchVirtual } from './virtual.js';
import { benchArrival, benchDeliveries, benchUrls } from './webhooks.js';

const BENCHES: Readonly<Record<string, () => Promise<Row>>> = {
  'trace-check': benchTraceCheck,
  virtual: benchVirtual,
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

async function main(args: readonly string[]): Promise<void> {
  const only = args.includes('--only') ? args[args.indexOf('--only') + 1] : undefined;
  const names = Object.keys(BENCHES).filter((name) => only === undefined || name === only);
  if (names.length === 0) {
    console.error(`There is no bench named ${only}: expected one of ${Object.keys(BENCHES).join(', ')}.`);
    process.exitCode = 2;
    return;
  }
  const rows: Row[] = [];
  for (const name of names) {
    console.error(`Measuring ${name} …`);
    const row = await BENCHES[name]?.();
    if (row === undefined) continue;
    rows.push(row);
    if (!args.includes('--json')) printRow(row);
  }
  if (args.includes('--json')) console.log(JSON.stringify({ node: process.version, cores: cpus().length, rows }));
}

await main(process.argv.slice(2));
