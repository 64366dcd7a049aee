/**
 * The scripts of a demo: fixed events for the first half hour of a simulated lock, before its generated events start.
 * Each lock of a fleet gets one script, so that a run at 60 × speed shows every trigger of the power model within 30 s
 * (protocol.md §2). Pure data.
 */
import { Minutes } from '../../proto/clock.js';
import { DEFAULT_POWER, type PowerSettings } from '../../proto/wire/ping.js';
import type { WorldChange } from './world.js';

/** An event of a script: a ride, a theft, or a single change; `afterMs` after the start of the run. */
export type ScriptedEvent =
  | { readonly type: 'ride'; readonly afterMs: number }
  | { readonly type: 'theft'; readonly afterMs: number }
  | { readonly type: 'change'; readonly afterMs: number; readonly change: WorldChange };

/** The first settings of a lock, and its first events. */
export interface DemoScript {
  /** What the script shows. */
  readonly name: string;
  readonly power?: PowerSettings;
  readonly batteryPercent?: number;
  readonly events: readonly ScriptedEvent[];
  /** When the generated events start. */
  readonly endsAfterMs: number;
}

/** Mode MID with ride tracking on. */
const TRACKED: PowerSettings = { ...DEFAULT_POWER, rideTracking: true };

const battery = (afterMs: number, percent: number): ScriptedEvent => ({
  type: 'change',
  afterMs,
  change: { type: 'battery', percent },
});
const airplane = (afterMs: number, on: boolean): ScriptedEvent => ({
  type: 'change',
  afterMs,
  change: { type: 'settings', change: { airplane: on } },
});
const coverage = (afterMs: number, covered: boolean): ScriptedEvent => ({
  type: 'change',
  afterMs,
  change: { type: 'coverage', covered },
});

/** The script of locks that follow the user's own route, so that the first ride does not wait for the next morning. */
export const OWN_ROUTE_SCRIPT = {
  name: 'a ride along the user’s own route, with ride tracking',
  power: TRACKED,
  events: [{ type: 'ride', afterMs: Minutes(1) }],
  endsAfterMs: Minutes(2),
} as const satisfies DemoScript;

/** The scripts, in the order in which a fleet assigns them, round robin. */
export const DEMO_SCRIPTS: readonly DemoScript[] = [
  {
    name: 'a ride with ride tracking',
    power: TRACKED,
    events: [{ type: 'ride', afterMs: Minutes(1) }],
    endsAfterMs: Minutes(20),
  },
  { name: 'a theft', power: DEFAULT_POWER, events: [{ type: 'theft', afterMs: Minutes(2) }], endsAfterMs: Minutes(30) },
  {
    name: 'HIGH, connected in the high window',
    power: { ...DEFAULT_POWER, mode: 'HIGH' },
    events: [{ type: 'ride', afterMs: Minutes(12) }],
    endsAfterMs: Minutes(30),
  },
  {
    name: 'a lock in recovery, which is parked and stays connected',
    power: { ...DEFAULT_POWER, recovery: true },
    events: [],
    endsAfterMs: Minutes(25),
  },
  {
    name: 'a ride without ride tracking',
    power: DEFAULT_POWER,
    events: [{ type: 'ride', afterMs: Minutes(3) }],
    endsAfterMs: Minutes(25),
  },
  {
    name: 'a battery that runs low and is charged',
    power: DEFAULT_POWER,
    batteryPercent: 10,
    events: [battery(Minutes(5), 9), battery(Minutes(15), 64)],
    endsAfterMs: Minutes(30),
  },
  {
    name: 'airplane mode, switched at the lock',
    power: TRACKED,
    events: [airplane(Minutes(4), true), airplane(Minutes(18), false), { type: 'ride', afterMs: Minutes(20) }],
    endsAfterMs: Minutes(40),
  },
  {
    name: 'a modem that restarts',
    power: DEFAULT_POWER,
    events: [{ type: 'change', afterMs: Minutes(6), change: { type: 'modem-reset' } }],
    endsAfterMs: Minutes(25),
  },
  {
    name: 'a ride without coverage, reported later',
    power: TRACKED,
    // The first event of a ride is that the lock has coverage. An outage in the same millisecond would be undone by it.
    events: [coverage(Minutes(7) + 1, false), { type: 'ride', afterMs: Minutes(7) }, coverage(Minutes(18), true)],
    endsAfterMs: Minutes(30),
  },
];
