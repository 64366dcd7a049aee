/**
 * Enumerates every state with every input, for the pair check, which runs a simulated lock against the judge: the
 * gateway's code that checks a lock's messages (run.ts). A case is one of the five effective power states, with the
 * settings that lead to it, at one stage of a connection. In each case, each event that can happen to a lock is
 * applied.
 */
import { Hours, type Milliseconds, Minutes, Seconds } from '../../../proto/clock.js';
import type { EffectiveState } from '../../../proto/power/model.js';
import type { StepInput } from '../../../proto/power/step/io.js';
import type { HighWindow, PowerSettings } from '../../../proto/wire/ping.js';
import { MIDNIGHT_MS } from './model-lock.js';
import { CUTS } from './network.js';
import { PairRun } from './run.js';
import { COMMANDS } from './walk.js';

/** The run starts at noon, to which the high windows refer. */
const START_MS = MIDNIGHT_MS + Hours(12);
/** The latency of a message, long enough to observe the lock at each stage of a connection. */
const LATENCY_MS = 400;
/** The interval at which the stage of the connection is checked. */
const STAGE_CHECK_INTERVAL_MS = 100;
/** How long the lock may take to reach a stage of the connection. */
const STAGE_TIMEOUT_MS = Seconds(90);

/** 07:00 to 19:00, in minutes of the local day. */
const DAY: HighWindow = { fromMinute: 420, toMinute: 1140, utcOffsetMinutes: 0 };
/** 22:00 to 06:00. */
const NIGHT: HighWindow = { fromMinute: 1320, toMinute: 360, utcOffsetMinutes: 0 };
/** Windows that are open (`inside`) or closed (`outside`) at the start of the run, noon UTC, by their UTC offset. */
const WINDOWS: Readonly<Record<string, HighWindow>> = {
  inside: DAY,
  outside: { ...DAY, utcOffsetMinutes: 600 },
  'inside, over midnight': { ...NIGHT, utcOffsetMinutes: 660 },
  'outside, over midnight': NIGHT,
  'all day': { fromMinute: 90, toMinute: 90, utcOffsetMinutes: 0 },
};

/** The settings and the battery charge that put a lock into a power state. */
interface PowerSituation {
  readonly name: string;
  readonly state: EffectiveState;
  readonly power: PowerSettings;
  readonly highWindow: HighWindow;
  readonly batteryPercent: number;
}

/** For each power state, the settings that lead to it and, of each state, those that another one overrides. */
function powerSituations(): PowerSituation[] {
  const switchesOff: PowerSettings = { mode: 'MID', rideTracking: false, airplane: false, recovery: false };
  const recoveryAndHigh: PowerSettings = { mode: 'HIGH', rideTracking: false, airplane: false, recovery: true };
  // 10 % is the lowest charge that does not count as a low battery.
  const base = { highWindow: DAY, batteryPercent: 10 };
  const result: PowerSituation[] = [
    { ...base, name: 'AIRPLANE', state: 'AIRPLANE', power: { ...switchesOff, airplane: true } },
    {
      ...base,
      name: 'AIRPLANE before other states',
      state: 'AIRPLANE',
      power: { ...recoveryAndHigh, airplane: true },
      batteryPercent: 9,
    },
    { ...base, name: 'LOW_BATTERY', state: 'LOW_BATTERY', power: switchesOff, batteryPercent: 9 },
    {
      ...base,
      name: 'LOW_BATTERY before other states',
      state: 'LOW_BATTERY',
      power: recoveryAndHigh,
      batteryPercent: 0,
    },
    { ...base, name: 'RECOVERY', state: 'RECOVERY', power: { ...switchesOff, recovery: true } },
    { ...base, name: 'MID', state: 'MID', power: switchesOff },
  ];
  for (const [name, highWindow] of Object.entries(WINDOWS)) {
    result.push({ ...base, name: `HIGH ${name}`, state: 'HIGH', power: { ...switchesOff, mode: 'HIGH' }, highWindow });
    if (name.startsWith('outside'))
      result.push({ ...base, name: `RECOVERY, HIGH ${name}`, state: 'RECOVERY', power: recoveryAndHigh, highWindow });
  }
  return result.flatMap((situation) =>
    [false, true].map((rideTracking) => ({
      ...situation,
      name: `${situation.name}${rideTracking ? ', ride tracking' : ''}`,
      power: { ...situation.power, rideTracking },
    })),
  );
}

