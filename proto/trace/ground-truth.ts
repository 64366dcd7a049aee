/**
 * Reads the ground truth: the members of a trace's `world` events, which record what truly happened around a lock
 * (protocol.md §4). The simulator writes them; a test bench may write them too. The judge never reads these events.
 * Pure.
 */
import { ok, problem, type Result } from '../errors.js';
import { type JsonObject, JsonReader } from '../json-reader.js';
import type { GpsFix, StepInput } from '../power/step/io.js';
import type { TetherState } from '../wire/ping.js';
import type { TraceWorld } from './trace.js';

/** Something that changed for a lock, as the simulated lock would receive it. */
export type TruthChange = Extract<
  StepInput,
  {
    type:
      | 'boot'
      | 'motion'
      | 'lock-state'
      | 'coverage'
      | 'sky'
      | 'battery'
      | 'ebike'
      | 'tether'
      | 'settings'
      | 'modem-reset';
  }
>;

/** The content of one `world` event. */
export interface GroundTruth {
  /** Ms since the epoch. */
  readonly atMs: number;
  /** Empty if the event only has the lock's position and motion, or members that no reader knows. */
  readonly changes: readonly TruthChange[];
  /** The lock's true position and motion; null if the event has none. */
  readonly fix: GpsFix | null;
}

const TETHER_STATES = ['attached', 'detached', 'unknown'] as const satisfies readonly TetherState[];
const LOCK_STATES = ['locked', 'unlocked'] as const;
const MODES = ['MID', 'HIGH'] as const;

type ReadMember = (reader: JsonReader, value: unknown) => TruthChange;

/** How to read each member, by its name. In a call of the reader, the empty text says that it is in the line itself. */
const MEMBERS: Readonly<Record<string, ReadMember>> = {
  boot: () => ({ type: 'boot' }),
  moving: (reader, value) => ({ type: 'motion', moving: reader.flag(value, '', 'moving') }),
  lock_state: (reader, value) => {
    return { type: 'lock-state', lockState: reader.word(value, '', 'lock_state', LOCK_STATES) };
  },
  coverage: (reader, value) => ({ type: 'coverage', covered: reader.flag(value, '', 'coverage') }),
  sky: (reader, value) => ({ type: 'sky', open: reader.flag(value, '', 'sky') }),
  battery_percent: (reader, value) => ({ type: 'battery', percent: reader.count(value, '', 'battery_percent') }),
  ebike_voltage: (reader, value) => {
    return { type: 'ebike', volts: value === null ? null : reader.number(value, '', 'ebike_voltage') };
  },
  tether_state: (reader, value) => {
    return { type: 'tether', tetherState: reader.word(value, '', 'tether_state', TETHER_STATES) };
  },
  power: (reader, value) => ({ type: 'settings', change: readSettings(reader, reader.object(value, '', 'power')) }),
  modem_reset: () => ({ type: 'modem-reset' }),
};

/** Reads a `world` event and ignores unknown members. An error names the member and what was expected. */
export function readGroundTruth({ atMs, members }: TraceWorld): Result<GroundTruth> {
  const reader = new JsonReader();
  const changes: TruthChange[] = [];
  for (const [member, value] of Object.entries(members)) {
    // Own members only: a line may have a member `constructor`.
    if (Object.hasOwn(MEMBERS, member)) changes.push((MEMBERS[member] as ReadMember)(reader, value));
  }
  const fix = members.fix === undefined ? null : readFix(reader, reader.object(members.fix, '', 'fix'));
  return reader.error === null ? ok({ atMs, changes, fix }) : problem('bad-truth', reader.error);
}

type Settings = Extract<TruthChange, { type: 'settings' }>['change'];

function readSettings(reader: JsonReader, json: JsonObject): Settings {
  const flag = (member: string): boolean => reader.flag(json[member], 'power', member);
  return {
    ...(json.mode !== undefined && { mode: reader.word(json.mode, 'power', 'mode', MODES) }),
    ...(json.ride_tracking !== undefined && { rideTracking: flag('ride_tracking') }),
    ...(json.airplane !== undefined && { airplane: flag('airplane') }),
    ...(json.recovery !== undefined && { recovery: flag('recovery') }),
  };
}

/** The uncertainty assumed for a true position, since a `world` event states none: that of a good GPS receiver. */
const TRUE_UNCERTAINTY_METERS = 5;

function readFix(reader: JsonReader, json: JsonObject): GpsFix {
  const number = (member: string): number => reader.number(json[member], 'fix', member);
  return {
    position: {
      latitudeDegrees: number('latitude'),
      longitudeDegrees: number('longitude'),
      uncertaintyMeters: TRUE_UNCERTAINTY_METERS,
    },
    speedMetersPerSecond: json.speed === undefined ? 0 : number('speed'),
    directionDegrees: json.direction === undefined ? 0 : number('direction'),
  };
}
