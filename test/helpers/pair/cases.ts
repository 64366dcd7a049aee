/**
 * Every state with every input, for the pair check: the five effective states in their variations, at each stage of a
 * connection, and all that can happen to a lock then.
 */
import { Hours, type Milliseconds, Minutes, Seconds } from '../../../proto/clock.js';
import type { EffectiveState } from '../../../proto/power/model.js';
import type { StepInput } from '../../../proto/power/step/io.js';
import type { HighWindow, PowerSettings } from '../../../proto/wire/ping.js';
import { MIDNIGHT_MS } from '../mqtt/lock-bench.js';
import { CUTS } from './network.js';
import { PairRun } from './run.js';
import { COMMANDS } from './walk.js';

const START_MS = MIDNIGHT_MS + Hours(12);
/** A message takes long enough to catch the lock at each stage of a connection. */
const LATENCY = 400;
/** How far apart the moments are at which a stage is looked for. */
const LOOKS_EVERY = 100;
const LOOKS_WITHIN = Seconds(90);

const DAY: HighWindow = { fromMinute: 420, toMinute: 1140, utcOffsetMinutes: 0 };
const NIGHT: HighWindow = { fromMinute: 1320, toMinute: 360, utcOffsetMinutes: 0 };
const WINDOWS: Readonly<Record<string, HighWindow>> = {
  inside: DAY,
  outside: { ...DAY, utcOffsetMinutes: 600 },
  'inside, over midnight': { ...NIGHT, utcOffsetMinutes: 660 },
  'outside, over midnight': NIGHT,
  'all day': { fromMinute: 90, toMinute: 90, utcOffsetMinutes: 0 },
};

/** A way to be in a state. */
interface Situation {
  readonly name: string;
  readonly state: EffectiveState;
  readonly power: PowerSettings;
  readonly highWindow: HighWindow;
  readonly batteryPercent: number;
}

function situations(): Situation[] {
  const off: PowerSettings = { mode: 'MID', rideTracking: false, airplane: false, recovery: false };
  const all: PowerSettings = { mode: 'HIGH', rideTracking: false, airplane: false, recovery: true };
  const base = { highWindow: DAY, batteryPercent: 10 };
  const found: Situation[] = [
    { ...base, name: 'AIRPLANE', state: 'AIRPLANE', power: { ...off, airplane: true } },
    { ...base, name: 'AIRPLANE over all', state: 'AIRPLANE', power: { ...all, airplane: true }, batteryPercent: 9 },
    { ...base, name: 'LOW_BATTERY', state: 'LOW_BATTERY', power: off, batteryPercent: 9 },
    { ...base, name: 'LOW_BATTERY over all', state: 'LOW_BATTERY', power: all, batteryPercent: 0 },
    { ...base, name: 'RECOVERY', state: 'RECOVERY', power: { ...off, recovery: true } },
    { ...base, name: 'MID', state: 'MID', power: off },
  ];
  for (const [name, highWindow] of Object.entries(WINDOWS)) {
    found.push({ ...base, name: `HIGH ${name}`, state: 'HIGH', power: { ...off, mode: 'HIGH' }, highWindow });
    if (name.startsWith('outside'))
      found.push({ ...base, name: `RECOVERY, HIGH ${name}`, state: 'RECOVERY', power: all, highWindow });
  }
  return found.flatMap((situation) =>
    [false, true].map((rideTracking) => ({
      ...situation,
      name: `${situation.name}${rideTracking ? ', ride tracking' : ''}`,
      power: { ...situation.power, rideTracking },
    })),
  );
}

/** The stages of a connection. */
const STAGES = ['asleep', 'uncovered', 'connecting', 'in flight', 'waiting', 'ending'] as const;
type Stage = (typeof STAGES)[number];

type LockState = 'locked' | 'unlocked';

/** A situation at one stage, with a lock that moves or stands. */
export interface Case {
  readonly name: string;
  readonly situation: Situation;
  readonly stage: Stage;
  readonly lockState: LockState;
  readonly moving: boolean;
}

/** All of them, those that can't be included: {@link playCase} says which. */
export function cases(): Case[] {
  const found: Case[] = [];
  for (const situation of situations()) {
    for (const stage of STAGES) {
      for (const lockState of ['locked', 'unlocked'] as const) {
        for (const moving of [false, true]) {
          const name = `${situation.name}, ${stage}, ${lockState}, ${moving ? 'moving' : 'standing'}`;
          found.push({ name, situation, stage, lockState, moving });
        }
      }
    }
  }
  return found;
}

/** Something that happens to the lock, or around it, once. */
export interface Happening {
  readonly name: string;
  readonly happen: (run: PairRun) => void;
}

