// Random walks: `step`, which simulates a lock, gets random inputs, and what the lock makes and sends must comply with
// protocol.md §1–§3. The rules are written here once more from the protocol's text, independently of the code that
// simulates and judges.
import t from 'tap';
import { Prng } from '../../../firmware-sim/prng.js';
import { Days, Hours, Minutes, Seconds } from '../../../proto/clock.js';
import type { StepInput } from '../../../proto/power/step/io.js';
import type { Command, Ping, Uplink } from '../../../proto/wire/ping.js';
import { quickOrLong } from '../../helpers/house/test-length.js';
import { MIDNIGHT_MS, ModelLock, type ModelLockOptions, type TimedEffect } from '../../helpers/pair/model-lock.js';

const WALKS = quickOrLong(40, 600);
/** The number of inputs in a walk. */
const STEPS = 400;

/** The commands that a walk may send: at least one of each type. */
const COMMANDS: readonly Command[] = [
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
  { type: 'set-power', highWindow: { fromMinute: 1200, toMinute: 100, utcOffsetMinutes: 90 } },
  { type: 'set-power', airplane: true },
];

/** A random input. Each range of `kind` sets how likely that input is. */
function randomInput(random: Prng, lock: ModelLock): StepInput {
  const flip = random.chance(0.5);
  const kind = random.integer(0, 30);
  if (kind < 7) return { type: 'motion', moving: flip };
  if (kind < 14) return { type: 'lock-state', lockState: flip ? 'locked' : 'unlocked' };
  if (kind < 17) return { type: 'coverage', covered: random.chance(0.7) };
  if (kind < 19) return { type: 'sky', open: flip };
  if (kind < 21) return { type: 'battery', percent: random.pick([8, 9, 10, 11, 90]) };
  if (kind < 23) return { type: 'settings', change: { airplane: random.chance(0.2), recovery: random.chance(0.3) } };
  if (kind === 23) return { type: 'boot' };
  if (kind === 24) return { type: 'modem-reset' };
  if (kind === 25) return { type: 'disconnected' };
  const downlink = { id: random.integer(1, 60), expiresMs: lock.nowMs + Minutes(1), command: random.pick(COMMANDS) };
  return { type: 'command', downlink };
}

/** Runs a lock through one random walk, with a gateway that sometimes does not answer. */
function walk(seed: number): { lock: ModelLock; options: ModelLockOptions } {
  const random = new Prng(seed);
  const options: ModelLockOptions = {
    startMs: MIDNIGHT_MS + random.integer(0, Days(1)),
    lockState: random.pick(['locked', 'unlocked']),
    batteryPercent: random.pick([8, 50]),
    jitterSeed: random.uint32(),
    power: {
      mode: random.pick(['MID', 'HIGH']),
      rideTracking: random.chance(0.5),
      airplane: random.chance(0.2),
      recovery: random.chance(0.2),
    },
  };
  const lock = new ModelLock(options);
  for (let done = 0; done < STEPS; done++) {
    // Whether it answers a CONNECT; and whether it acknowledges uplinks.
    if (random.chance(0.1)) lock.gatewayAnswers = random.chance(0.7);
    if (random.chance(0.1)) lock.gatewayAcknowledges = random.chance(0.7);
    // Before the network works again, a connection with an unacknowledged uplink is lost.
    if (lock.gatewayAcknowledges && lock.gatewayAnswers && lock.state.inFlight) lock.handle({ type: 'disconnected' });
    lock.handle(randomInput(random, lock)).advance(random.pick([0, 1, Seconds(3), Seconds(30), Minutes(4)]));
    if (random.chance(0.05)) lock.advance(Hours(5));
  }
  return { lock, options };
}

type PingUplink = Uplink<Ping>;

function isPing(uplink: Uplink): uplink is PingUplink {
  return uplink.body.kind !== 'ack';
}

const isSilent = (uplink: PingUplink) => uplink.power.airplane || uplink.body.batteryPercent < 10;

/** The rule that one ping breaks by itself (protocol.md §3). */
function ruleBrokenBy(uplink: PingUplink): string | undefined {
  const { power, body } = uplink;
  const { reason, lockState } = body;
  if (power.airplane && body.kind !== 'close_connection') return 'airplane-silence';
  if (body.batteryPercent < 10 && !/THEFT|CLOSE/.test(reason)) return 'low-battery-theft-only';
  if (reason === 'REASON_THEFT' && lockState !== 'locked') return 'theft-while-unlocked';
  if (reason === 'REASON_UNLOCKED_PING' && !power.rideTracking) return 'ride-tracking-off';
  if (/UNLOCKED/.test(reason) && lockState !== 'unlocked') return 'ride-while-locked';
  if (reason === 'REASON_GPS_PING' && body.kind !== 'gps') return 'position-missing';
  if (reason === 'REASON_CELL_PING' && (body.kind !== 'cellular' || body.position === null)) return 'position-missing';
  return undefined;
}

