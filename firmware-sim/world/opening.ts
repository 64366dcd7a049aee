/**
 * How the first half hour of a lock goes where somebody watches: each lock of a fleet has a part, so that within 30 s
 * of a run at 60 × speed every trigger of the power model is seen (protocol.md §2).
 */
import { Minutes } from '../../proto/clock.js';
import { DEFAULT_POWER, type PowerSettings } from '../../proto/wire/ping.js';
import type { WorldChange } from './world.js';

export type Scene =
  | { readonly type: 'ride'; readonly afterMs: number }
  | { readonly type: 'theft'; readonly afterMs: number }
  | { readonly type: 'change'; readonly afterMs: number; readonly change: WorldChange };

export interface Opening {
  /** For people. */
  readonly name: string;
  readonly power?: PowerSettings;
  readonly batteryPercent?: number;
  readonly scenes: readonly Scene[];
  /** When the ordinary life begins. */
  readonly endsAfterMs: number;
}

const TRACKED: PowerSettings = { ...DEFAULT_POWER, rideTracking: true };

const battery = (afterMs: number, percent: number): Scene => ({
  type: 'change',
  afterMs,
  change: { type: 'battery', percent },
});
const airplane = (afterMs: number, on: boolean): Scene => ({
  type: 'change',
  afterMs,
  change: { type: 'settings', change: { airplane: on } },
});
const coverage = (afterMs: number, covered: boolean): Scene => ({
  type: 'change',
  afterMs,
  change: { type: 'coverage', covered },
});

/** Of those who ride a way of their own: nobody wants to wait until the morning for it. */
export const OWN_WAY = {
  name: 'a ride along a way of one’s own, with ride tracking',
  power: TRACKED,
  scenes: [{ type: 'ride', afterMs: Minutes(1) }],
  endsAfterMs: Minutes(2),
} as const satisfies Opening;

/** The parts, in the order in which a fleet gives them out; then they begin anew. */
export const OPENINGS: readonly Opening[] = [
  {
    name: 'a ride with ride tracking',
    power: TRACKED,
    scenes: [{ type: 'ride', afterMs: Minutes(1) }],
    endsAfterMs: Minutes(20),
  },
  { name: 'a theft', power: DEFAULT_POWER, scenes: [{ type: 'theft', afterMs: Minutes(2) }], endsAfterMs: Minutes(30) },
  {
    name: 'HIGH, kept in the high window',
    power: { ...DEFAULT_POWER, mode: 'HIGH' },
    scenes: [{ type: 'ride', afterMs: Minutes(12) }],
    endsAfterMs: Minutes(30),
  },
  {
    name: 'recovery',
    power: { ...DEFAULT_POWER, recovery: true },
    scenes: [],
    endsAfterMs: Minutes(25),
  },
  {
    name: 'a ride without ride tracking',
    power: DEFAULT_POWER,
    scenes: [{ type: 'ride', afterMs: Minutes(3) }],
    endsAfterMs: Minutes(25),
  },
  {
    name: 'a battery that runs low and is charged',
    power: DEFAULT_POWER,
    batteryPercent: 10,
    scenes: [battery(Minutes(5), 9), battery(Minutes(15), 64)],
    endsAfterMs: Minutes(30),
  },
  {
    name: 'airplane mode, by hand',
    power: TRACKED,
    scenes: [airplane(Minutes(4), true), airplane(Minutes(18), false), { type: 'ride', afterMs: Minutes(20) }],
    endsAfterMs: Minutes(40),
  },
  {
    name: 'a modem that restarts',
    power: DEFAULT_POWER,
    scenes: [{ type: 'change', afterMs: Minutes(6), change: { type: 'modem-reset' } }],
    endsAfterMs: Minutes(25),
  },
  {
    name: 'a ride out of reach, told later',
    power: TRACKED,
    scenes: [coverage(Minutes(7) + 1, false), { type: 'ride', afterMs: Minutes(7) }, coverage(Minutes(18), true)],
    endsAfterMs: Minutes(30),
  },
];
