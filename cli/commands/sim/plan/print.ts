/** Prints a fleet's plan as tables, and formats it for `--json`. */
import type { BatterySize } from '../../../../firmware-sim/plan/battery-size.js';
import type { Estimate } from '../../../../firmware-sim/plan/sample.js';
import {
  type HourSize,
  MONTH_DAYS,
  type MonthSize,
  RATE_WINDOW_MS,
  type Sizing,
} from '../../../../firmware-sim/plan/sizing.js';
import type { PricePlan } from '../../../../gateway/usage/price.js';
import { Seconds } from '../../../../proto/clock.js';
import { paint, print } from '../../../terminal/output.js';
import { type Column, printTable } from '../../../terminal/table.js';
import { bar, byteText } from '../../usage/text.js';
import type { PlanFlags } from '../flags.js';
import { plural } from '../summary.js';
import { priceOf } from './price.js';

/** What a plan shows in addition to the measurements. */
export interface PlanReport {
  /** Seed and options, as lines. */
  readonly title: readonly string[];
  readonly flags: PlanFlags;
  /** Null without the flags of prices. */
  readonly prices: PricePlan | null;
  /** The duration of the simulation. */
  readonly seconds: number;
  /** The command that repeats the plan. */
  readonly repeat: string;
}

/**
 * Bytes that a stored ping adds to the gateway's store, including indexes but not webhook deliveries: the mean over
 * some weeks of a fleet, as measured by test/cli/sim-plan.test.ts.
 */
export const STORED_PING_BYTES = 265;

/** Prints the tables, which fit in 80 columns. */
export function printPlan(sizing: Sizing, { title, prices, seconds, repeat }: PlanReport): void {
  for (const line of title) print(paint('bold', line));
  print(paint('bold', `\nPer lock and month of ${MONTH_DAYS} days, the mean of its part of the mix`));
  printParts(sizing, prices);
  if (prices !== null) {
    const { total } = priceOf(prices, sizing.total, sizing.locks);
    print(`\nThe fleet's month: ${byteText(sizing.total.bytes.value)}, ${total} ${prices.currency},`);
    print(`at ${prices.perMb} ${prices.currency} an MB and ${prices.perSim} ${prices.currency} a SIM, all active.`);
  } else
    print(
      `\nThe fleet's month: ${byteText(sizing.total.bytes.value)}. Its price needs --per-mb, --per-sim, --currency.`,
    );
  print(`The gateway's store grows by about ${byteText(storedPerDay(sizing))} a day, without webhook deliveries.`);
  print(paint('bold', '\nBy hour of the day (UTC)'));
  printHours(sizing.hours);
  print('');
  for (const line of peakLines(sizing)) print(line);
  for (const line of notes(sizing)) print(paint('dim', line));
  print(`Made in ${seconds.toFixed(1)} s. Repeat with: ${repeat}`);
}

/** The growth of the gateway's store in bytes per day. */
function storedPerDay({ total }: Sizing): number {
  return (total.messagesUp.value / MONTH_DAYS) * STORED_PING_BYTES;
}

/** A row of the table: a part of the mix (the locks with the same first settings), or all locks. */
interface PartRow {
  readonly name: string;
  readonly locks: number;
  readonly month: MonthSize;
  readonly battery: BatterySize | null;
}

function printParts({ parts, total, battery, locks, sampled }: Sizing, prices: PricePlan | null): void {
  const all: PartRow = { name: 'ALL', locks, month: total, battery };
  const perLock = (name: keyof MonthSize): Column<PartRow>['show'] => {
    return (row) => formatCount(row.month[name].value / row.locks);
  };
  const columns: Column<PartRow>[] = [
    { title: 'PART', show: ({ name }) => name },
    { title: 'LOCKS', show: (row) => row.locks.toLocaleString('en-US') },
    { title: 'CONNECTS', show: perLock('connections') },
    { title: 'UPLINKS', show: perLock('messagesUp') },
    { title: 'KEEPALIVES', show: perLock('keepalives'), optional: true },
    { title: 'UP', show: (row) => byteText(Math.round(row.month.bytesUp.value / row.locks)), optional: true },
    { title: 'DOWN', show: (row) => byteText(Math.round(row.month.bytesDown.value / row.locks)), optional: true },
    { title: 'MB', show: (row) => megabytes(row.month.bytes.value / row.locks) },
  ];
  if (sampled < locks) columns.push({ title: '±', show: (row) => errorText(row.month.bytes) });
  columns.push({
    title: 'BATTERY',
    show: ({ battery }) => (battery === null ? '–' : `${formatCount(battery.days)} d`),
  });
  if (prices !== null)
    columns.push({ title: prices.currency, show: (row) => priceOf(prices, row.month, row.locks).perLock });
  printTable(parts, columns, all);
}

function printHours(hours: readonly HourSize[]): void {
  const maxConnected = Math.max(...hours.map(({ connectedPeak }) => connectedPeak));
  printTable(hours, [
    { title: 'HOUR', show: ({ hour }) => String(hour).padStart(2, '0') },
    { title: 'CONNECTED', show: ({ connected }) => formatCount(connected.value) },
    { title: 'PEAK', show: (row) => formatCount(row.connectedPeak) },
    { title: 'CONNECTS/MIN', show: (row) => formatCount(row.connectsPerMinutePeak) },
    { title: 'PINGS/S', show: (row) => formatCount(row.uplinksPerSecond) },
    { title: 'PINGS/S PEAK', show: (row) => formatCount(row.uplinksPerSecondPeak) },
    { title: '', show: (row) => bar(row.connectedPeak, maxConnected), optional: true },
  ]);
}

