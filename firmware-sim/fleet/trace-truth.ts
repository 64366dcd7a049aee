/** What a trace's `world` events say of what truly happened around a lock: world-members.ts the other way round. */
import { ok, problem, type Result } from '../../proto/errors.js';
import { type JsonObject, JsonReader } from '../../proto/json-reader.js';
import type { GpsFix } from '../../proto/power/step/io.js';
import type { TraceWorld } from '../../proto/trace/trace.js';
import type { TetherState } from '../../proto/wire/ping.js';
import type { WorldChange } from '../world/world.js';

/** One `world` event, read. */
export interface Truth {
  /** Ms since the epoch. */
  readonly atMs: number;
  /** Members that are not ours are passed over, and so this may be empty. */
  readonly changes: readonly WorldChange[];
  /** Where the lock was, where the event tells it. */
  readonly fix: GpsFix | null;
}

const TETHER_STATES = ['attached', 'detached', 'unknown'] as const satisfies readonly TetherState[];
const LOCK_STATES = ['locked', 'unlocked'] as const;
const MODES = ['MID', 'HIGH'] as const;

type ReadMember = (reader: JsonReader, value: unknown) => WorldChange;

/** By member, as world-members.ts writes them. */
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

/** Reads a `world` event. What is wrong is told with the member and what was expected. */
export function readTruth({ atMs, members }: TraceWorld): Result<Truth> {
  const reader = new JsonReader();
  const changes: WorldChange[] = [];
  for (const [member, value] of Object.entries(members)) {
    if (Object.hasOwn(MEMBERS, member)) changes.push((MEMBERS[member] as ReadMember)(reader, value));
  }
  const fix = members.fix === undefined ? null : readFix(reader, reader.object(members.fix, '', 'fix'));
  return reader.error === null ? ok({ atMs, changes, fix }) : problem('bad-truth', reader.error);
}

type Settings = Extract<WorldChange, { type: 'settings' }>['change'];

function readSettings(reader: JsonReader, json: JsonObject): Settings {
  const flag = (member: string): boolean => reader.flag(json[member], 'power', member);
  return {
    ...(json.mode !== undefined && { mode: reader.word(json.mode, 'power', 'mode', MODES) }),
    ...(json.ride_tracking !== undefined && { rideTracking: flag('ride_tracking') }),
    ...(json.airplane !== undefined && { airplane: flag('airplane') }),
    ...(json.recovery !== undefined && { recovery: flag('recovery') }),
  };
}

/** What the truth is uncertain by: the position is the lock's own. */
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
