// Checks `step`, the simulated lock, against protocol.md §2: what a lock does in each state and for each trigger. A
// *story* lists what the lock publishes and does, each with the seconds since a given time.
import t from 'tap';
import { Days, Hours, Minutes, Seconds } from '../../../proto/clock.js';
import type { EffectiveState } from '../../../proto/power/model.js';
import { nextWindowEdgeMs, periodMinuteOf, windowContains } from '../../../proto/power/step/reading.js';
import type { Command, PowerSettings } from '../../../proto/wire/ping.js';
import { MIDNIGHT_MS, MODEL_LOCK_MAC, ModelLock, type ModelLockOptions, macOf } from '../../helpers/mqtt/model-lock.js';

const NOON_MS = MIDNIGHT_MS + Hours(12);

/** The options that put a lock into each state at noon, with the model's high window (07:00–19:00 UTC). */
const STATES: Record<EffectiveState, ModelLockOptions> = {
  AIRPLANE: { power: power({ airplane: true, recovery: true, mode: 'HIGH' }) },
  LOW_BATTERY: { batteryPercent: 9, power: power({ recovery: true, mode: 'HIGH' }) },
  RECOVERY: { power: power({ recovery: true, mode: 'HIGH' }) },
  HIGH: { power: power({ mode: 'HIGH' }) },
  MID: { power: power({}) },
};

function power(some: Partial<PowerSettings>): PowerSettings {
  return { mode: 'MID', rideTracking: true, airplane: false, recovery: false, ...some };
}

function reasons(bench: ModelLock): Set<string> {
  return new Set(bench.publishedUplinks().map(({ body }) => (body.kind === 'ack' ? 'ack' : body.reason)));
}

t.test('in each state a lock sends only what the table of protocol.md §2 allows', async (t) => {
  // The columns of protocol.md §2: theft, period, state change, ride, ride tracking, commands, connection kept.
  const table: Record<EffectiveState, string> = {
    AIRPLANE: '-------',
    LOW_BATTERY: 't------',
    RECOVERY: 'tpsrgck',
    HIGH: 'tpsrgck',
    MID: 'tpsrgc-',
  };
  const columns = [
    ['t', 'REASON_THEFT'],
    ['p', 'REASON_PERIOD_TRACKING'],
    ['s', 'REASON_STATE_PING'],
    ['r', 'REASON_UNLOCKED_MOVEMENT'],
    ['g', 'REASON_UNLOCKED_PING'],
    ['c', 'ack'],
    ['k', 'REASON_NETWORK_PING'],
  ] as const;
  for (const [state, row] of Object.entries(table)) {
    const bench = new ModelLock(STATES[state as EffectiveState]);
    t.equal(bench.state.stateName, state);
    // A theft, a ride and two days: all triggers that need no command occur.
    bench.handle({ type: 'motion', moving: true }).advance(Minutes(1)).command(1, { type: 'siren', seconds: 1 });
    bench.handle({ type: 'lock-state', lockState: 'unlocked' }).advance(Minutes(1));
    bench.handle({ type: 'motion', moving: false }).advance(Days(2));
    const said = reasons(bench);
    for (const [letter, reason] of columns) {
      t.equal(
        said.has(reason),
        row.includes(letter),
        `${state}: ${reason} ${row.includes(letter) ? 'is' : 'is not'} said`,
      );
    }
  }
});

t.test('the states rank in the order airplane, low battery, recovery, HIGH, MID', async (t) => {
  const of = (batteryPercent: number, some: Partial<PowerSettings>) =>
    new ModelLock({ batteryPercent, power: power(some) }).state.stateName;
  t.equal(of(5, { airplane: true, recovery: true, mode: 'HIGH' }), 'AIRPLANE');
  t.equal(of(9, { recovery: true, mode: 'HIGH' }), 'LOW_BATTERY');
  t.equal(of(10, { recovery: true, mode: 'HIGH' }), 'RECOVERY', 'exactly 10 % is not low');
  t.equal(of(10, { mode: 'HIGH' }), 'HIGH');
  t.equal(of(10, {}), 'MID');
});

