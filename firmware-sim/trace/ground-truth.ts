/**
 * The ground truth: what truly happened around a lock, as the members of a trace's `world` events (protocol.md §4).
 * This file makes them from a lock's diary and reads them back. A member that a ping also has, has the ping's name. The
 * judge never reads these events.
 */
import { ok, problem, type Result } from '../../proto/errors.js';
import { type JsonObject, JsonReader } from '../../proto/json-reader.js';
import type { GpsFix } from '../../proto/power/step/io.js';
import type { TraceWorld } from '../../proto/trace/trace.js';
import type { PowerChange, TetherState } from '../../proto/wire/ping.js';
import type { DiaryEntry } from '../lock/diary.js';
import type { WorldChange } from '../world/world.js';

/** An entry's members besides `at`, `mac` and `event`; undefined for an entry that is not about the world. */
export function worldMembers(entry: DiaryEntry): Record<string, unknown> | undefined {
  if (entry.type === 'world') return membersOf(entry.change);
  if (entry.type === 'booted') return { boot: entry.boot };
  if (entry.type !== 'whereabouts') return undefined;
  const { position, speedMetersPerSecond, directionDegrees } = entry.fix;
  return {
    fix: {
      latitude: position.latitudeDegrees,
      longitude: position.longitudeDegrees,
      speed: speedMetersPerSecond,
      direction: directionDegrees,
    },
  };
}

function membersOf(change: WorldChange): Record<string, unknown> | undefined {
  switch (change.type) {
    // The diary's `booted` entry follows and has the boot number.
    case 'boot':
      return undefined;
    case 'motion':
      return { moving: change.moving };
    case 'lock-state':
      return { lock_state: change.lockState };
    case 'coverage':
      return { coverage: change.covered };
    case 'sky':
      return { sky: change.open };
    case 'battery':
      return { battery_percent: change.percent };
    case 'ebike':
      return { ebike_voltage: change.volts };
    case 'tether':
      return { tether_state: change.tetherState };
    case 'settings':
      return { power: powerMembers(change.change) };
    case 'modem-reset':
      return { modem_reset: true };
  }
}

function powerMembers({ mode, rideTracking, airplane, recovery }: PowerChange): Record<string, unknown> {
  return {
    ...(mode !== undefined && { mode }),
    ...(rideTracking !== undefined && { ride_tracking: rideTracking }),
    ...(airplane !== undefined && { airplane }),
    ...(recovery !== undefined && { recovery }),
  };
}

/** The content of one `world` event. */
export interface GroundTruth {
  /** Ms since the epoch. */
  readonly atMs: number;
  /** Empty if the event has no known member. */
  readonly changes: readonly WorldChange[];
  /** The lock's true position and motion; null if the event has none. */
  readonly fix: GpsFix | null;
}

const TETHER_STATES = ['attached', 'detached', 'unknown'] as const satisfies readonly TetherState[];
const LOCK_STATES = ['locked', 'unlocked'] as const;
const MODES = ['MID', 'HIGH'] as const;

type ReadMember = (reader: JsonReader, value: unknown) => WorldChange;

/** How to read each member, by its name. */
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

/** The uncertainty of a fix that is read from a `world` event, which states none. */
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