/** The highest load, and the hour in which it occurs. */
function peakLines({ hours }: Sizing): string[] {
  const peakOf = (name: PeakName): [value: string, hourText: string] => {
    const { hour, [name]: value } = peakHour(hours, name);
    return [formatCount(value), `${String(hour).padStart(2, '0')}:00`];
  };
  const [connected, connectedAt] = peakOf('connectedPeak');
  const [connects, connectsAt] = peakOf('connectsPerMinutePeak');
  const [pings, pingsAt] = peakOf('uplinksPerSecondPeak');
  return [
    paint('bold', `At its peak: ${connected} connections at once (in the hour from ${connectedAt}),`),
    paint(
      'bold',
      `${connects} connects in a minute (${connectsAt}), ${pings} pings/s over ${windowText()} (${pingsAt}).`,
    ),
  ];
}

type PeakName = 'connectedPeak' | 'connectsPerMinutePeak' | 'uplinksPerSecondPeak';

/** The hour with the highest value. */
function peakHour(hours: readonly HourSize[], name: PeakName): HourSize {
  return hours.reduce((peak, hour) => (hour[name] > peak[name] ? hour : peak));
}

function windowText(): string {
  return `${RATE_WINDOW_MS / Seconds(1)} s`;
}

/** How to read the figures. */
function notes({ locks, sampled, total }: Sizing): string[] {
  const lines = [
    'Bytes are those of the TCP connection, as in statements, without TCP/IP headers.',
    'BATTERY: days from full to 10 %, by figures in public data sheets.',
  ];
  if (sampled === locks) return [...lines, 'All locks were simulated: nothing is estimated.'];
  const simulated = plural(sampled, 'simulated lock');
  return [
    ...lines,
    `Scaled from ${simulated}; ± is the standard error; of all bytes: ${errorText(total.bytes)}.`,
    'Peaks are means plus three standard deviations for locks that act independently,',
    'or the measured peak for locks that act at the same time.',
  ];
}

/** Formats a number from 100 on as a whole number, a smaller one with two or three significant digits. */
function formatCount(value: number): string {
  if (value === 0) return '0';
  if (value >= 100) return Math.round(value).toLocaleString('en-US');
  return String(Number(value.toPrecision(value < 1 ? 2 : 3)));
}

/** Decimal megabytes, in which prices are; to 100 bytes. */
function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(4);
}

function errorText({ value, standardError }: Estimate): string {
  return value === 0 ? '–' : `${((100 * standardError) / value).toFixed(1)} %`;
}

/** The plan for `--json`. */
export function planJson(sizing: Sizing, { flags, prices, seconds, repeat }: PlanReport): object {
  const { locks, sampled, days, parts, total, hours } = sizing;
  const month = (size: MonthSize, lockCount: number): object => ({
    ...monthJson(size),
    ...(prices !== null && priceJson(prices, size, lockCount)),
  });
  return {
    seed: flags.seed,
    locks,
    simulated_locks: sampled,
    scaled: sampled < locks,
    days,
    month_days: MONTH_DAYS,
    pace: flags.pace,
    mix: flags.mix,
    tls: flags.tls ?? false,
    prices: prices && { per_mb: prices.perMb, per_sim: prices.perSim, currency: prices.currency },
    parts: parts.map((part) => {
      return {
        part: part.name,
        locks: part.locks,
        simulated_locks: part.sampled,
        month: month(part.month, part.locks),
        battery: batteryJson(part.battery),
      };
    }),
    month: month(total, locks),
    battery: batteryJson(sizing.battery),
    stored_bytes_per_day: storedPerDay(sizing),
    rate_window_seconds: RATE_WINDOW_MS / Seconds(1),
    peak: {
      connected: peakHour(hours, 'connectedPeak').connectedPeak,
      connects_per_minute: peakHour(hours, 'connectsPerMinutePeak').connectsPerMinutePeak,
      pings_per_second: peakHour(hours, 'uplinksPerSecondPeak').uplinksPerSecondPeak,
    },
    hours: hours.map((hour) => ({
      hour: hour.hour,
      connected: hour.connected.value,
      connected_standard_error: hour.connected.standardError,
      connected_peak: hour.connectedPeak,
      connects_per_minute_peak: hour.connectsPerMinutePeak,
      pings_per_second: hour.uplinksPerSecond,
      pings_per_second_peak: hour.uplinksPerSecondPeak,
    })),
    seconds,
    repeat,
  };
}

function monthJson(size: MonthSize): object {
  return {
    connections: size.connections.value,
    messages_up: size.messagesUp.value,
    messages_down: size.messagesDown.value,
    keepalives: size.keepalives.value,
    bytes_up: size.bytesUp.value,
    bytes_down: size.bytesDown.value,
    bytes: size.bytes.value,
    bytes_standard_error: size.bytes.standardError,
  };
}

function batteryJson(battery: BatterySize | null): object | null {
  if (battery === null) return null;
  const { days, mahPerDay, byCause } = battery;
  const { selfDischarge, ...otherCauses } = byCause;
  return { days, mah_per_day: mahPerDay, mah_per_day_by_cause: { ...otherCauses, self_discharge: selfDischarge } };
}

function priceJson(prices: PricePlan, size: MonthSize, locks: number): object {
  const { total, perLock } = priceOf(prices, size, locks);
  return { price: total, price_per_lock: perLock };
}
