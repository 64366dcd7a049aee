// Random walks: `step` gets random inputs, and what the lock makes and sends must comply with protocol.md §1–§3. The
// rules are written here once more from the protocol's text, independently of the code that simulates and judges.
import t from 'tap';
import { Prng } from '../../../firmware-sim/prng.js';
import { Days, Hours, Minutes, Seconds } from '../../../proto/clock.js';
import type { StepInput } from '../../../proto/power/step/io.js';
import type { Command, Ping, Uplink } from '../../../proto/wire/ping.js';
import { byLength } from '../../helpers/house/test-length.js';
import { MIDNIGHT_MS, ModelLock, type ModelLockOptions, type TimedEffect } from '../../helpers/mqtt/model-lock.js';

const WALKS = byLength(40, 600);
const STEPS = 400;

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

function randomInput(random: Prng, bench: ModelLock): StepInput {
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
  const downlink = { id: random.integer(1, 60), expiresMs: bench.nowMs + Minutes(1), command: random.pick(COMMANDS) };
  return { type: 'command', downlink };
}

function walk(seed: number): { bench: ModelLock; options: ModelLockOptions } {
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
  const bench = new ModelLock(options);
  for (let done = 0; done < STEPS; done++) {
    if (random.chance(0.1)) bench.gatewayAnswers = random.chance(0.7);
    if (random.chance(0.1)) bench.gatewayAcknowledges = random.chance(0.7);
    // Before the network works again, the connection with an unanswered uplink is lost.
    if (bench.gatewayAcknowledges && bench.gatewayAnswers && bench.state.inFlight)
      bench.handle({ type: 'disconnected' });
    bench.handle(randomInput(random, bench)).advance(random.pick([0, 1, Seconds(3), Seconds(30), Minutes(4)]));
    if (random.chance(0.05)) bench.advance(Hours(5));
  }
  return { bench, options };
}

type PingUplink = Uplink<Ping>;

function isPing(uplink: Uplink): uplink is PingUplink {
  return uplink.body.kind !== 'ack';
}

const isSilent = (uplink: PingUplink) => uplink.power.airplane || uplink.body.batteryPercent < 10;

/** The rule that one ping breaks by itself (protocol.md §3). */
function wrongWith(uplink: PingUplink): string | undefined {
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
function wrongInOrder(uplinks: readonly Uplink[], options: ModelLockOptions): string[] {
  const wrong: string[] = [];
  let periodMs = Number.NEGATIVE_INFINITY;
  let toldAirplane = false;
  let before: PingUplink | undefined;
  for (const uplink of uplinks) {
    if (!uplink.power.airplane) toldAirplane = false;
    if (!isPing(uplink)) continue;
    const { body } = uplink;
    const name = `${uplink.boot}/${uplink.sequence}`;
    const own = wrongWith(uplink);
    if (own) wrong.push(`${name} ${own}`);
    if (uplink.power.airplane && toldAirplane) wrong.push(`${name} airplane-silence, told before`);
    toldAirplane = uplink.power.airplane;
    if (body.reason === 'REASON_PERIOD_TRACKING' && uplink.timeMs - periodMs > Minutes(10)) {
      if (uplink.timeMs - periodMs < Hours(23)) wrong.push(`${name} period-too-soon`);
      periodMs = uplink.timeMs;
    }
    if (body.kind === 'cellular' && body.reason === 'REASON_STATE_PING') {
      const hasBefore = before !== undefined && before.boot === uplink.boot && before.sequence === uplink.sequence - 1;
      if (before && hasBefore && !isSilent(before) && before.body.lockState === body.lockState)
        wrong.push(`${name} state-unchanged`);
      if (before === undefined && body.lockState === options.lockState) wrong.push(`${name} state-unchanged at first`);
    }
    before = uplink;
  }
  return wrong;
}

/** Uplinks that are sent after the close-connection ping of their connection. */
function wrongOnLink(noted: readonly TimedEffect[]): string[] {
  const wrong: string[] = [];
  let sent = 0;
  let closed = false;
  for (const { effect } of noted) {
    if (effect.type === 'connect' || effect.type === 'drop' || effect.type === 'disconnect') {
      sent = 0;
      closed = false;
    }
    if (effect.type !== 'publish') continue;
    sent++;
    if (closed) wrong.push(`${effect.uplink.boot}/${effect.uplink.sequence} after-close`);
    if (effect.uplink.body.kind === 'close_connection' && sent > 1) closed = true;
  }
  return wrong;
}

/** Uplinks that do not have the next sequence number of their boot. */
function wrongNumbers(uplinks: readonly Uplink[]): string[] {
  const next = new Map<number, number>();
  const wrong: string[] = [];
  for (const { boot, sequence } of uplinks) {
    if (sequence !== (next.get(boot) ?? 1)) wrong.push(`${boot}/${sequence}`);
    next.set(boot, sequence + 1);
  }
  return wrong;
}

t.test('no walk breaks a rule', async (t) => {
  const seen = new Set<string>();
  for (let seed = 1; seed <= WALKS; seed++) {
    const { bench, options } = walk(seed);
    const made = bench.createdUplinks();
    for (const uplink of made) seen.add(isPing(uplink) ? `${uplink.body.kind} ${uplink.body.reason}` : 'ack');
    t.same(wrongInOrder(made, options), [], `seed ${seed}: the uplinks made`);
    t.same(wrongOnLink(bench.timedEffects), [], `seed ${seed}: the uplinks sent`);
    t.same(wrongNumbers(made), [], `seed ${seed}: the sequence numbers`);
  }
  t.equal(seen.size, 14, 'all kinds of uplinks occur on the walks');
});

t.test('each uplink is either discarded, or sent and acknowledged in the end', async (t) => {
  for (let seed = 1; seed <= WALKS; seed++) {
    const { bench } = walk(seed);
    bench.gatewayAnswers = true;
    bench.gatewayAcknowledges = true;
    if (bench.state.inFlight) bench.handle({ type: 'disconnected' });
    bench.handle({ type: 'settings', change: { airplane: false } }).handle({ type: 'battery', percent: 90 });
    bench.handle({ type: 'coverage', covered: true }).handle({ type: 'motion', moving: false }).advance(Hours(1));
    const name = ({ boot, sequence }: Uplink) => `${boot}/${sequence}`;
    const made = new Set(bench.createdUplinks().map(name));
    for (const { effect } of bench.timedEffects) if (effect.type === 'discarded') made.delete(name(effect.uplink));
    for (const uplink of bench.publishedUplinks()) made.delete(name(uplink));
    t.same([...made], [], `seed ${seed}: all were sent`);
    t.same(bench.state.waiting, [], `seed ${seed}: all were acknowledged`);
  }
});

t.test('step does not change the given state, and the same inputs lead to the same state', async (t) => {
  for (let seed = 1; seed <= 5; seed++) {
    const one = walk(seed).bench;
    const other = walk(seed).bench;
    t.same(one.state, other.state);
    const before = JSON.stringify(one.state);
    const given = one.state;
    one.handle({ type: 'battery', percent: 3 }).handle({ type: 'lock-state', lockState: 'locked' }).advance(Hours(1));
    t.equal(JSON.stringify(given), before);
  }
});