t.test(
  'period: a lock sends once daily at its own minute, a cellular ping at once and a GPS ping with the first fix',
  async (t) => {
    const bench = new ModelLock({ startMs: MIDNIGHT_MS });
    const dueMs = MIDNIGHT_MS + Minutes(periodMinuteOf(MODEL_LOCK_MAC));
    t.equal(bench.wakeAtMs, dueMs, 'nothing else wakes a sleeping lock');
    bench.advance(Days(1));
    t.same(bench.describeSince(dueMs), [
      '0 connect',
      '0 cellular PERIOD_TRACKING',
      '30 gps PERIOD_TRACKING',
      '50 close',
      '50 disconnect',
    ]);
    bench.advance(Days(9));
    const periods = bench.createdUplinks().filter(({ body }) => body.kind === 'cellular');
    t.same(
      periods.map(({ timeMs }) => (timeMs - dueMs) / Days(1)),
      [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    );
  },
);

t.test(
  'period: the minute depends on the MAC, some states skip the ping, and two pings are at least 23 h apart',
  async (t) => {
    const hours = new Map<number, number>();
    for (let lock = 0; lock < 2400; lock++) {
      const mac = macOf(`A4C138${lock.toString(16).padStart(6, '0')}`);
      const hour = Math.floor(periodMinuteOf(mac) / 60);
      hours.set(hour, (hours.get(hour) ?? 0) + 1);
    }
    t.equal(hours.size, 24, 'in every hour of the day some locks send');
    t.ok(Math.max(...hours.values()) < 200 && Math.min(...hours.values()) > 40, 'about 100 each');

    const dueMs = MIDNIGHT_MS + Minutes(periodMinuteOf(MODEL_LOCK_MAC));
    const low = new ModelLock({ startMs: MIDNIGHT_MS, batteryPercent: 5 });
    low
      .advance(dueMs + Hours(1) - MIDNIGHT_MS)
      .handle({ type: 'battery', percent: 90 })
      .advance(Hours(20));
    t.same(low.createdUplinks(), [], 'a skipped ping is not sent after charging');
    low.advance(Hours(4));
    t.equal(low.createdUplinks()[0]?.timeMs, dueMs + Days(1), 'the lock sends the ping of the next day');

    const rebooted = new ModelLock({ startMs: MIDNIGHT_MS });
    rebooted
      .advance(dueMs - MIDNIGHT_MS)
      .handle({ type: 'boot' })
      .advance(Hours(23));
    const cellular = rebooted.createdUplinks().filter(({ body }) => body.kind === 'cellular');
    t.equal(cellular.length, 1, 'a boot in the same minute makes no second sequence');
  },
);

t.test('theft: it starts when a locked lock has moved for more than 6 s', async (t) => {
  const bench = new ModelLock();
  bench.handle({ type: 'motion', moving: true }).advance(Seconds(6));
  t.same(bench.createdUplinks(), [], '6 s are not more than 6 s');
  bench.advance(1);
  t.same(bench.describeSince(NOON_MS), ['6.001 connect', '6.001 cellular THEFT']);
  bench.advance(Seconds(51)).handle({ type: 'motion', moving: false }).advance(Minutes(5));
  t.same(
    bench.describeSince(NOON_MS + Seconds(7)),
    [
      // 30 s to the first fix, then every 10 s while it moves (until 57.001 s), and the end after 2 min without motion.
      '29.001 gps THEFT',
      '39.001 gps THEFT',
      '49.001 gps THEFT',
      '170.001 close',
      '170.001 disconnect',
    ].map((line) => line),
  );
});

t.test(
  'theft: not before 6 s, not while unlocked; a cellular ping every 5 min; it ends when the lock is unlocked',
  async (t) => {
    const shaken = new ModelLock();
    for (let shake = 0; shake < 5; shake++) {
      shaken
        .handle({ type: 'motion', moving: true })
        .advance(Seconds(5))
        .handle({ type: 'motion', moving: false })
        .advance(Seconds(5));
    }
    t.same(shaken.createdUplinks(), [], 'short movements are not a theft');

    const bench = new ModelLock();
    bench.handle({ type: 'motion', moving: true }).advance(Minutes(16));
    const cellular = bench.createdUplinks().filter(({ body }) => body.kind === 'cellular');
    t.same(
      cellular.map(({ timeMs }) => (timeMs - NOON_MS) / 1000),
      [6.001, 306.001, 606.001, 906.001],
    );
    const mark = bench.timedEffects.length;
    bench.handle({ type: 'lock-state', lockState: 'unlocked' }).advance(Minutes(1));
    const after = bench
      .createdUplinks(mark)
      .map(({ body }) => (body.kind === 'ack' ? '' : `${body.kind} ${body.reason}`));
    t.same(after.slice(0, 2), ['cellular REASON_STATE_PING', 'cellular REASON_UNLOCKED_MOVEMENT']);
    t.notOk(after.some((line) => line.includes('THEFT')));

    const relocked = new ModelLock({ lockState: 'unlocked', moving: true });
    relocked.advance(Minutes(1)).handle({ type: 'lock-state', lockState: 'locked' }).advance(Seconds(6));
    t.notOk(reasons(relocked).has('REASON_THEFT'), 'the 6 s start when the lock is both locked and moving');
    relocked.advance(1);
    t.ok(reasons(relocked).has('REASON_THEFT'));
  },
);

t.test(
  'state change: each change makes a cellular ping with its lock state; one GPS ping follows for the latest',
  async (t) => {
    const bench = new ModelLock();
    bench.handle({ type: 'lock-state', lockState: 'unlocked' }).advance(Seconds(2));
    bench.handle({ type: 'lock-state', lockState: 'locked' }).advance(Seconds(2));
    bench.handle({ type: 'lock-state', lockState: 'unlocked' }).handle({ type: 'lock-state', lockState: 'unlocked' });
    bench.advance(Minutes(5));
    t.same(bench.describeSince(NOON_MS), [
      '0 connect',
      '0 cellular STATE_PING',
      '2 cellular STATE_PING',
      '4 cellular STATE_PING',
      '30 gps STATE_PING',
      '50 close',
      '50 disconnect',
    ]);
    const said = bench.createdUplinks().map(({ body }) => (body.kind === 'ack' ? '' : body.lockState));
    t.same(said, ['unlocked', 'locked', 'unlocked', 'unlocked', 'unlocked']);
  },
);

t.test('state change: changes in a silent state that cancel each other out are not reported', async (t) => {
  const bench = new ModelLock({ power: power({ airplane: true }) });
  bench.handle({ type: 'lock-state', lockState: 'unlocked' }).advance(Minutes(1));
  bench.handle({ type: 'settings', change: { airplane: false } }).advance(Minutes(1));
  bench.handle({ type: 'lock-state', lockState: 'locked' }).advance(Minutes(1));
  t.same(bench.createdUplinks(), [], 'the last ping reported locked');
  bench.handle({ type: 'lock-state', lockState: 'unlocked' });
  t.equal(bench.createdUplinks().length, 1);
});

t.test('ride: a cellular ping at once and every 5 min; GPS pings every 30 s, only with ride tracking', async (t) => {
  const plain = new ModelLock({ lockState: 'unlocked', power: power({ rideTracking: false }) });
  plain
    .handle({ type: 'motion', moving: true })
    .advance(Minutes(6))
    .handle({ type: 'motion', moving: false })
    .advance(Minutes(5));
  t.same(plain.describeSince(NOON_MS), [
    '0 connect',
    '0 cellular UNLOCKED_MOVEMENT',
    '300 cellular UNLOCKED_MOVEMENT',
    '480 close',
    '480 disconnect',
  ]);

  const tracked = new ModelLock({ lockState: 'unlocked', power: power({}) });
  tracked
    .handle({ type: 'motion', moving: true })
    .advance(Seconds(100))
    .handle({ type: 'motion', moving: false })
    .advance(Minutes(5));
  t.same(tracked.describeSince(NOON_MS), [
    '0 connect',
    '0 cellular UNLOCKED_MOVEMENT',
    '30 gps UNLOCKED_PING',
    '60 gps UNLOCKED_PING',
    '90 gps UNLOCKED_PING',
    '220 close',
    '220 disconnect',
  ]);
});

t.test('ride: ride tracking may be switched during it, a short stop is part of it, locking ends it', async (t) => {
  const bench = new ModelLock({ lockState: 'unlocked', power: power({ rideTracking: false }) });
  bench
    .handle({ type: 'motion', moving: true })
    .advance(Minutes(3))
    .command(1, { type: 'set-power', rideTracking: true });
  bench.advance(Seconds(30));
  t.ok(reasons(bench).has('REASON_UNLOCKED_PING'), 'after switching on, the search starts at once');
  bench.command(2, { type: 'set-power', rideTracking: false });
  const mark = bench.timedEffects.length;
  bench
    .advance(Minutes(1))
    .handle({ type: 'motion', moving: false })
    .advance(Seconds(119))
    .handle({ type: 'motion', moving: true });
  bench.advance(Minutes(10));
  t.notOk(
    bench.createdUplinks(mark).some(({ body }) => body.kind === 'gps'),
    'off: no GPS ping more',
  );
  t.equal(bench.state.link, 'up', 'a stop of under 2 min does not end the ride');
  bench
    .handle({ type: 'motion', moving: false })
    .handle({ type: 'lock-state', lockState: 'locked' })
    .advance(Minutes(1));
  t.equal(bench.state.link, 'down');
  const last = bench.createdUplinks().at(-1)?.body;
  t.match(last, { kind: 'close_connection', lockState: 'locked' });
});

t.test(
  'RECOVERY keeps the connection always, HIGH in its window; NETWORK_PING comes on connecting and every 15 min',
  async (t) => {
    const recovery = new ModelLock({ power: power({ recovery: true }), startMs: MIDNIGHT_MS });
    recovery.advance(Minutes(45));
    t.same(recovery.describeSince(MIDNIGHT_MS), [
      '0 connect',
      '0 cellular NETWORK_PING',
      '900 cellular NETWORK_PING',
      '1800 cellular NETWORK_PING',
      '2700 cellular NETWORK_PING',
    ]);
    recovery
      .advance(Seconds(5))
      .handle({ type: 'settings', change: { recovery: false } })
      .advance(Seconds(15));
    t.same(
      recovery.describeSince(MIDNIGHT_MS + Seconds(2701)),
      ['19 close', '19 disconnect'],
      '20 s after the last uplink',
    );

    const high = new ModelLock({ power: power({ mode: 'HIGH' }), startMs: MIDNIGHT_MS });
    high.advance(Days(1));
    const window = high
      .createdUplinks()
      .filter(({ body }) => body.kind !== 'ack' && body.reason === 'REASON_NETWORK_PING');
    t.equal(window.length, 12 * 4, 'four per hour from 07:00 until before 19:00');
    t.equal(window[0]?.timeMs, MIDNIGHT_MS + Hours(7));
    const atSeven = high.timedEffects
      .filter(({ atMs }) => atMs >= MIDNIGHT_MS + Hours(19))
      .map(({ effect }) => effect.type);
    t.same(atSeven.slice(0, 3), ['made', 'publish', 'disconnect'], 'the connection closes at 19:00');
  },
);

t.test('the high window may have a UTC offset, cross midnight, or last all day', async (t) => {
  const at = (hour: number, minute = 0) => MIDNIGHT_MS + Hours(hour) + Minutes(minute);
  const day = { fromMinute: 420, toMinute: 1140, utcOffsetMinutes: 0 };
  t.same(
    [at(6, 59), at(7), at(18, 59), at(19)].map((ms) => windowContains(day, ms)),
    [false, true, true, false],
  );
  t.equal(nextWindowEdgeMs(day, at(7)), at(19));
  t.equal(nextWindowEdgeMs(day, at(19)), at(31));
  const delhi = { ...day, utcOffsetMinutes: 330 };
  t.same(
    [at(1, 29), at(1, 30), at(13, 29), at(13, 30)].map((ms) => windowContains(delhi, ms)),
    [false, true, true, false],
  );
  t.equal(nextWindowEdgeMs(delhi, at(0)), at(1, 30));
  const night = { fromMinute: 1320, toMinute: 360, utcOffsetMinutes: -300 };
  t.same(
    [at(2, 59), at(3), at(10, 59), at(11)].map((ms) => windowContains(night, ms)),
    [false, true, true, false],
  );
  t.equal(nextWindowEdgeMs(night, at(4) + 1), at(11));
  const always = { fromMinute: 60, toMinute: 60, utcOffsetMinutes: 0 };
  t.same(
    [at(0), at(1), at(13)].map((ms) => windowContains(always, ms)),
    [true, true, true],
  );
  t.equal(nextWindowEdgeMs(always, at(0)), Number.POSITIVE_INFINITY);
  const bench = new ModelLock({ power: power({ mode: 'HIGH' }), highWindow: night, startMs: MIDNIGHT_MS });
  bench.advance(Hours(3));
  t.equal(bench.state.link, 'up', 'the lock follows its new window');
});

t.test('low battery: the lock announces it, and then sends only theft pings', async (t) => {
  const bench = new ModelLock();
  bench.handle({ type: 'battery', percent: 10 }).advance(Minutes(1));
  t.same(bench.createdUplinks(), [], 'exactly 10 % is not low');
  bench.handle({ type: 'battery', percent: 9 }).advance(Minutes(1));
  t.same(bench.describeSince(NOON_MS), ['60 connect', '60 close', '60 disconnect'], 'the lock connects to announce it');
  t.match(bench.createdUplinks()[0]?.body, { batteryPercent: 9 });
  const mark = bench.timedEffects.length;
  bench
    .handle({ type: 'lock-state', lockState: 'unlocked' })
    .handle({ type: 'motion', moving: true })
    .advance(Minutes(1));
  bench.handle({ type: 'modem-reset' }).handle({ type: 'battery', percent: 8 }).advance(Days(2));
  t.same(bench.createdUplinks(mark), [], 'no state change, ride, period or reset');
  bench
    .handle({ type: 'lock-state', lockState: 'locked' })
    .advance(Minutes(1))
    .command(9, { type: 'siren', seconds: 3 });
  bench.handle({ type: 'motion', moving: false }).advance(Minutes(5));
  const said = new Set(bench.createdUplinks(mark).map(({ body }) => (body.kind === 'ack' ? 'ack' : body.reason)));
  t.same([...said], ['REASON_THEFT', 'REASON_CLOSE_CONNECTION'], 'theft pings, but no answer to a command');
  bench.handle({ type: 'battery', percent: 60 }).advance(1);
  t.match(
    bench.publishedUplinks().at(-1)?.body,
    { reason: 'REASON_RESET' },
    'the reset is reported as soon as the state allows it',
  );
});

t.test(
  'low battery during a theft: a theft ping reports it at once, and the close comes after the theft',
  async (t) => {
    const bench = new ModelLock();
    bench
      .handle({ type: 'motion', moving: true })
      .advance(Seconds(40))
      .handle({ type: 'battery', percent: 9 })
      .advance(Seconds(10));
    bench.handle({ type: 'motion', moving: false }).advance(Minutes(3));
    t.same(bench.describeSince(NOON_MS + Seconds(40)), [
      '0 cellular THEFT',
      '6.001 gps THEFT',
      '130 close',
      '130 disconnect',
    ]);
  },
);

t.test(
  'airplane mode set at the lock: a close-connection ping reports it, then nothing until it is off again',
  async (t) => {
    const bench = new ModelLock({ power: power({ recovery: true }) });
    bench.advance(Minutes(1)).handle({ type: 'settings', change: { airplane: true } });
    t.same(bench.describeSince(NOON_MS + Seconds(60)), ['0 close', '0 disconnect']);
    t.match(bench.createdUplinks().at(-1), { power: { airplane: true }, body: { kind: 'close_connection' } });
    t.equal(bench.wakeAtMs, Number.POSITIVE_INFINITY, 'no time wakes the lock');
    const mark = bench.timedEffects.length;
    bench
      .handle({ type: 'motion', moving: true })
      .advance(Days(2))
      .handle({ type: 'lock-state', lockState: 'unlocked' });
    bench.handle({ type: 'modem-reset' }).handle({ type: 'battery', percent: 3 }).advance(Days(2));
    t.same(bench.timedEffects.slice(mark), []);
    bench.handle({ type: 'battery', percent: 50 }).handle({ type: 'settings', change: { airplane: false } });
    t.equal(bench.state.link, 'up');

    const asleep = new ModelLock();
    asleep.handle({ type: 'settings', change: { airplane: true } });
    t.same(
      asleep.describeSince(NOON_MS),
      ['0 connect', '0 close', '0 disconnect'],
      'a sleeping lock connects to announce it',
    );
    asleep.handle({ type: 'settings', change: { airplane: false } }).advance(1);
    asleep.handle({ type: 'settings', change: { airplane: true } }).advance(Days(1));
    t.equal(asleep.createdUplinks().length, 1, 'off and on without a ping in between: it is not reported again');
    asleep
      .handle({ type: 'settings', change: { airplane: false } })
      .handle({ type: 'lock-state', lockState: 'unlocked' });
    asleep.handle({ type: 'settings', change: { airplane: true } }).advance(Days(1));
    t.equal(
      asleep.createdUplinks().at(-1)?.body.kind,
      'close_connection',
      'off and on with a ping in between: it is reported again',
    );
  },
);

t.test('airplane mode set by command: acknowledged, closed, silent; no command switches it off', async (t) => {
  const bench = new ModelLock({ power: power({ mode: 'HIGH' }) });
  const highWindow = { fromMinute: 0, toMinute: 60, utcOffsetMinutes: 60 };
  bench.advance(Minutes(1)).command(7, { type: 'set-power', airplane: true, highWindow });
  t.same(bench.describeSince(NOON_MS + Seconds(60)), ['0 ack 7 ok', '0 close', '0 disconnect']);
  t.match(bench.createdUplinks().at(-2), { power: { airplane: true, mode: 'HIGH' }, body: { highWindow } });
  const mark = bench.timedEffects.length;
  bench.command(8, { type: 'set-power', airplane: false }).advance(Days(2));
  t.same(bench.timedEffects.slice(mark), []);
  t.ok(bench.state.power.airplane);
});

t.test('a lock that falls silent without coverage tries once to announce it', async (t) => {
  for (const input of [
    { type: 'battery', percent: 4 },
    { type: 'settings', change: { airplane: true } },
  ] as const) {
    const bench = new ModelLock({ covered: false });
    bench.handle(input).advance(Days(3));
    t.equal(bench.wakeAtMs, Number.POSITIVE_INFINITY, `${input.type}: it does not try again`);
    t.equal(bench.state.waiting.length, 1, 'the ping stays in the buffer');
    bench.handle({ type: 'coverage', covered: true }).handle({ type: 'battery', percent: 80 });
    bench.handle({ type: 'settings', change: { airplane: false } }).advance(Minutes(1));
    t.same(
      bench.publishedUplinks().map(({ body }) => body.kind),
      ['close_connection'],
      'until it may speak again',
    );
  }
});

t.test('triggers send in the order theft, state change, ride, period, over one connection', async (t) => {
  const dueMs = MIDNIGHT_MS + Minutes(periodMinuteOf(MODEL_LOCK_MAC));
  const both = new ModelLock({ startMs: dueMs - Seconds(6) - 1 });
  both.handle({ type: 'motion', moving: true }).advance(Seconds(6) + 1);
  t.same(both.describeSince(dueMs), ['0 connect', '0 cellular THEFT', '0 cellular PERIOD_TRACKING']);

  const bench = new ModelLock({ moving: true, startMs: dueMs, power: power({}) });
  t.equal(bench.publishedUplinks()[0]?.body.kind, 'cellular');
  bench.advance(Seconds(10)).handle({ type: 'lock-state', lockState: 'unlocked' }).advance(Seconds(60));
  const order = bench
    .createdUplinks()
    .map(({ body }) => (body.kind === 'ack' ? 'ack' : `${body.kind} ${body.reason.slice(7)}`));
  t.same(order.slice(0, 7), [
    'cellular PERIOD_TRACKING',
    'cellular THEFT',
    'cellular STATE_PING',
    'cellular UNLOCKED_MOVEMENT',
    'gps STATE_PING',
    'gps UNLOCKED_PING',
    'gps PERIOD_TRACKING',
  ]);
  t.equal(bench.timedEffects.filter(({ effect }) => effect.type === 'connect').length, 1);
});

t.test('commands: carried out once, acknowledged each time, rejected after their expiry', async (t) => {
  const bench = new ModelLock({ power: power({ recovery: true }) });
  const run = (id: number, command: Command) => bench.command(id, command).command(id, command).advance(Minutes(1));
  run(1, { type: 'unlock' });
  run(2, { type: 'siren', seconds: 30 });
  run(3, { type: 'locate-gps' });
  run(4, { type: 'locate-cell' });
  run(5, { type: 'lock' });
  bench.command(6, { type: 'unlock' }, bench.nowMs).command(6, { type: 'unlock' }, bench.nowMs);
  const acks = bench
    .createdUplinks()
    .flatMap(({ body }) => (body.kind === 'ack' ? [`${body.commandId} ${body.result}`] : []));
  const twice = ['1 ok', '2 ok', '3 ok', '4 ok', '5 ok', '6 rejected'].flatMap((ack) => [ack, ack]);
  t.same(acks, twice);
  const count = (type: string) => bench.timedEffects.filter(({ effect }) => effect.type === type).length;
  t.same([count('unlock'), count('siren'), count('tone'), count('lock')], [1, 1, 1, 1]);
  t.equal(bench.state.lockState, 'locked', 'the expired unlock was not carried out');
  const located = bench
    .createdUplinks()
    .filter(({ body }) => body.kind !== 'ack' && /GPS_PING|CELL_PING/.test(body.reason));
  t.match(located, [
    { body: { kind: 'gps', reason: 'REASON_GPS_PING', position: bench.fix.position } },
    { body: { kind: 'cellular', reason: 'REASON_CELL_PING', position: bench.cellPosition } },
  ]);
});

t.test('commands: a tone of 5 s sounds before locking, a state ping follows; an unlock cancels it', async (t) => {
  const bench = new ModelLock({ lockState: 'unlocked', power: power({ recovery: true }) });
  bench.advance(Minutes(1)).command(1, { type: 'lock' }).advance(Seconds(10));
  t.same(bench.describeSince(NOON_MS + Seconds(60)), ['0 tone', '5 lock', '5 cellular STATE_PING', '5 ack 1 ok']);
  bench.command(2, { type: 'unlock' }).command(3, { type: 'lock' }).advance(Seconds(2)).command(4, { type: 'unlock' });
  bench.advance(Seconds(10));
  const acks = bench
    .createdUplinks()
    .flatMap(({ body }) => (body.kind === 'ack' ? [`${body.commandId} ${body.result}`] : []));
  t.same(acks, ['1 ok', '2 ok', '3 failed', '4 ok']);
  t.equal(bench.state.lockState, 'unlocked');
});

t.test(
  'commands: to locate without a fix or a position is acknowledged as failed, and the lock waits for it',
  async (t) => {
    const bench = new ModelLock({ skyOpen: false });
    bench.cellPosition = null;
    bench
      .handle({ type: 'lock-state', lockState: 'unlocked' })
      .advance(Seconds(110))
      .command(1, { type: 'locate-gps' });
    bench.advance(Seconds(119));
    t.equal(bench.state.link, 'up', 'the search keeps the connection open');
    bench.advance(Seconds(1)).command(2, { type: 'locate-cell' }).advance(Seconds(20));
    t.same(bench.describeSince(NOON_MS + Seconds(110)), [
      '120 ack 1 failed',
      '120 ack 2 failed',
      '140 close',
      '140 disconnect',
    ]);
  },
);

t.test('commands: the answer to set-power reports the window in force; an invalid window is rejected', async (t) => {
  const bench = new ModelLock({ power: power({ recovery: true }) });
  bench.command(1, { type: 'set-power', mode: 'HIGH', rideTracking: false });
  t.match(bench.createdUplinks().at(-1), {
    power: { mode: 'HIGH', rideTracking: false, recovery: true },
    body: { result: 'ok', highWindow: { fromMinute: 420, toMinute: 1140, utcOffsetMinutes: 0 } },
  });
  const highWindow = { fromMinute: 0, toMinute: 1440, utcOffsetMinutes: 0 };
  bench.command(2, { type: 'set-power', airplane: true, highWindow });
  t.match(bench.createdUplinks().at(-1)?.body, { result: 'rejected', highWindow: { toMinute: 1140 } });
  t.notOk(bench.state.power.airplane, 'none of its settings was applied');
});

t.test('commands: unfinished ones are answered before the lock falls silent', async (t) => {
  const bench = new ModelLock({ power: power({ recovery: true }), lockState: 'unlocked', skyOpen: false });
  bench.command(1, { type: 'lock' }).command(2, { type: 'locate-gps' });
  bench.command(3, { type: 'set-power', airplane: true }).advance(Hours(1));
  const acks = bench
    .createdUplinks()
    .flatMap(({ body, power }) => (body.kind === 'ack' ? [`${body.commandId} ${body.result} ${power.airplane}`] : []));
  t.same(acks, ['1 failed false', '2 failed false', '3 ok true']);
  t.equal(bench.state.lockState, 'unlocked');
});

t.test(
  'reset by command: acknowledged, closed, restarted; REASON_RESET comes first on the next connection',
  async (t) => {
    const bench = new ModelLock({ power: power({ recovery: true }) });
    bench.advance(Minutes(1)).command(1, { type: 'reset' });
    t.same(bench.describeSince(NOON_MS + Seconds(60)).slice(0, 6), [
      '0 ack 1 ok',
      '0 close',
      '0 disconnect',
      '0 connect',
      '0 cellular RESET',
      '0 cellular NETWORK_PING',
    ]);
    t.equal(bench.state.boot, 1, 'a reset of the modem is not a boot');
    bench.advance(Minutes(1)).handle({ type: 'modem-reset' });
    const kinds = bench.describeSince(NOON_MS + Seconds(120)).slice(0, 3);
    t.same(
      kinds,
      ['0 drop', '0 connect', '0 cellular RESET'],
      'without a command, the connection drops without a close-connection ping',
    );
    const mid = new ModelLock();
    mid.handle({ type: 'modem-reset' }).advance(Minutes(1));
    t.same(mid.describeSince(NOON_MS), ['0 connect', '0 cellular RESET', '20 close', '20 disconnect']);
  },
);

t.test('the GPS receiver is on only while something waits for a fix', async (t) => {
  const bench = new ModelLock();
  bench.handle({ type: 'lock-state', lockState: 'unlocked' }).advance(Hours(1));
  const switched = bench.timedEffects.filter(({ effect }) => effect.type === 'gps-on' || effect.type === 'gps-off');
  t.same(
    switched.map(({ atMs, effect }) => [(atMs - NOON_MS) / 1000, effect.type]),
    [
      [0, 'gps-on'],
      [30, 'gps-off'],
    ],
  );
});

t.test('a fix takes 30 s cold and 5 s warm; after 120 s without a fix the GPS ping is skipped', async (t) => {
  const bench = new ModelLock();
  const change = (lockState: 'locked' | 'unlocked') => bench.handle({ type: 'lock-state', lockState });
  const delays = () =>
    bench.createdUplinks().flatMap(({ body, timeMs }) => (body.kind === 'gps' ? [(timeMs - NOON_MS) / 1000] : []));
  change('unlocked').advance(Minutes(30));
  change('locked').advance(Hours(3));
  change('unlocked').advance(Minutes(30));
  t.same(delays(), [30, 1805, 1800 + 3 * 3600 + 30], 'the receiver is warm within 2 h of the last fix');

  const cellar = new ModelLock({ skyOpen: false });
  cellar.handle({ type: 'lock-state', lockState: 'unlocked' }).advance(Hours(1));
  t.same(cellar.describeSince(NOON_MS), ['0 connect', '0 cellular STATE_PING', '120 close', '120 disconnect']);

  const gate = new ModelLock({ skyOpen: false });
  gate.handle({ type: 'lock-state', lockState: 'unlocked' }).advance(Seconds(60)).handle({ type: 'sky', open: true });
  gate.advance(Minutes(5));
  t.equal(
    gate.createdUplinks().find(({ body }) => body.kind === 'gps')?.timeMs,
    NOON_MS + Seconds(90),
    '30 s under open sky',
  );
});

t.test('a theft through a tunnel: no GPS ping without a fix, and a new search with each cellular ping', async (t) => {
  const bench = new ModelLock();
  bench
    .handle({ type: 'motion', moving: true })
    .advance(Minutes(1))
    .handle({ type: 'sky', open: false })
    .advance(Minutes(3));
  t.equal(bench.state.gps, 'off', 'the search is given up after 120 s');
  bench.advance(Minutes(2)).handle({ type: 'sky', open: true }).advance(Seconds(5));
  const places = bench
    .createdUplinks()
    .filter(({ body }) => body.kind === 'gps')
    .map(({ timeMs }) => (timeMs - NOON_MS) / 1000);
  t.same(
    places,
    [36.001, 46.001, 56.001, 365],
    'a new search starts at 306 s, and a fix comes 5 s after the sky opens',
  );
});

t.test('after losing its fix, the receiver searches for 120 s', async (t) => {
  const bench = new ModelLock();
  bench.handle({ type: 'motion', moving: true }).advance(Seconds(60)).handle({ type: 'sky', open: false });
  bench.advance(Seconds(90)).handle({ type: 'sky', open: true }).advance(Seconds(5));
  t.equal(bench.createdUplinks().at(-1)?.timeMs, NOON_MS + Seconds(155));
});

t.test('a tick without a GPS measurement under an open sky counts as a closed sky', async (t) => {
  const bench = new ModelLock({ power: power({ recovery: true }) });
  bench.command(1, { type: 'locate-gps' });
  bench.nowMs += Seconds(30);
  bench.handle({ type: 'tick', fix: null, cellPosition: null });
  t.equal(bench.state.gps, 'searching');
  bench.advance(Minutes(3));
  t.match(bench.createdUplinks().at(-1)?.body, { commandId: 1, result: 'failed' });
});