/** For each kind of input all that there is of it: a kind that is missing does not compile. */
function happeningsByKind(): Record<StepInput['type'], Happening[]> {
  const given = (...inputs: StepInput[]): Happening[] =>
    inputs.map((input) => ({ name: JSON.stringify(input), happen: (run) => void run.give(input) }));
  const position = { latitudeDegrees: 52.1, longitudeDegrees: 4.5, uncertaintyMeters: 6 };
  const fix = { position, speedMetersPerSecond: 1, directionDegrees: 0 };
  const change = (some: Partial<PowerSettings>): StepInput => ({ type: 'settings', change: some });
  return {
    boot: given({ type: 'boot' }),
    tick: given({ type: 'tick', fix: null, cellPosition: null }, { type: 'tick', fix, cellPosition: position }),
    motion: given({ type: 'motion', moving: true }, { type: 'motion', moving: false }),
    'lock-state': given({ type: 'lock-state', lockState: 'locked' }, { type: 'lock-state', lockState: 'unlocked' }),
    coverage: given({ type: 'coverage', covered: false }, { type: 'coverage', covered: true }),
    sky: given({ type: 'sky', open: false }, { type: 'sky', open: true }),
    battery: given(...[0, 9, 10, 80].map((percent): StepInput => ({ type: 'battery', percent }))),
    ebike: given({ type: 'ebike', volts: 36.5 }, { type: 'ebike', volts: null }),
    tether: given({ type: 'tether', tetherState: 'attached' }, { type: 'tether', tetherState: 'detached' }),
    settings: given(
      ...[true, false].flatMap((on) => [
        change({ airplane: on }),
        change({ recovery: on }),
        change({ rideTracking: on }),
        change({ mode: on ? 'HIGH' : 'MID' }),
      ]),
    ),
    'modem-reset': given({ type: 'modem-reset' }),
    // What a network reports is reported by ours: a report out of its turn would be the host's fault, not the lock's.
    connected: [],
    'connect-failed': [
      {
        name: 'the gateway is gone for a minute',
        happen: (run) => {
          run.listen(false);
          run.later(Minutes(1), () => run.listen(true));
        },
      },
    ],
    disconnected: CUTS.map((cut) => ({ name: `a cut: ${cut}`, happen: (run) => void run.network.cut(cut) })),
    acknowledged: given({ type: 'acknowledged', boot: 9, sequence: 9 }),
    command: commandHappenings(),
  };
}

function commandHappenings(): Happening[] {
  const overtaken: Happening = {
    name: 'lock, and unlock while the tone sounds',
    happen: (run) => {
      run.order({ id: 101, command: { type: 'lock' }, expiresMs: run.nowMs + Minutes(2) });
      run.later(Seconds(2), () =>
        run.order({ id: 102, command: { type: 'unlock' }, expiresMs: run.nowMs + Minutes(2) }),
      );
    },
  };
  const hidden: Happening = {
    name: 'locate by GPS without a sky',
    happen: (run) => {
      run.give({ type: 'sky', open: false });
      run.order({ id: 103, command: { type: 'locate-gps' }, expiresMs: run.nowMs + Hours(24) });
    },
  };
  const each = COMMANDS.flatMap((command, index): Happening[] => {
    const name = JSON.stringify(command);
    const order = (run: PairRun, goodFor: number) =>
      run.order({ id: index + 1, command, expiresMs: run.nowMs + goodFor });
    return [
      { name, happen: (run) => order(run, Hours(24)) },
      { name: `${name}, expired`, happen: (run) => order(run, 0) },
      {
        name: `${name}, four times`,
        happen: (run) => {
          order(run, Minutes(2));
          for (const wait of [0, Seconds(3), Minutes(3)]) run.later(wait, () => order(run, Minutes(2)));
        },
      },
    ];
  });
  return [...each, overtaken, hidden];
}

/** All that can happen. */
export function happenings(): Happening[] {
  return Object.values(happeningsByKind()).flat();
}

/**
 * Brings a lock into the case, lets it happen, and lets all settle again. Undefined where a lock is
 * never at that stage in that situation.
 */
export function playCase(one: Case, happening: Happening, settles: Milliseconds): PairRun | undefined {
  const run = intoCase(one);
  if (run === undefined) return undefined;
  happening.happen(run);
  run.pass(Minutes(2)).give({ type: 'motion', moving: false }).pass(Minutes(15));
  run.give({ type: 'coverage', covered: true }).give({ type: 'sky', open: true });
  run.give({ type: 'settings', change: { airplane: false } }).give({ type: 'battery', percent: 80 });
  return run.pass(settles);
}

function intoCase({ situation, stage, lockState, moving }: Case): PairRun | undefined {
  const { power, highWindow, batteryPercent } = situation;
  const other = lockState === 'locked' ? 'unlocked' : 'locked';
  const wakes = stage !== 'asleep' && stage !== 'uncovered';
  const run = new PairRun({
    seed: 1,
    startMs: START_MS,
    latency: [LATENCY, LATENCY],
    // The shackle wakes a lock that sleeps, but one whose battery is low.
    lock: { lockState: wakes ? other : lockState, batteryPercent, power, highWindow },
  });
  run.hasHands = true;
  run.pass(Minutes(3));
  if (run.state.stateName !== situation.state) throw new Error(`in ${run.state.stateName}, not in ${situation.state}`);
  if (stage === 'uncovered') run.give({ type: 'coverage', covered: false });
  if (wakes) wake(run, lockState, stage);
  if (!seekStage(run, stage)) return undefined;
  if (moving !== run.state.moving) run.give({ type: 'motion', moving });
  return run;
}

function wake(run: PairRun, lockState: LockState, stage: Stage): void {
  run.give({ type: 'lock-state', lockState });
  if (run.state.stateName === 'LOW_BATTERY') run.give({ type: 'motion', moving: true }).pass(Seconds(6));
  else if (stage === 'connecting' && run.state.link === 'up') run.network.cut('both');
}

function seekStage(run: PairRun, stage: Stage): boolean {
  const untilMs = run.nowMs + LOOKS_WITHIN;
  for (; run.nowMs < untilMs; run.pass(LOOKS_EVERY)) {
    const { link, inFlight, covered } = run.state;
    if (stage === 'uncovered' && !covered) return true;
    if (stage === 'asleep' && link === 'down') return true;
    if (stage === link) return true;
    if (link === 'up' && stage === (inFlight ? 'in flight' : 'waiting')) return true;
  }
  return false;
}
