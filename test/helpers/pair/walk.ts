/**
 * Random walks for the pair check, which runs a simulated lock against the judge: the gateway's code that checks a
 * lock's messages (run.ts). A walk is some days of one lock with random events, all drawn from the seed. Walks have
 * different styles: without network trouble, without manual changes of settings, or with many troubles at once.
 */
import { Prng } from '../../../firmware-sim/prng.js';
import { Days, Hours, type Milliseconds, Minutes, Seconds } from '../../../proto/clock.js';
import type { StepInput } from '../../../proto/power/step/io.js';
import type { Command, HighWindow, PowerSettings } from '../../../proto/wire/ping.js';
import { MIDNIGHT_MS } from './model-lock.js';
import { CUTS } from './network.js';
import { type PairOptions, PairRun } from './run.js';

/** The length of a walk by default. */
export const WALK_DAYS = 30;

/** So few ids that some commands reuse an id, as commands of a gateway that has lost its data do. */
const COMMAND_ID_COUNT = 2000;
/** High windows: by day, over midnight, all day, of 12 minutes, and all but a minute of the day. */
const WINDOWS: readonly HighWindow[] = [
  { fromMinute: 420, toMinute: 1140, utcOffsetMinutes: 0 },
  { fromMinute: 1320, toMinute: 300, utcOffsetMinutes: 120 },
  { fromMinute: 0, toMinute: 0, utcOffsetMinutes: 0 },
  { fromMinute: 600, toMinute: 612, utcOffsetMinutes: -330 },
  { fromMinute: 60, toMinute: 59, utcOffsetMinutes: 765 },
];

/** The commands that walks and cases send. A high window that ends at minute 2000 is invalid: a day has 1440. */
export const COMMANDS: readonly Command[] = [
  { type: 'unlock' },
  { type: 'lock' },
  { type: 'siren', seconds: 2 },
  { type: 'locate-gps' },
  { type: 'locate-cell' },
  { type: 'reset' },
  { type: 'set-power', mode: 'HIGH' },
  { type: 'set-power', mode: 'MID', recovery: false },
  { type: 'set-power', rideTracking: true },
  { type: 'set-power', recovery: true },
  { type: 'set-power', recovery: false, rideTracking: false },
  { type: 'set-power', airplane: true },
  { type: 'set-power', mode: 'HIGH', highWindow: { fromMinute: 1, toMinute: 2000, utcOffsetMinutes: 0 } },
  ...WINDOWS.map((highWindow): Command => ({ type: 'set-power', mode: 'HIGH', highWindow })),
];

/** What may happen on a walk. */
interface WalkStyle {
  /** How often the network, the modem or the power fails. */
  readonly troubles: 'none' | 'some' | 'many';
  /** Whether a person changes settings at the lock, without a command. */
  readonly changeSettings: boolean;
  /** Whether a motion may last for hours. */
  readonly longMotions: boolean;
}

/** The style of a motion during {@link overflowBuffer}. */
const QUIET: WalkStyle = { troubles: 'none', changeSettings: false, longMotions: false };

/** Draws one walk and runs it to its end. */
export function pairWalk(
  seed: number,
  days = WALK_DAYS,
  options: Pick<PairOptions, 'model' | 'tamper' | 'wrapStep' | 'observe'> = {},
): PairRun {
  const random = new Prng(`walk ${seed}`);
  const style: WalkStyle = {
    troubles: random.pick(['none', 'some', 'some', 'many']),
    changeSettings: random.chance(0.5),
    longMotions: random.chance(0.1),
  };
  const run = newRandomRun(seed, random, options);
  run.isOperatedManually = style.changeSettings;
  const endMs = run.nowMs + Days(days);
  while (run.nowMs < endMs) {
    doRandomEvent(run, random, style);
    run.advance(Math.min(drawWait(random), endMs - run.nowMs));
  }
  return run;
}

/** A run that starts at a random moment of a day, with a random lock and network. */
function newRandomRun(seed: number, random: Prng, options: Partial<PairOptions>): PairRun {
  const mode = random.pick(['MID', 'HIGH'] as const);
  const power: PowerSettings = {
    mode,
    rideTracking: random.chance(0.5),
    airplane: random.chance(0.05),
    recovery: random.chance(0.1),
  };
  const maxLatencyMs = random.chance(0.3) ? Seconds(4) : 300;
  return new PairRun({
    seed,
    startMs: MIDNIGHT_MS + random.integer(0, Days(1)),
    latency: [random.integer(0, 40), maxLatencyMs],
    lock: {
      lockState: random.pick(['locked', 'unlocked']),
      batteryPercent: random.chance(0.1) ? 8 : 60,
      power,
      highWindow: random.pick(WINDOWS),
    },
    ...options,
  });
}

