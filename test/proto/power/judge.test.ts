// Checks general properties of the judge (protocol.md §3), which checks a lock's messages and has a belief about the
// lock's state. The judge never throws and is pure; its belief stays small and survives JSON; silences are reported on
// time; and presence follows the model. ../trace/traces.test.ts checks the single rules. A `JudgedRun` judges one event
// after another; its `judge` returns the rules that the event has shown to be broken. `START_MS` is 06:00 UTC, an hour
// before the high window opens.
import fc from 'fast-check';
import t from 'tap';
import { Days, Hours, Minutes, Seconds } from '../../../proto/clock.js';
import { type Belief, type InitialBelief, newBelief } from '../../../proto/power/judge/belief.js';
import type { JudgeEvent } from '../../../proto/power/judge/event.js';
import { judge } from '../../../proto/power/judge/judge.js';
import { presence } from '../../../proto/power/judge/presence.js';
import { stateRow, windowPhase } from '../../../proto/power/judge/state.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { RULES } from '../../../proto/power/rules.js';
import type { PowerSettings, Uplink } from '../../../proto/wire/ping.js';
import { cellular, JudgedRun, START_MS, uplink } from '../../helpers/pair/judged-uplinks.js';

const MID: PowerSettings = { mode: 'MID', rideTracking: false, airplane: false, recovery: false };
const HIGH: PowerSettings = { ...MID, mode: 'HIGH' };
const RECOVERY: PowerSettings = { ...MID, recovery: true };

const absurdNumbers = fc.oneof(
  fc.integer({ min: -10, max: 200 }),
  fc.constantFrom(
    0,
    -1,
    2 ** 32 - 1,
    2 ** 63,
    -(2 ** 63),
    // Just outside the range of a JavaScript date, and just outside the year 9999.
    8.64e15 + 1,
    253402300800000,
    Number.NaN,
    Infinity,
    -Infinity,
  ),
);
const times = fc.oneof(
  fc.integer({ min: 0, max: Days(3) }).map((offset) => START_MS + offset),
  fc.constantFrom(-10, 10).map((years) => START_MS + years * Days(365)),
  absurdNumbers,
);
const powers = fc.record({
  mode: fc.constantFrom('MID' as const, 'HIGH' as const),
  rideTracking: fc.boolean(),
  airplane: fc.boolean(),
  recovery: fc.boolean(),
});
const positions = fc.record({
  latitudeDegrees: absurdNumbers,
  longitudeDegrees: absurdNumbers,
  uncertaintyMeters: absurdNumbers,
});
const reasons = fc.constantFrom(
  'REASON_THEFT' as const,
  'REASON_PERIOD_TRACKING' as const,
  'REASON_STATE_PING' as const,
  'REASON_GPS_PING' as const,
  'REASON_UNRECOGNIZED_-7' as const,
  'PHONE' as const,
);
const lockStates = fc.constantFrom('locked' as const, 'unlocked' as const, 'unknown' as const);
const windows = fc.record({ fromMinute: absurdNumbers, toMinute: absurdNumbers, utcOffsetMinutes: absurdNumbers });
const wireBodies = fc.oneof(
  fc
    .record({ reason: reasons, lockState: lockStates, batteryPercent: absurdNumbers, position: fc.option(positions) })
    .map((members) => cellular(members)),
  fc.record({
    kind: fc.constant('gps' as const),
    reason: reasons,
    lockState: lockStates,
    batteryPercent: absurdNumbers,
    ebikeVolts: fc.constant(null),
    tetherState: fc.constant('unknown' as const),
    position: positions,
    speedMetersPerSecond: absurdNumbers,
    directionDegrees: absurdNumbers,
  }),
  fc.record({
    kind: fc.constant('close_connection' as const),
    reason: fc.constant('REASON_CLOSE_CONNECTION' as const),
    lockState: lockStates,
    batteryPercent: absurdNumbers,
  }),
  fc.record({
    kind: fc.constant('ack' as const),
    commandId: absurdNumbers,
    result: fc.constantFrom('ok' as const, 'failed' as const),
    detail: fc.string(),
    highWindow: fc.option(windows),
  }),
);
const uplinks: fc.Arbitrary<Uplink> = fc.record({
  boot: absurdNumbers,
  sequence: absurdNumbers,
  timeMs: times,
  power: powers,
  kept: absurdNumbers,
  dropped: absurdNumbers,
  body: wireBodies,
});
/** Named twice, so that most events are of the lock. */
const source = fc.constantFrom('lock' as const, 'lock' as const, 'phone' as const);
const events: fc.Arbitrary<JudgeEvent> = fc.oneof(
  fc.record({
    type: fc.constant('uplink' as const),
    source,
    atMs: times,
    credential: fc.nat({ max: 2 }),
    novelty: fc.constantFrom('new' as const, 'new' as const, 'repeat' as const, 'conflict' as const),
    uplink: uplinks,
  }),
  fc.record({ type: fc.constant('connect' as const), source, atMs: times }),
  fc.record({
    type: fc.constant('disconnect' as const),
    source,
    atMs: times,
    cause: fc.constantFrom('closed' as const, 'dropped' as const, 'gateway' as const),
  }),
  fc.record({
    type: fc.constant('command' as const),
    atMs: times,
    id: absurdNumbers,
    command: fc.constantFrom({ type: 'set-power' as const, airplane: true }, { type: 'unlock' as const }),
  }),
  fc.record({ type: fc.constant('gateway' as const), atMs: times, state: fc.constantFrom('start', 'stop') }),
  fc.record({ type: fc.constant('tick' as const), atMs: times }),
) as fc.Arbitrary<JudgeEvent>;