/**
 * The stages of a connection: none, none because there is no coverage, being opened, open with an unacknowledged
 * uplink, open without one, being closed.
 */
const STAGES = ['asleep', 'uncovered', 'connecting', 'in flight', 'waiting', 'ending'] as const;
type Stage = (typeof STAGES)[number];

type LockState = 'locked' | 'unlocked';

/** A situation at one stage of the connection, with a lock that moves or stands still. */
export interface Case {
  readonly name: string;
  readonly situation: PowerSituation;
  readonly stage: Stage;
  readonly lockState: LockState;
  readonly moving: boolean;
}

/** All cases, including impossible ones, for which {@link playCase} returns undefined. */
export function cases(): Case[] {
  const result: Case[] = [];
  for (const situation of powerSituations()) {
    for (const stage of STAGES) {
      for (const lockState of ['locked', 'unlocked'] as const) {
        for (const moving of [false, true]) {
          const name = `${situation.name}, ${stage}, ${lockState}, ${moving ? 'moving' : 'standing'}`;
          result.push({ name, situation, stage, lockState, moving });
        }
      }
    }
  }
  return result;
}

/** One event that happens to the lock, or around it. */
export interface CaseEvent {
  readonly name: string;
  readonly apply: (run: PairRun) => void;
}

/** All events for each kind of input. The type makes a missing kind a compile error. */
function caseEventsByKind(): Record<StepInput['type'], CaseEvent[]> {
  const inputEvents = (...inputs: StepInput[]): CaseEvent[] =>
    inputs.map((input) => ({ name: JSON.stringify(input), apply: (run) => void run.input(input) }));
  const position = { latitudeDegrees: 52.1, longitudeDegrees: 4.5, uncertaintyMeters: 6 };
  const fix = { position, speedMetersPerSecond: 1, directionDegrees: 0 };
  const change = (settings: Partial<PowerSettings>): StepInput => ({ type: 'settings', change: settings });
  return {
    boot: inputEvents({ type: 'boot' }),
    tick: inputEvents({ type: 'tick', fix: null, cellPosition: null }, { type: 'tick', fix, cellPosition: position }),
    motion: inputEvents({ type: 'motion', moving: true }, { type: 'motion', moving: false }),
    'lock-state': inputEvents(
      { type: 'lock-state', lockState: 'locked' },
      { type: 'lock-state', lockState: 'unlocked' },
    ),
    coverage: inputEvents({ type: 'coverage', covered: false }, { type: 'coverage', covered: true }),
    sky: inputEvents({ type: 'sky', open: false }, { type: 'sky', open: true }),
    battery: inputEvents(...[0, 9, 10, 80].map((percent): StepInput => ({ type: 'battery', percent }))),
    ebike: inputEvents({ type: 'ebike', volts: 36.5 }, { type: 'ebike', volts: null }),
    tether: inputEvents({ type: 'tether', tetherState: 'attached' }, { type: 'tether', tetherState: 'detached' }),
    settings: inputEvents(
      ...[true, false].flatMap((on) => [
        change({ airplane: on }),
        change({ recovery: on }),
        change({ rideTracking: on }),
        change({ mode: on ? 'HIGH' : 'MID' }),
      ]),
    ),
    'modem-reset': inputEvents({ type: 'modem-reset' }),
    // Only the simulated network reports connections. A false report would be a fault of the host, not of the lock.
    connected: [],
    'connect-failed': [
      {
        name: 'the gateway is gone for a minute',
        apply: (run) => {
          run.setListening(false);
          run.schedule(Minutes(1), () => run.setListening(true));
        },
      },
    ],
    disconnected: CUTS.map((cut) => ({ name: `a cut: ${cut}`, apply: (run) => void run.network.cut(cut) })),
    // The acknowledgement of an uplink that the lock has not made.
    acknowledged: inputEvents({ type: 'acknowledged', boot: 9, sequence: 9 }),
    command: commandEvents(),
  };
}

