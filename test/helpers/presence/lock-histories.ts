/**
 * Generates what happens to each lock in a simulated month (month.ts): rides, outages, commands, changed settings. The
 * lock's profile says what happens, and the seed of the random numbers says when.
 */
import type { Prng } from '../../../firmware-sim/prng.js';
import {
  type InitialState,
  ScriptedWorld,
  type WorldChange,
  type WorldEvent,
} from '../../../firmware-sim/world/world.js';
import { Days, Hours, type Milliseconds, Minutes, Seconds } from '../../../proto/clock.js';
import { type Command, DEFAULT_POWER, type PowerSettings } from '../../../proto/wire/ping.js';

/** A command for a lock, and when it is sent. */
export interface TimedCommand {
  readonly atMs: number;
  readonly command: Command;
}

/** What happens to one lock. */
export interface LockHistory {
  readonly name: string;
  /** When the lock gets power for the first time. */
  readonly poweredOnMs: number;
  readonly world: ScriptedWorld;
  readonly commands: readonly TimedCommand[];
  /** When the network breaks the lock's connection, if it has one. */
  readonly connectionLossesMs: readonly number[];
}

/** A kind of lock: its first settings, and what happens to it. */
interface Profile {
  readonly name: string;
  readonly power?: Partial<PowerSettings>;
  readonly commands?: readonly Command[];
  /** A switch that a person changes at the lock, for some hours at a time. */
  readonly changedOnLock?: 'airplane' | 'recovery';
  /** Whether its battery is low now and then. */
  readonly lowBattery?: boolean;
  /** Whether it is unlocked and ridden every two days, on average. */
  readonly rides?: boolean;
  /** At noon of this day an airplane command is sent on a dead connection; the lock receives it 20 h later. */
  readonly silenceCommandOnDay?: number;
  /** The mean time between outages of coverage; 6 days by default. */
  readonly outageEvery?: Milliseconds;
}

const WINDOW_OVER_MIDNIGHT = { fromMinute: 22 * 60, toMinute: 2 * 60, utcOffsetMinutes: 60 };
const WINDOW_OF_12_MINUTES = { fromMinute: 6 * 60, toMinute: 6 * 60 + 12, utcOffsetMinutes: -330 };
const WINDOW_OF_9_MINUTES = { fromMinute: 600, toMinute: 609, utcOffsetMinutes: 0 };

/**
 * The profiles, assigned to locks in turn. Most hold no connection open, since a lock with an open connection sends a
 * hundred uplinks a day, which slows the test.
 */
const PROFILES: readonly Profile[] = [
  { name: 'MID, rides', rides: true },
  { name: 'MID, ride tracking', rides: true, power: { rideTracking: true } },
  { name: 'HIGH by day', power: { mode: 'HIGH' } },
  { name: 'MID, low battery', lowBattery: true },
  { name: 'MID, airplane set on the lock', changedOnLock: 'airplane', rides: true },
  {
    name: 'HIGH over midnight by command',
    commands: [{ type: 'set-power', mode: 'HIGH', highWindow: WINDOW_OVER_MIDNIGHT }],
  },
  { name: 'MID, recovery now and then', changedOnLock: 'recovery' },
  {
    name: 'HIGH, airplane command on a dead connection',
    power: { mode: 'HIGH' },
    changedOnLock: 'airplane',
    silenceCommandOnDay: 6,
  },
  { name: 'recovery', power: { recovery: true }, outageEvery: Days(3) },
  {
    name: 'HIGH in windows of minutes',
    commands: [
      { type: 'set-power', mode: 'HIGH', highWindow: WINDOW_OF_12_MINUTES },
      { type: 'set-power', highWindow: WINDOW_OF_9_MINUTES },
    ],
  },
  {
    name: 'airplane by command',
    commands: [
      { type: 'set-power', airplane: true },
      { type: 'set-power', airplane: true },
    ],
    changedOnLock: 'airplane',
  },
  {
    name: 'MID, HIGH and back by command',
    lowBattery: true,
    commands: [
      { type: 'set-power', mode: 'HIGH', rideTracking: true },
      { type: 'set-power', mode: 'MID' },
    ],
  },
];

