/**
 * `lockgate trace what-if`: simulates the locks of a trace twice, with their power settings in the trace (`today`) and
 * with changed settings, and prints both results side by side.
 */
import { locksFromTrace } from '../../../../firmware-sim/inference/from-trace.js';
import type { LockTraces } from '../../../../firmware-sim/inference/lock-trace.js';
import { TLS_13, WireSize } from '../../../../firmware-sim/link/wire-size.js';
import type { WhatIfSettings } from '../../../../firmware-sim/what-if/settings.js';
import { type SettingsOutcome, SettingsRun } from '../../../../firmware-sim/what-if/settings-run.js';
import { Days, Hours } from '../../../../proto/clock.js';
import { LockgateError } from '../../../../proto/errors.js';
import { JsonReader } from '../../../../proto/json-reader.js';
import { type HighWindow, isPingUplink } from '../../../../proto/wire/ping.js';
import { readHighWindow } from '../../../../proto/wire/ping-from-json.js';
import { highWindowToJson } from '../../../../proto/wire/ping-json.js';
import { untilInterrupted } from '../../../terminal/interrupt.js';
import { print, printJson, printNote, sanitizeLine } from '../../../terminal/output.js';
import { advanceInSlices } from '../../../terminal/run-slices.js';
import { printTable } from '../../../terminal/table.js';
import { plural } from '../../sim/summary.js';
import { readLockTraces } from '../../sim/traced-locks.js';

/** The flags of `lockgate trace what-if`. */
export interface WhatIfFlags {
  readonly mode?: 'MID' | 'HIGH';
  readonly window?: string;
  readonly utcOffset?: string;
  readonly rideTracking?: 'on' | 'off';
  readonly airplane?: 'on' | 'off';
  readonly recovery?: 'on' | 'off';
  readonly tls?: boolean;
  readonly json?: boolean;
}

/**
 * Prints pings, bytes, connections and battery life under both settings.
 *
 * @throws LockgateError `input-…` for a wrong flag, or a file that can't be read
 */
export async function compareSettings(file: string, flags: WhatIfFlags): Promise<void> {
  const settings = readSettings(flags);
  const interrupted = untilInterrupted();
  const traces = await readLockTraces(file);
  const wire = new WireSize(flags.tls ? { tls: TLS_13 } : {});
  const outcomes: SettingsOutcome[] = [];
  for (const [name, changes] of [
    ['today', {}],
    ['what-if', settings],
  ] as const) {
    const { fromMs, untilMs } = traces;
    // The commands of the trace are sent again. Otherwise their effects would be repeated as outside events.
    const locks = locksFromTrace(traces, { commandReplay: 'sent' });
    const run = new SettingsRun({ locks, settings: changes, fromMs, untilMs, wire });
    const percentDone = (): number => Math.floor((100 * (run.nowMs - fromMs)) / Math.max(1, untilMs - fromMs));
    await advanceInSlices(run, () => `${name}: ${percentDone()} % of the trace`, interrupted.signal);
    if (interrupted.signal.aborted) {
      process.exitCode = interrupted.exitCode;
      printNote('Interrupted: nothing was compared.');
      return;
    }
    outcomes.push(run.finish());
  }
  const [today, changed] = outcomes as [SettingsOutcome, SettingsOutcome];
  if (flags.json) printJson(toJson(file, flags, traces, { today, changed }));
  else printReport(file, settings, traces, { today, changed });
}

function readSettings(flags: WhatIfFlags): WhatIfSettings {
  const { mode, window, utcOffset, rideTracking, airplane, recovery } = flags;
  if (utcOffset !== undefined && window === undefined)
    throw new LockgateError('input-window', '--utc-offset requires --window');
  const settings: WhatIfSettings = {
    ...(mode !== undefined && { mode }),
    ...(rideTracking !== undefined && { rideTracking: rideTracking === 'on' }),
    ...(airplane !== undefined && { airplane: airplane === 'on' }),
    ...(recovery !== undefined && { recovery: recovery === 'on' }),
    ...(window !== undefined && { highWindow: readWindow(window, utcOffset ?? '+00:00') }),
  };
  if (Object.keys(settings).length > 0) return settings;
  const expected = '--mode, --window, --ride-tracking, --airplane or --recovery';
  throw new LockgateError('input-settings', `nothing is to be changed: expected at least one of ${expected}`);
}

function readWindow(text: string, offsetText: string): HighWindow {
  const [from, to, ...more] = text.split('-');
  const offset = /^([+-])(\d\d):([0-5]\d)$/.exec(offsetText);
  if (offset === null)
    throw new LockgateError(
      'input-window',
      `--utc-offset is ${JSON.stringify(offsetText)}: expected an offset such as +01:00`,
    );
  const minutes = (Number(offset[2]) * 60 + Number(offset[3])) * (offset[1] === '-' ? -1 : 1);
  const reader = new JsonReader();
  const window = readHighWindow(reader, { from, to, utc_offset_minutes: minutes }, 'window', '');
  if (reader.error === null && more.length === 0) return window;
  throw new LockgateError('input-window', `--window is ${JSON.stringify(text)}: expected a window such as 06:00-22:00`);
}

/** The results of both simulations. */
interface Outcomes {
  readonly today: SettingsOutcome;
  readonly changed: SettingsOutcome;
}

/** A row of the table: one figure under both settings. */
interface Row {
  readonly title: string;
  readonly today: number;
  readonly changed: number;
  /** Digits after the decimal point. */
  readonly digits: number;
}