/** Each command once, expired, and four times; and two that something disturbs while the lock carries them out. */
function commandEvents(): CaseEvent[] {
  const unlockDuringTone: CaseEvent = {
    name: 'lock, and unlock while the tone sounds',
    apply: (run) => {
      run.enqueueCommand({ id: 101, command: { type: 'lock' }, expiresMs: run.nowMs + Minutes(2) });
      run.schedule(Seconds(2), () =>
        run.enqueueCommand({ id: 102, command: { type: 'unlock' }, expiresMs: run.nowMs + Minutes(2) }),
      );
    },
  };
  const locateWithoutSky: CaseEvent = {
    name: 'locate by GPS without reception of satellites',
    apply: (run) => {
      run.input({ type: 'sky', open: false });
      run.enqueueCommand({ id: 103, command: { type: 'locate-gps' }, expiresMs: run.nowMs + Hours(24) });
    },
  };
  const singleCommands = COMMANDS.flatMap((command, index): CaseEvent[] => {
    const name = JSON.stringify(command);
    const enqueue = (run: PairRun, validFor: Milliseconds) =>
      run.enqueueCommand({ id: index + 1, command, expiresMs: run.nowMs + validFor });
    return [
      { name, apply: (run) => enqueue(run, Hours(24)) },
      { name: `${name}, expired`, apply: (run) => enqueue(run, 0) },
      {
        name: `${name}, four times`,
        apply: (run) => {
          enqueue(run, Minutes(2));
          for (const wait of [0, Seconds(3), Minutes(3)]) run.schedule(wait, () => enqueue(run, Minutes(2)));
        },
      },
    ];
  });
  return [...singleCommands, unlockDuringTone, locateWithoutSky];
}

/** All events. */
export function caseEvents(): CaseEvent[] {
  return Object.values(caseEventsByKind()).flat();
}

/**
 * Brings a lock into the case, applies the event, removes all obstacles 17 min later, and runs for `settleMs` more, so
 * that the lock can send all its messages. Returns undefined if a lock is never at that stage in that situation.
 */
export function playCase(testCase: Case, event: CaseEvent, settleMs: Milliseconds): PairRun | undefined {
  const run = enterCase(testCase);
  if (run === undefined) return undefined;
  event.apply(run);
  run.advance(Minutes(2)).input({ type: 'motion', moving: false }).advance(Minutes(15));
  run.input({ type: 'coverage', covered: true }).input({ type: 'sky', open: true });
  run.input({ type: 'settings', change: { airplane: false } }).input({ type: 'battery', percent: 80 });
  return run.advance(settleMs);
}

/** Brings a lock into the case; returns undefined if that is impossible. */
function enterCase({ situation, stage, lockState, moving }: Case): PairRun | undefined {
  const { power, highWindow, batteryPercent } = situation;
  const otherLockState = lockState === 'locked' ? 'unlocked' : 'locked';
  // At the other stages the lock must have woken up before.
  const isWoken = stage !== 'asleep' && stage !== 'uncovered';
  const run = new PairRun({
    seed: 1,
    startMs: START_MS,
    latency: [LATENCY_MS, LATENCY_MS],
    // Moving the shackle wakes a sleeping lock, unless its battery is low.
    lock: { lockState: isWoken ? otherLockState : lockState, batteryPercent, power, highWindow },
  });
  run.isOperatedManually = true;
  // After three minutes the pings of the boot are sent and the connection of a sleeping lock is closed.
  run.advance(Minutes(3));
  if (run.state.stateName !== situation.state) throw new Error(`in ${run.state.stateName}, not in ${situation.state}`);
  if (stage === 'uncovered') run.input({ type: 'coverage', covered: false });
  if (isWoken) wakeLock(run, lockState, stage);
  if (!seekStage(run, stage)) return undefined;
  if (moving !== run.state.moving) run.input({ type: 'motion', moving });
  return run;
}

/** Makes a sleeping lock connect. */
function wakeLock(run: PairRun, lockState: LockState, stage: Stage): void {
  run.input({ type: 'lock-state', lockState });
  if (run.state.stateName === 'LOW_BATTERY') run.input({ type: 'motion', moving: true }).advance(Seconds(6));
  else if (stage === 'connecting' && run.state.link === 'up') run.network.cut('both');
}

/** Advances the clock until the connection is at this stage; returns false if that takes too long. */
function seekStage(run: PairRun, stage: Stage): boolean {
  const untilMs = run.nowMs + STAGE_TIMEOUT_MS;
  for (; run.nowMs < untilMs; run.advance(STAGE_CHECK_INTERVAL_MS)) {
    const { link, inFlight, covered } = run.state;
    if (stage === 'uncovered' && !covered) return true;
    if (stage === 'asleep' && link === 'down') return true;
    if (stage === link) return true;
    if (link === 'up' && stage === (inFlight ? 'in flight' : 'waiting')) return true;
  }
  return false;
}