t.test('the judge never throws, and all values in its messages are defined', async (t) => {
  const brokenRules = new Set<string>();
  fc.assert(
    fc.property(fc.array(events, { maxLength: 40 }), (randomEvents) => {
      const run = new JudgedRun(START_MS, { power: HIGH, lockState: 'locked', listeningSinceMs: START_MS });
      for (const event of randomEvents) for (const rule of run.judge(event)) brokenRules.add(rule);
      presence(POWER_MODEL, run.belief, Number.NaN);
      presence(POWER_MODEL, run.belief, run.belief.nowMs);
      return run.findings.every((finding) => !/undefined|\[object/.test(finding.message));
    }),
    { numRuns: 2000, seed: 7 },
  );
  // Otherwise few messages would have been checked.
  t.ok(brokenRules.size > 12, `the random events broke ${brokenRules.size} rules`);
});

t.test('judge does not change the given belief, and returns the same result for the same arguments', async (t) => {
  const freeze = <T>(value: T): T => {
    if (typeof value === 'object' && value !== null) Object.values(Object.freeze(value)).forEach(freeze);
    return value;
  };
  fc.assert(
    fc.property(fc.array(events, { maxLength: 15 }), (randomEvents) => {
      let belief: Belief = newBelief(POWER_MODEL, 'a MAC', START_MS);
      for (const event of randomEvents) {
        const first = judge(POWER_MODEL, freeze(belief), event);
        const second = judge(POWER_MODEL, belief, event);
        t.same(first, second);
        belief = first.belief;
      }
    }),
    { numRuns: 150, seed: 8 },
  );
});

t.test('a belief that went through JSON leads to the same results', async (t) => {
  const run = new JudgedRun(START_MS, { listeningSinceMs: START_MS });
  run.judge({ type: 'connect', source: 'lock', atMs: START_MS });
  // With gaps, so that the belief has several spans of sequence numbers.
  for (let sequence = 1; sequence < 40; sequence += 1 + (sequence % 3)) {
    const body = cellular({ reason: 'REASON_PERIOD_TRACKING', lockState: 'unlocked' });
    run.receive(uplink({ sequence, timeMs: START_MS + Hours(sequence), body }), START_MS + Minutes(sequence));
  }
  const fromJson = JSON.parse(JSON.stringify(run.belief)) as Belief;
  t.same(fromJson, run.belief);
  const next: JudgeEvent = {
    type: 'uplink',
    source: 'lock',
    atMs: START_MS + Days(2),
    credential: 0,
    novelty: 'new',
    uplink: uplink({ sequence: 300, body: cellular({ reason: 'REASON_PERIOD_TRACKING' }) }),
  };
  t.same(judge(POWER_MODEL, fromJson, next), judge(POWER_MODEL, run.belief, next));
});

t.test('a belief stays within its size limits whatever uplinks come', async (t) => {
  const run = new JudgedRun();
  let seed = 1;
  // The numbers of a Lehmer generator (Park and Miller).
  const random = (below: number) => {
    seed = (seed * 48271) % 2147483647;
    return seed % below;
  };
  for (let count = 0; count < 20_000; count++) {
    const timeMs = START_MS + random(Days(60));
    const body = cellular({ reason: count % 2 === 0 ? 'REASON_PERIOD_TRACKING' : 'REASON_STATE_PING' });
    run.receive(uplink({ boot: random(40), sequence: random(100_000), timeMs, body }), START_MS + count);
    const command = { type: 'set-power', airplane: true } as const;
    run.judge({ type: 'command', id: count, command, atMs: START_MS + count });
  }
  const { runs, periods, airplaneSwitches } = run.belief;
  // The limits of `BELIEF_LIMITS`. The newest uplink may be one span too many until the next one comes.
  t.ok(runs.length <= 16 && runs.every(({ spans }) => spans.length <= 301), 'boots, and spans of sequence numbers');
  t.ok(periods.length <= 96 && airplaneSwitches.length <= 16, 'period pings and commands');
});

t.test('the effective state is the first row whose condition holds', async (t) => {
  const state = (power: Partial<PowerSettings>, battery: number | null) =>
    stateRow(POWER_MODEL, { ...MID, ...power }, battery).state;
  t.equal(state({ airplane: true, recovery: true, mode: 'HIGH' }, 5), 'AIRPLANE');
  t.equal(state({ recovery: true, mode: 'HIGH' }, 9), 'LOW_BATTERY');
  t.equal(state({ recovery: true, mode: 'HIGH' }, 10), 'RECOVERY', 'exactly 10 % is not low');
  t.equal(state({ mode: 'HIGH' }, 10), 'HIGH');
  t.equal(state({}, null), 'MID');
});

t.test(
  'a daily window includes its first moment but not its last, and may cross midnight or last all day',
  async (t) => {
    const at = (text: string) => Date.parse(`2026-11-20T${text}Z`);
    // 07:00 to 19:00.
    const day = { fromMinute: 420, toMinute: 1140, utcOffsetMinutes: 0 };
    t.match(windowPhase(day, at('06:59:59.999')), { isInside: false, changesIn: 1 });
    t.match(windowPhase(day, at('07:00:00.000')), { isInside: true, changesIn: Hours(12) });
    t.match(windowPhase(day, at('19:00:00.000')), { isInside: false, changesIn: Hours(12), closedFor: Hours(12) });
    t.equal(
      windowPhase({ ...day, utcOffsetMinutes: 120 }, at('05:00:00.000')).isInside,
      true,
      'a window east of UTC opens earlier',
    );
    t.equal(
      windowPhase({ ...day, utcOffsetMinutes: -330 }, at('12:00:00.000')).isInside,
      false,
      'a window west of UTC opens later',
    );
    t.equal(windowPhase({ ...day, utcOffsetMinutes: -330 }, at('12:30:00.000')).isInside, true);
    // 22:00 to 05:00.
    const night = { fromMinute: 1320, toMinute: 300, utcOffsetMinutes: 0 };
    t.match(windowPhase(night, at('23:30:00.000')), { isInside: true, changesIn: Hours(5.5) });
    t.match(windowPhase(night, at('04:59:00.000')), { isInside: true, changesIn: Minutes(1) });
    t.equal(windowPhase(night, at('05:00:00.000')).isInside, false);
    t.equal(windowPhase({ fromMinute: 60, toMinute: 60, utcOffsetMinutes: 0 }, at('13:00:00.000')).isInside, true);
  },
);

/** A run with a lock that connects and disconnects at the start. */
function seenAtStart(initial: InitialBelief): JudgedRun {
  const run = new JudgedRun(START_MS, { listeningSinceMs: START_MS, ...initial });
  run.judge({ type: 'connect', source: 'lock', atMs: START_MS });
  run.judge({ type: 'disconnect', source: 'lock', cause: 'closed', atMs: START_MS });
  return run;
}

t.test('a silence that breaks a rule is reported once, and a new silence is reported again', async (t) => {
  const run = seenAtStart({ power: RECOVERY });
  t.same(run.judge({ type: 'tick', atMs: START_MS + Minutes(10) }), []);
  t.same(run.judge({ type: 'tick', atMs: START_MS + Minutes(10) + 1 }), ['recovery-offline']);
  t.same(run.judge({ type: 'tick', atMs: START_MS + Hours(5) }), []);
  run.judge({ type: 'connect', source: 'lock', atMs: START_MS + Hours(6) });
  run.judge({ type: 'disconnect', source: 'lock', cause: 'closed', atMs: START_MS + Hours(7) });
  t.same(run.judge({ type: 'tick', atMs: START_MS + Hours(8) }), ['recovery-offline']);
});

t.test('silence counts only while the gateway listens', async (t) => {
  const run = seenAtStart({ power: RECOVERY });
  run.judge({ type: 'gateway', state: 'stop', atMs: START_MS + Minutes(1) });
  t.same(run.judge({ type: 'tick', atMs: START_MS + Days(2) }), []);
  run.judge({ type: 'gateway', state: 'start', atMs: START_MS + Days(2) });
  t.same(run.judge({ type: 'tick', atMs: START_MS + Days(2) + Minutes(10) }), []);
  t.same(run.judge({ type: 'tick', atMs: START_MS + Days(2) + Minutes(11) }), ['recovery-offline']);
});

t.test('when the gateway listens again, silences are counted from then, and the next due time follows', async (t) => {
  const run = seenAtStart({ power: RECOVERY });
  t.same(run.judge({ type: 'tick', atMs: START_MS + Hours(1) }), ['recovery-offline']);
  run.judge({ type: 'gateway', state: 'stop', atMs: START_MS + Hours(2) });
  t.equal(run.belief.dueMs, Number.MAX_SAFE_INTEGER, 'nothing is due while the gateway does not listen');
  run.judge({ type: 'gateway', state: 'start', atMs: START_MS + Hours(3) });
  t.equal(run.belief.dueMs, START_MS + Hours(3) + Minutes(10));
  t.same(run.judge({ type: 'tick', atMs: START_MS + Hours(4) }), ['recovery-offline']);
});

t.test('a gateway that starts without having stopped has lost its connections', async (t) => {
  const run = new JudgedRun(START_MS, { listeningSinceMs: START_MS });
  run.judge({ type: 'connect', source: 'lock', atMs: START_MS });
  t.same(run.judge({ type: 'gateway', state: 'start', atMs: START_MS + 1 }), [], 'that is not the lock’s fault');
  t.equal(run.belief.isConnected, false);
});

t.test('silence after a command to switch airplane mode on does not count towards period-overdue', async (t) => {
  const run = seenAtStart({});
  const command = { type: 'set-power', airplane: true } as const;
  run.judge({ type: 'command', id: 7, command, atMs: START_MS + Hours(1) });
  t.same(run.judge({ type: 'tick', atMs: START_MS + Days(3) }), []);
  const ackMs = START_MS + Days(3);
  run.judge({ type: 'connect', source: 'lock', atMs: ackMs });
  const body = { kind: 'ack', commandId: 7, result: 'rejected', detail: '', highWindow: null } as const;
  run.receive(uplink({ timeMs: ackMs, body }), ackMs);
  run.judge({ type: 'disconnect', source: 'lock', cause: 'closed', atMs: ackMs + Seconds(20) });
  t.same(run.judge({ type: 'tick', atMs: ackMs + Hours(24) }), [], '1 h before and 24 h after the suspension are 25 h');
  t.same(run.judge({ type: 'tick', atMs: ackMs + Hours(24) + Minutes(1) }), ['period-overdue']);
});

t.test('an unanswered command to switch airplane mode on suspends lateness until it expires', async (t) => {
  const command = { type: 'set-power', airplane: true } as const;
  const expiresMs = START_MS + Hours(3);
  const commandedToAirplane = (): JudgedRun => {
    const run = new JudgedRun(START_MS, { power: RECOVERY, isConnected: true, listeningSinceMs: START_MS });
    run.judge({ type: 'command', id: 7, command, expiresMs, atMs: START_MS + Minutes(1) });
    run.judge({ type: 'disconnect', source: 'lock', cause: 'gateway', atMs: START_MS + Minutes(2) });
    return run;
  };
  const run = commandedToAirplane();
  t.equal(run.belief.dueMs, expiresMs, 'the next due time is its expiry');
  t.same(run.judge({ type: 'tick', atMs: expiresMs }), []);
  t.same(run.judge({ type: 'tick', atMs: expiresMs + 1 }), ['recovery-offline']);
  t.match(run.findings[0]?.message, /possible cause: command 7 .* expired unanswered at 2026-11-20T09:00:00.000Z\.$/);

  const withUplink = commandedToAirplane();
  const backMs = START_MS + Minutes(30);
  withUplink.judge({ type: 'connect', source: 'lock', atMs: backMs });
  t.not(withUplink.belief.suspendedSinceMs, null, 'a connection without an uplink does not end the suspension');
  withUplink.receive(uplink({ timeMs: backMs, power: RECOVERY }), backMs);
  t.equal(withUplink.belief.suspendedSinceMs, null, 'an uplink with airplane off ends the suspension');
  withUplink.judge({ type: 'disconnect', source: 'lock', cause: 'gateway', atMs: backMs + Minutes(1) });
  t.same(withUplink.judge({ type: 'tick', atMs: backMs + Minutes(12) }), ['recovery-offline']);
  t.notMatch(withUplink.findings[0]?.message, /possible cause/, 'then the command is not the cause of the silence');

  const sentAgain = commandedToAirplane();
  sentAgain.judge({ type: 'connect', source: 'lock', atMs: backMs });
  sentAgain.receive(uplink({ timeMs: backMs, power: RECOVERY }), backMs);
  sentAgain.judge({ type: 'command', id: 7, command, expiresMs, atMs: backMs + 1 });
  sentAgain.judge({ type: 'disconnect', source: 'lock', cause: 'gateway', atMs: backMs + Minutes(1) });
  t.same(sentAgain.judge({ type: 'tick', atMs: expiresMs }), [], 'the command was sent again, so it may be the cause');
  t.same(sentAgain.judge({ type: 'tick', atMs: expiresMs + 1 }), ['recovery-offline']);
});

t.test('a late tick still finds a breach that started and ended before the tick', async (t) => {
  const startMs = START_MS + Hours(2);
  const run = new JudgedRun(startMs, { power: HIGH, isConnected: true, listeningSinceMs: startMs });
  // Connected through the night: the window closes at 19:00 and opens again before the tick.
  const rules = run.judge({ type: 'tick', atMs: START_MS + Hours(25) });
  t.same(rules, ['connection-unexplained']);
  t.match(run.findings[0]?.message, /since 2026-11-20T19:00:00.000Z/);
});

t.test('presence is never-seen, online, asleep, late, airplane or low-battery', async (t) => {
  const presenceIn = (run: JudgedRun, atMs: number) => presence(POWER_MODEL, run.belief, atMs);
  t.same(presenceIn(new JudgedRun(), START_MS + Days(9)), { presence: 'never-seen' });
  const online = new JudgedRun();
  online.judge({ type: 'connect', source: 'lock', atMs: START_MS });
  t.same(presenceIn(online, START_MS + 5), { presence: 'online', sinceMs: START_MS });

  const asleep = seenAtStart({ lastPeriodMs: START_MS });
  t.same(presenceIn(asleep, START_MS + Hours(2)), { presence: 'asleep', dueMs: START_MS + Days(1) });
  t.same(
    presenceIn(asleep, START_MS + Hours(24) + Minutes(20)),
    { presence: 'asleep', dueMs: START_MS + Hours(24) + Minutes(20) },
    'a lock that is overdue but not late yet is due now, not in the past',
  );
  t.same(presenceIn(asleep, START_MS + Hours(26)), {
    presence: 'late',
    sinceMs: START_MS + Hours(25),
    rule: 'period-overdue',
  });
  const high = seenAtStart({ power: HIGH, lastPeriodMs: START_MS });
  t.same(
    presenceIn(high, START_MS + Minutes(5)),
    { presence: 'asleep', dueMs: START_MS + Hours(1) },
    'the window opens at 7',
  );
  t.same(presenceIn(high, START_MS + Hours(2)), {
    presence: 'late',
    sinceMs: START_MS + Hours(1) + Minutes(10),
    rule: 'window-offline',
  });
  t.match(presenceIn(seenAtStart({ power: RECOVERY }), START_MS + Minutes(11)), {
    presence: 'late',
    rule: 'recovery-offline',
  });

  const airplane = seenAtStart({ power: { ...MID, airplane: true } });
  t.same(presenceIn(airplane, START_MS + Days(3)), { presence: 'airplane' });
  const low = new JudgedRun();
  low.judge({ type: 'connect', source: 'lock', atMs: START_MS });
  low.receive(uplink({ body: cellular({ batteryPercent: 9 }) }), START_MS);
  low.judge({ type: 'disconnect', source: 'lock', cause: 'closed', atMs: START_MS });
  t.same(presenceIn(low, START_MS + Days(3)), { presence: 'low-battery' });
});

t.test('there are 39 rules, and ten of them are warnings', async (t) => {
  t.equal(RULES.length, 39);
  t.equal(new Set(RULES.map((row) => row.rule)).size, 39);
  t.same(
    RULES.filter((row) => row.severity === 'warning').map((row) => row.rule),
    [
      'sequence-gap',
      'clock-ahead',
      'not-closed',
      'period-overdue',
      'window-offline',
      'recovery-offline',
      'command-ignored',
      'clock-back',
      'clock-behind',
      'motion-unlikely',
    ],
  );
});