/** The rows of the table: pings by reason in alphabetical order, and the figures of the connection and the battery. */
function rowsOf({ today, changed }: Outcomes, days: number): Row[] {
  const row = (title: string, figureOf: (outcome: SettingsOutcome) => number, digits = 0): Row => {
    return { title, today: figureOf(today), changed: figureOf(changed), digits };
  };
  const reasons = [...new Set([...today.pings.keys(), ...changed.pings.keys()])].sort();
  // A trace of one moment has no days; nothing may be divided by 0.
  const divisorDays = Math.max(days, Number.MIN_VALUE);
  return [
    ...reasons.map((reason) => row(reason, ({ pings }) => pings.get(reason) ?? 0)),
    row('all pings', totalPings),
    row('connections', ({ connections }) => connections),
    row('bytes to the gateway', ({ bytesUp }) => bytesUp),
    row('bytes to the locks', ({ bytesDown }) => bytesDown),
    row('bytes a day', ({ bytesUp, bytesDown }) => (bytesUp + bytesDown) / divisorDays),
    // A trace without duration has no consumption: `battery` is null.
    row('mAh a day and lock', ({ battery }) => battery?.mahPerDay ?? 0, 2),
    row('battery days', ({ battery }) => battery?.days ?? 0, 1),
    row('hours with a low battery', ({ lowBatteryMs }) => lowBatteryMs / Hours(1), 1),
  ];
}

function totalPings({ pings }: SettingsOutcome): number {
  return [...pings.values()].reduce((sum, count) => sum + count, 0);
}

function printReport(file: string, settings: WhatIfSettings, traces: LockTraces, outcomes: Outcomes): void {
  const days = daysOf(traces);
  const { locks } = traces;
  // Without world events (the ground truth) a lock's surroundings were inferred from its pings.
  const inferredLocks = locks.filter(({ groundTruth }) => groundTruth.length === 0).length;
  const changes = Object.entries(settingsToJson(settings)).map(([name, value]) => `${name} ${textOf(value)}`);
  print(sanitizeLine(`${file}: ${plural(locks.length, 'lock')}, ${days.toFixed(1)} days`));
  print(`What if: ${changes.join(', ')}`);
  const text = (value: number, digits: number): string => {
    return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
  };
  printTable(rowsOf(outcomes, days), [
    { title: '', show: ({ title }) => title },
    { title: 'TODAY', show: ({ today, digits }) => text(today, digits) },
    { title: 'WHAT IF', show: ({ changed, digits }) => text(changed, digits) },
    { title: 'CHANGE', show: ({ today, changed }) => changeText(today, changed), optional: true },
  ]);
  const recorded = recordedPings(traces);
  print(`The trace itself has ${recorded.toLocaleString('en-US')} pings.`);
  if (inferredLocks === 0) return;
  print(`Inferred from pings for ${plural(inferredLocks, 'lock')}: nothing else is assumed to have happened.`);
}

function changeText(today: number, changed: number): string {
  if (today === changed) return '';
  if (today === 0) return 'new';
  const percent = (100 * (changed - today)) / today;
  return `${percent > 0 ? '+' : ''}${percent.toFixed(0)} %`;
}

/** A setting's value as text; an object is the high window. */
function textOf(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  if (typeof value === 'string') return value;
  const { from, to, utc_offset_minutes: offset } = value as ReturnType<typeof highWindowToJson>;
  return `${from}-${to} (UTC offset ${offset} min)`;
}

function settingsToJson({ mode, rideTracking, airplane, recovery, highWindow }: WhatIfSettings): object {
  return {
    ...(mode !== undefined && { mode }),
    ...(rideTracking !== undefined && { ride_tracking: rideTracking }),
    ...(airplane !== undefined && { airplane }),
    ...(recovery !== undefined && { recovery }),
    ...(highWindow !== undefined && { high_window: highWindowToJson(highWindow) }),
  };
}

function toJson(file: string, flags: WhatIfFlags, traces: LockTraces, { today, changed }: Outcomes): object {
  /** Whether the trace says what truly happened around the locks, or that was inferred from their pings. */
  const world = traces.locks.every(({ groundTruth }) => groundTruth.length > 0) ? 'recorded' : 'inferred';
  return {
    file,
    locks: traces.locks.length,
    days: daysOf(traces),
    world,
    tls: flags.tls ?? false,
    settings: settingsToJson(readSettings(flags)),
    trace: { pings: recordedPings(traces) },
    today: outcomeToJson(today),
    what_if: outcomeToJson(changed),
  };
}

function outcomeToJson(outcome: SettingsOutcome): object {
  const { pings, connections, bytesUp, bytesDown, battery, lowBatteryMs } = outcome;
  return {
    pings: { total: totalPings(outcome), by_reason: Object.fromEntries([...pings].sort()) },
    connections,
    bytes: { up: bytesUp, down: bytesDown, total: bytesUp + bytesDown },
    battery: battery === null ? null : { mah_per_day: battery.mahPerDay, days: battery.days },
    low_battery_hours: lowBatteryMs / Hours(1),
  };
}

function recordedPings({ locks }: LockTraces): number {
  return locks.reduce((sum, { uplinks }) => sum + uplinks.filter(({ uplink }) => isPingUplink(uplink)).length, 0);
}

function daysOf({ fromMs, untilMs }: LockTraces): number {
  return (untilMs - fromMs) / Days(1);
}