/** Everything that happens to the lock with this index in the month that starts at `startMs` and lasts `span`. */
export function makeHistory(index: number, random: Prng, startMs: number, span: Milliseconds): LockHistory {
  const profile = PROFILES[index % PROFILES.length] as Profile;
  const poweredOnMs = startMs + (random.chance(0.15) ? random.between(Days(1), Days(5)) : random.between(0, Hours(1)));
  const endMs = startMs + span;
  const events: WorldEvent[] = [];
  const addChange = (atMs: number, change: WorldChange): void => void events.push({ atMs: Math.round(atMs), change });
  const repeatAtRandom = (everyMs: Milliseconds, addEvent: (atMs: number) => void): void => {
    for (
      let atMs = poweredOnMs + random.between(0, 2 * everyMs);
      atMs < endMs;
      atMs += random.between(0.3, 1.7) * everyMs
    )
      addEvent(atMs);
  };
  repeatAtRandom(profile.outageEvery ?? Days(6), (atMs) => addOutage(addChange, random, atMs));
  if (profile.rides === true) repeatAtRandom(Days(2), (atMs) => addRide(addChange, random, atMs));
  if (profile.lowBattery === true) repeatAtRandom(Days(8), (atMs) => addLowBattery(addChange, random, atMs));
  if (profile.changedOnLock !== undefined)
    addLockSettingChanges(profile.changedOnLock, addChange, random, repeatAtRandom);
  repeatAtRandom(Days(12), (atMs) => addChange(atMs, { type: random.chance(0.5) ? 'modem-reset' : 'boot' }));
  const commands: TimedCommand[] = [];
  for (const [number, command] of (profile.commands ?? []).entries())
    commands.push({ atMs: poweredOnMs + random.between(0.2, 1) * ((number + 1) * Days(7)), command });
  if (profile.silenceCommandOnDay !== undefined) {
    const connectionDiesMs = startMs + Days(profile.silenceCommandOnDay) + Hours(12);
    addChange(connectionDiesMs, { type: 'coverage', covered: false });
    addChange(connectionDiesMs + Hours(20), { type: 'coverage', covered: true });
    commands.push({ atMs: connectionDiesMs + 1, command: { type: 'set-power', airplane: true } });
  }
  events.sort((a, b) => a.atMs - b.atMs);
  const connectionLossesMs: number[] = [];
  repeatAtRandom(Days(2), (atMs) => connectionLossesMs.push(atMs));
  const power = { ...DEFAULT_POWER, ...profile.power };
  return {
    name: profile.name,
    poweredOnMs,
    world: new ScriptedWorld(initialState(power), events, FIX),
    commands,
    connectionLossesMs,
  };
}

/** Adds an event to the history. */
type AddChange = (atMs: number, change: WorldChange) => void;

/** Adds an outage of coverage of minutes, hours or days. */
function addOutage(addChange: AddChange, random: Prng, atMs: number): void {
  const span = random.pick([Minutes(4), Minutes(15), Hours(3), Hours(30), Days(2.5)]) * random.between(0.7, 1.3);
  addChange(atMs, { type: 'coverage', covered: false });
  addChange(atMs + span, { type: 'coverage', covered: true });
}

/** Adds a ride of some minutes: unlocked, moving, standing, locked. */
function addRide(addChange: AddChange, random: Prng, atMs: number): void {
  const endsMs = atMs + Minutes(random.integer(2, 6));
  addChange(atMs, { type: 'lock-state', lockState: 'unlocked' });
  addChange(atMs + Seconds(5), { type: 'motion', moving: true });
  addChange(endsMs, { type: 'motion', moving: false });
  addChange(endsMs + Seconds(10), { type: 'lock-state', lockState: 'locked' });
}

/** Adds a low battery for hours or days, sometimes with a movement, which is reported despite the low battery. */
function addLowBattery(addChange: AddChange, random: Prng, atMs: number): void {
  const span = random.between(Hours(3), Days(3));
  // Below 10 % a lock counts its battery as low.
  addChange(atMs, { type: 'battery', percent: 9 });
  if (random.chance(0.5)) {
    addChange(atMs + span / 2, { type: 'motion', moving: true });
    addChange(atMs + span / 2 + Seconds(40), { type: 'motion', moving: false });
  }
  addChange(atMs + span, { type: 'battery', percent: 70 });
}

/** Adds switches of a setting at the lock, on and some hours later off. */
function addLockSettingChanges(
  which: 'airplane' | 'recovery',
  addChange: AddChange,
  random: Prng,
  repeatAtRandom: (everyMs: Milliseconds, addEvent: (atMs: number) => void) => void,
): void {
  repeatAtRandom(Days(7), (atMs) => {
    addChange(atMs, { type: 'settings', change: { [which]: true } });
    addChange(atMs + random.between(Hours(2), Days(1.5)), { type: 'settings', change: { [which]: false } });
  });
}

function initialState(power: PowerSettings): InitialState {
  return {
    lockState: 'locked',
    batteryPercent: 80,
    power,
    ebikeVolts: null,
    tetherState: 'detached',
    covered: true,
    skyOpen: true,
  };
}

const FIX = {
  position: { latitudeDegrees: 52.37, longitudeDegrees: 4.89, uncertaintyMeters: 8 },
  speedMetersPerSecond: 4,
  directionDegrees: 90,
};
