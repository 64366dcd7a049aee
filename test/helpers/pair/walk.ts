/**
 * Random walks for the pair check: days of a lock's life, each thing in it drawn from the seed. Walks differ in temper:
 * in some nothing ever happens to the network, in some nobody touches the settings, in some all goes wrong at once.
 */
import { Prng } from '../../../firmware-sim/prng.js';
import { Days, Hours, type Milliseconds, Minutes, Seconds } from '../../../proto/clock.js';
import type { StepInput } from '../../../proto/power/step/io.js';
import type { Command, HighWindow, PowerSettings } from '../../../proto/wire/ping.js';
import { MIDNIGHT_MS } from '../mqtt/lock-bench.js';
import { CUTS } from './network.js';
import { type PairOptions, PairRun } from './run.js';

export const WALK_DAYS = 30;

/** Ids of commands come from so few that some come twice with other content, as a gateway that lost its data sends. */
const COMMAND_IDS = 2000;
const WINDOWS: readonly HighWindow[] = [
  { fromMinute: 420, toMinute: 1140, utcOffsetMinutes: 0 },
  { fromMinute: 1320, toMinute: 300, utcOffsetMinutes: 120 },
  { fromMinute: 0, toMinute: 0, utcOffsetMinutes: 0 },
  { fromMinute: 600, toMinute: 612, utcOffsetMinutes: -330 },
  { fromMinute: 60, toMinute: 59, utcOffsetMinutes: 765 },
];

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

interface Temper {
  /** Whether anything ever happens to the network, the modem or the power. */
  readonly troubles: 'none' | 'some' | 'many';
  readonly hands: boolean;
  /** Whether a motion may last for hours. */
  readonly longMotions: boolean;
}

const CAREFUL: Temper = { troubles: 'none', hands: false, longMotions: false };

/** Draws one walk and lives it to its end. */
export function pairWalk(
  seed: number,
  days = WALK_DAYS,
  some: Pick<PairOptions, 'model' | 'tamper' | 'witness'> = {},
): PairRun {
  const random = new Prng(`walk ${seed}`);
  const temper: Temper = {
    troubles: random.pick(['none', 'some', 'some', 'many']),
    hands: random.chance(0.5),
    longMotions: random.chance(0.1),
  };
  const run = newRun(seed, random, some);
  run.hasHands = temper.hands;
  const endMs = run.nowMs + Days(days);
  while (run.nowMs < endMs) {
    happen(run, random, temper);
    run.pass(Math.min(someGap(random), endMs - run.nowMs));
  }
  return run;
}

function newRun(seed: number, random: Prng, some: Partial<PairOptions>): PairRun {
  const mode = random.pick(['MID', 'HIGH'] as const);
  const power: PowerSettings = {
    mode,
    rideTracking: random.chance(0.5),
    airplane: random.chance(0.05),
    recovery: random.chance(0.1),
  };
  const slow = random.chance(0.3) ? Seconds(4) : 300;
  return new PairRun({
    seed,
    startMs: MIDNIGHT_MS + random.integer(0, Days(1)),
    latency: [random.integer(0, 40), slow],
    lock: {
      lockState: random.pick(['locked', 'unlocked']),
      batteryPercent: random.chance(0.1) ? 8 : 60,
      power,
      highWindow: random.pick(WINDOWS),
    },
    ...some,
  });
}

/** From nothing at all to most of a day; two hours on the average. */
function someGap(random: Prng): Milliseconds {
  const kind = random.integer(0, 6);
  if (kind === 0) return random.integer(0, 20);
  if (kind === 1) return random.integer(0, Seconds(5));
  if (kind === 2) return random.integer(0, Seconds(60));
  if (kind === 3) return random.integer(0, Minutes(4));
  if (kind === 4) return random.integer(0, Minutes(30));
  if (kind === 5) return random.integer(0, Hours(4));
  return random.integer(0, Hours(22));
}

/** One thing happens. */
function happen(run: PairRun, random: Prng, temper: Temper): void {
  const kind = random.integer(0, 99);
  if (kind < 22) run.give({ type: 'lock-state', lockState: random.pick(['locked', 'unlocked']) });
  else if (kind < 40) move(run, random, temper);
  else if (kind < 46) sky(run, random);
  else if (kind < 54) battery(run, random);
  else if (kind < 58) run.give(someSense(random));
  else if (kind < 82) command(run, random);
  else if (kind < 86) {
    if (temper.hands) hands(run, random);
  } else if (temper.troubles !== 'none') trouble(run, random, temper);
}

function move(run: PairRun, random: Prng, temper: Temper): void {
  const moving = random.chance(0.8);
  run.give({ type: 'motion', moving });
  if (!moving) return;
  const longest =
    temper.longMotions && random.chance(0.05) ? Hours(3) : random.pick([Seconds(8), Minutes(3), Minutes(25)]);
  run.later(random.integer(1, longest), () => run.give({ type: 'motion', moving: false }));
}

function sky(run: PairRun, random: Prng): void {
  run.give({ type: 'sky', open: false });
  run.later(random.integer(1, Minutes(20)), () => run.give({ type: 'sky', open: true }));
}

function battery(run: PairRun, random: Prng): void {
  const percent = random.pick([0, 8, 9, 9, 10, 11, 40, 90]);
  run.give({ type: 'battery', percent });
  if (percent < 10)
    run.later(random.integer(1, Hours(random.pick([1, 30]))), () => run.give({ type: 'battery', percent: 70 }));
}