/** The time to the next event: from 0 to 22 hours, about two hours on average. */
function drawWait(random: Prng): Milliseconds {
  const kind = random.integer(0, 6);
  if (kind === 0) return random.integer(0, 20);
  if (kind === 1) return random.integer(0, Seconds(5));
  if (kind === 2) return random.integer(0, Seconds(60));
  if (kind === 3) return random.integer(0, Minutes(4));
  if (kind === 4) return random.integer(0, Minutes(30));
  if (kind === 5) return random.integer(0, Hours(4));
  return random.integer(0, Hours(22));
}

/** Applies one random event. */
function doRandomEvent(run: PairRun, random: Prng, style: WalkStyle): void {
  const kind = random.integer(0, 99);
  if (kind < 22) run.input({ type: 'lock-state', lockState: random.pick(['locked', 'unlocked']) });
  else if (kind < 40) causeMotion(run, random, style);
  else if (kind < 46) blockSky(run, random);
  else if (kind < 54) changeBattery(run, random);
  else if (kind < 58) run.input(drawSensorChange(random));
  else if (kind < 82) sendRandomCommand(run, random);
  else if (kind < 86) {
    if (style.changeSettings) changeSettings(run, random);
  } else if (style.troubles !== 'none') causeTrouble(run, random, style);
}

/** Moves the lock, in most cases, and stops it some time later; or only stops it. */
function causeMotion(run: PairRun, random: Prng, style: WalkStyle): void {
  const moving = random.chance(0.8);
  run.input({ type: 'motion', moving });
  if (!moving) return;
  const maxSpan =
    style.longMotions && random.chance(0.05) ? Hours(3) : random.pick([Seconds(8), Minutes(3), Minutes(25)]);
  run.schedule(random.integer(1, maxSpan), () => run.input({ type: 'motion', moving: false }));
}

/** Blocks the reception of satellites for up to 20 min. */
function blockSky(run: PairRun, random: Prng): void {
  run.input({ type: 'sky', open: false });
  run.schedule(random.integer(1, Minutes(20)), () => run.input({ type: 'sky', open: true }));
}

/** Sets the battery, often near the bound of 10 %. A low battery is charged some hours later. */
function changeBattery(run: PairRun, random: Prng): void {
  const percent = random.pick([0, 8, 9, 9, 10, 11, 40, 90]);
  run.input({ type: 'battery', percent });
  if (percent < 10)
    run.schedule(random.integer(1, Hours(random.pick([1, 30]))), () => run.input({ type: 'battery', percent: 70 }));
}

function drawSensorChange(random: Prng): StepInput {
  return random.chance(0.5)
    ? { type: 'ebike', volts: random.pick([null, 36.5]) }
    : { type: 'tether', tetherState: random.pick(['attached', 'detached', 'unknown']) };
}

/** Sends a new command, an expired one, or one that reuses an id. Some are sent several times. */
function sendRandomCommand(run: PairRun, random: Prng): void {
  const id = random.integer(1, COMMAND_ID_COUNT);
  // The id determines the command.
  const command = COMMANDS[id % COMMANDS.length] as (typeof COMMANDS)[number];
  const validForMs = random.chance(0.15) ? -random.integer(0, Hours(1)) : random.pick([Minutes(2), Hours(24)]);
  const downlink = { id, command, expiresMs: run.nowMs + validForMs };
  // Airplane mode is rare and is switched off at the lock later, since a lock in airplane mode does nothing more.
  if (command.type === 'set-power' && command.airplane === true) {
    if (random.chance(0.7)) return;
    run.schedule(random.integer(1, Hours(40)), () => run.input({ type: 'settings', change: { airplane: false } }));
  }
  run.enqueueCommand(downlink);
  // One command in five is repeated, once or twice.
  for (let repeats = random.integer(0, 9) - 7; repeats > 0; repeats--)
    run.schedule(random.integer(0, random.pick([20, Seconds(10), Hours(2)])), () => run.sendCommand(downlink));
}