/** Violations of the rules about a ping and earlier ones, in the order in which they were made. */
function rulesBrokenInOrder(uplinks: readonly Uplink[], options: ModelLockOptions): string[] {
  const mistakes: string[] = [];
  /** When the first period ping of the latest group was made. */
  let periodMs = Number.NEGATIVE_INFINITY;
  let hasReportedAirplane = false;
  let previous: PingUplink | undefined;
  for (const uplink of uplinks) {
    if (!uplink.power.airplane) hasReportedAirplane = false;
    if (!isPing(uplink)) continue;
    const { body } = uplink;
    const key = `${uplink.boot}/${uplink.sequence}`;
    const brokenRule = ruleBrokenBy(uplink);
    if (brokenRule) mistakes.push(`${key} ${brokenRule}`);
    if (uplink.power.airplane && hasReportedAirplane) mistakes.push(`${key} airplane-silence, reported before`);
    hasReportedAirplane = uplink.power.airplane;
    // Period pings come in groups, each made within 10 min. The next group starts 23 h later at the earliest.
    if (body.reason === 'REASON_PERIOD_TRACKING' && uplink.timeMs - periodMs > Minutes(10)) {
      if (uplink.timeMs - periodMs < Hours(23)) mistakes.push(`${key} period-too-soon`);
      periodMs = uplink.timeMs;
    }
    if (body.kind === 'cellular' && body.reason === 'REASON_STATE_PING') {
      const hasBefore =
        previous !== undefined && previous.boot === uplink.boot && previous.sequence === uplink.sequence - 1;
      // A silent lock does not report its changes, so the state may have changed twice since a ping of a silent lock.
      if (previous && hasBefore && !isSilent(previous) && previous.body.lockState === body.lockState)
        mistakes.push(`${key} state-unchanged`);
      if (previous === undefined && body.lockState === options.lockState)
        mistakes.push(`${key} state-unchanged at first`);
    }
    previous = uplink;
  }
  return mistakes;
}

/** Uplinks that are sent after the close-connection ping of their connection. */
function uplinksAfterClose(effects: readonly TimedEffect[]): string[] {
  const mistakes: string[] = [];
  let sent = 0;
  let isClosed = false;
  for (const { effect } of effects) {
    if (effect.type === 'connect' || effect.type === 'drop' || effect.type === 'disconnect') {
      sent = 0;
      isClosed = false;
    }
    if (effect.type !== 'publish') continue;
    sent++;
    if (isClosed) mistakes.push(`${effect.uplink.boot}/${effect.uplink.sequence} after-close`);
    // As the first uplink, the ping is one that waited since an earlier connection: it does not close this one.
    if (effect.uplink.body.kind === 'close_connection' && sent > 1) isClosed = true;
  }
  return mistakes;
}

/** Uplinks that do not have the next sequence number of their boot. */
function unexpectedNumbers(uplinks: readonly Uplink[]): string[] {
  const next = new Map<number, number>();
  const mistakes: string[] = [];
  for (const { boot, sequence } of uplinks) {
    if (sequence !== (next.get(boot) ?? 1)) mistakes.push(`${boot}/${sequence}`);
    next.set(boot, sequence + 1);
  }
  return mistakes;
}

t.test('no walk breaks a rule', async (t) => {
  const kinds = new Set<string>();
  for (let seed = 1; seed <= WALKS; seed++) {
    const { lock, options } = walk(seed);
    const madeUplinks = lock.createdUplinks();
    for (const uplink of madeUplinks) kinds.add(isPing(uplink) ? `${uplink.body.kind} ${uplink.body.reason}` : 'ack');
    t.same(rulesBrokenInOrder(madeUplinks, options), [], `seed ${seed}: the uplinks made`);
    t.same(uplinksAfterClose(lock.timedEffects), [], `seed ${seed}: the uplinks sent`);
    t.same(unexpectedNumbers(madeUplinks), [], `seed ${seed}: the sequence numbers`);
  }
  // Acknowledgements, and the 13 kinds of pings that these commands and events can cause.
  t.equal(kinds.size, 14, 'all kinds of uplinks occur on the walks');
});

t.test('each uplink is either discarded, or sent and acknowledged in the end', async (t) => {
  for (let seed = 1; seed <= WALKS; seed++) {
    const { lock } = walk(seed);
    lock.gatewayAnswers = true;
    lock.gatewayAcknowledges = true;
    if (lock.state.inFlight) lock.handle({ type: 'disconnected' });
    lock.handle({ type: 'settings', change: { airplane: false } }).handle({ type: 'battery', percent: 90 });
    lock.handle({ type: 'coverage', covered: true }).handle({ type: 'motion', moving: false }).advance(Hours(1));
    const key = ({ boot, sequence }: Uplink) => `${boot}/${sequence}`;
    const unsent = new Set(lock.createdUplinks().map(key));
    for (const { effect } of lock.timedEffects) if (effect.type === 'discarded') unsent.delete(key(effect.uplink));
    for (const uplink of lock.publishedUplinks()) unsent.delete(key(uplink));
    t.same([...unsent], [], `seed ${seed}: all were sent`);
    t.same(lock.state.waiting, [], `seed ${seed}: all were acknowledged`);
  }
});

t.test('step does not change the given state, and the same inputs lead to the same state', async (t) => {
  for (let seed = 1; seed <= 5; seed++) {
    const first = walk(seed).lock;
    const second = walk(seed).lock;
    t.same(first.state, second.state);
    const textBefore = JSON.stringify(first.state);
    const stateBefore = first.state;
    first.handle({ type: 'battery', percent: 3 }).handle({ type: 'lock-state', lockState: 'locked' }).advance(Hours(1));
    t.equal(JSON.stringify(stateBefore), textBefore);
  }
});