function someSense(random: Prng): StepInput {
  return random.chance(0.5)
    ? { type: 'ebike', volts: random.pick([null, 36.5]) }
    : { type: 'tether', tetherState: random.pick(['attached', 'detached', 'unknown']) };
}

/** A new command, one that has expired, or one that was sent before. */
function command(run: PairRun, random: Prng): void {
  const id = random.integer(1, COMMAND_IDS);
  const command = random.pick(COMMANDS);
  const good = random.chance(0.15) ? -random.integer(0, Hours(1)) : random.pick([Minutes(2), Hours(24)]);
  const downlink = { id, command, expiresMs: run.nowMs + good };
  // Who switches airplane mode on switches it off by hand some time, or the lock is of no more interest.
  if (command.type === 'set-power' && command.airplane === true) {
    if (random.chance(0.7)) return;
    run.later(random.integer(1, Hours(40)), () => run.give({ type: 'settings', change: { airplane: false } }));
  }
  run.order(downlink);
  for (let again = random.integer(0, 9) - 7; again > 0; again--)
    run.later(random.integer(0, random.pick([20, Seconds(10), Hours(2)])), () => run.send(downlink));
}

function hands(run: PairRun, random: Prng): void {
  const change = random.pick<Partial<PowerSettings>>([
    { airplane: true },
    { recovery: true },
    { recovery: false },
    { mode: 'MID' },
    { mode: 'HIGH' },
    { rideTracking: true },
    { rideTracking: false },
  ]);
  run.give({ type: 'settings', change });
  if (change.airplane === true)
    run.later(random.integer(1, random.pick([Seconds(2), Minutes(5), Hours(30)])), () =>
      run.give({ type: 'settings', change: { airplane: false } }),
    );
}

function trouble(run: PairRun, random: Prng, temper: Temper): void {
  const kind = random.integer(0, temper.troubles === 'some' ? 7 : 13);
  if (temper.troubles === 'many' && random.chance(0.02)) flood(run, random);
  if (kind < 4) {
    const longest = random.pick([Seconds(30), Minutes(20), Hours(5), Hours(5), Days(3)]);
    run.give({ type: 'coverage', covered: false });
    run.later(random.integer(1, longest), () => run.give({ type: 'coverage', covered: true }));
  } else if (kind < 7) run.network.cut(random.pick(CUTS));
  else if (kind < 8) run.give({ type: random.pick(['modem-reset', 'boot']) });
  else if (kind < 9) run.give({ type: 'boot' });
  else if (kind < 10) {
    run.listen(false);
    run.later(random.integer(1, random.pick([Seconds(30), Minutes(30), Hours(9)])), () => run.listen(true));
  } else
    for (let more = random.integer(1, 6); more > 0; more--)
      run.later(random.integer(0, Minutes(5)), () => run.network.cut(random.pick(CUTS)));
}

/** More happens out of reach than the lock can keep, over a boot maybe. */
function flood(run: PairRun, random: Prng): void {
  run.give({ type: 'coverage', covered: false });
  const changes = random.integer(260, 700);
  for (let change = 0; change < changes; change++) {
    const lockState = change % 2 === 0 ? 'locked' : 'unlocked';
    run.later(change * Seconds(3), () => run.give({ type: 'lock-state', lockState }));
    if (random.chance(0.003)) run.later(change * Seconds(3), () => run.give({ type: 'boot' }));
    if (random.chance(0.003)) run.later(change * Seconds(3), () => move(run, random, CAREFUL));
  }
  run.later(changes * Seconds(3), () => run.give({ type: 'coverage', covered: true }));
}

/** How long a healed lock may take to have said everything. */
const SAYS_ALL_WITHIN = Minutes(5);

/** Makes the world well again, and lets the lock say what it has to say. */
export function heal(run: PairRun): PairRun {
  run.give({ type: 'motion', moving: false });
  // What the walk had planned is over by then.
  run.pass(Days(3) + Hours(1));
  run.listen(true);
  run.give({ type: 'sky', open: true }).give({ type: 'coverage', covered: true });
  run
    .give({ type: 'settings', change: { airplane: false } })
    .give({ type: 'battery', percent: 90 })
    .pass(Hours(25));
  const lockState = run.state.lockState === 'locked' ? 'unlocked' : 'locked';
  run.give({ type: 'lock-state', lockState }).pass(Minutes(3));
  const untilMs = run.nowMs + SAYS_ALL_WITHIN;
  while (run.outstanding.size > 0 && run.nowMs < untilMs) run.pass(Seconds(1));
  return run;
}

/** What does not fit after healing, a sentence each: all has arrived, and the gateway believes what is so. */
export function wrongWhenHealed(run: PairRun): string[] {
  const { outstanding, judge, newest, state } = run;
  const wrong = [...outstanding.values()].map(({ boot, sequence }) => `${boot}/${sequence} never arrived`);
  const { belief } = judge;
  if (newest === undefined) return [...wrong, 'nothing was ever made'];
  if (JSON.stringify(belief.power) !== JSON.stringify(newest.power)) wrong.push('the power settings are not believed');
  if (belief.state !== state.stateName) wrong.push(`${belief.state} is believed in ${state.stateName}`);
  if (belief.lockState !== state.lockState) wrong.push(`${belief.lockState} is believed while ${state.lockState}`);
  if (belief.batteryPercent !== state.batteryPercent) wrong.push('the battery is not believed');
  return wrong;
}