/** Changes a setting at the lock, without a command. Airplane mode is switched off again later. */
function changeSettings(run: PairRun, random: Prng): void {
  const change = random.pick<Partial<PowerSettings>>([
    { airplane: true },
    { recovery: true },
    { recovery: false },
    { mode: 'MID' },
    { mode: 'HIGH' },
    { rideTracking: true },
    { rideTracking: false },
  ]);
  run.input({ type: 'settings', change });
  if (change.airplane === true)
    run.schedule(random.integer(1, random.pick([Seconds(2), Minutes(5), Hours(30)])), () =>
      run.input({ type: 'settings', change: { airplane: false } }),
    );
}

/** Breaks the coverage, the connection, the power or the gateway for some time. */
function causeTrouble(run: PairRun, random: Prng, style: WalkStyle): void {
  // Kinds from 8 on happen only with many troubles.
  const kind = random.integer(0, style.troubles === 'some' ? 7 : 13);
  if (style.troubles === 'many' && random.chance(0.02)) overflowBuffer(run, random);
  if (kind < 4) {
    const maxSpan = random.pick([Seconds(30), Minutes(20), Hours(5), Hours(5), Days(3)]);
    run.input({ type: 'coverage', covered: false });
    run.schedule(random.integer(1, maxSpan), () => run.input({ type: 'coverage', covered: true }));
  } else if (kind < 7) run.network.cut(random.pick(CUTS));
  else if (kind < 8) run.input({ type: random.pick(['modem-reset', 'boot']) });
  else if (kind < 9) run.input({ type: 'boot' });
  else if (kind < 10) {
    run.setListening(false);
    run.schedule(random.integer(1, random.pick([Seconds(30), Minutes(30), Hours(9)])), () => run.setListening(true));
  } else
    for (let cuts = random.integer(1, 6); cuts > 0; cuts--)
      run.schedule(random.integer(0, Minutes(5)), () => run.network.cut(random.pick(CUTS)));
}

/** Causes more uplinks without coverage than the lock can buffer, sometimes with a boot in between. */
function overflowBuffer(run: PairRun, random: Prng): void {
  run.input({ type: 'coverage', covered: false });
  // More than the 256 uplinks that the buffer holds: each change of the lock state makes one.
  const changes = random.integer(260, 700);
  for (let change = 0; change < changes; change++) {
    const lockState = change % 2 === 0 ? 'locked' : 'unlocked';
    run.schedule(change * Seconds(3), () => run.input({ type: 'lock-state', lockState }));
    if (random.chance(0.003)) run.schedule(change * Seconds(3), () => run.input({ type: 'boot' }));
    if (random.chance(0.003)) run.schedule(change * Seconds(3), () => causeMotion(run, random, QUIET));
  }
  run.schedule(changes * Seconds(3), () => run.input({ type: 'coverage', covered: true }));
}

/** How long a lock may take to send its buffer after the repair. */
const MAX_SEND_MS = Minutes(5);

/** Ends all troubles, causes one more uplink, and lets the lock send its buffer. */
export function repairWorld(run: PairRun): PairRun {
  run.input({ type: 'motion', moving: false });
  // All events that the walk has scheduled are over by then.
  run.advance(Days(3) + Hours(1));
  run.setListening(true);
  run.input({ type: 'sky', open: true }).input({ type: 'coverage', covered: true });
  run
    .input({ type: 'settings', change: { airplane: false } })
    .input({ type: 'battery', percent: 90 })
    .advance(Hours(25));
  const lockState = run.state.lockState === 'locked' ? 'unlocked' : 'locked';
  run.input({ type: 'lock-state', lockState }).advance(Minutes(3));
  const untilMs = run.nowMs + MAX_SEND_MS;
  while (run.outstanding.size > 0 && run.nowMs < untilMs) run.advance(Seconds(1));
  return run;
}

/**
 * The mistakes after the repair, one sentence each. Every uplink must have arrived, and the judge's belief (what it
 * concludes about the lock's state) must be true.
 */
export function mistakesAfterRepair(run: PairRun): string[] {
  const { outstanding, judge, newest, state } = run;
  const mistakes = [...outstanding.values()].map(({ boot, sequence }) => `${boot}/${sequence} never arrived`);
  const { belief } = judge;
  if (newest === undefined) return [...mistakes, 'the lock made no uplink'];
  if (JSON.stringify(belief.power) !== JSON.stringify(newest.power))
    mistakes.push('the power settings are not believed');
  if (belief.state !== state.stateName) mistakes.push(`${belief.state} is believed in ${state.stateName}`);
  if (belief.lockState !== state.lockState) mistakes.push(`${belief.lockState} is believed while ${state.lockState}`);
  if (belief.batteryPercent !== state.batteryPercent) mistakes.push('the battery is not believed');
  return mistakes;
}
