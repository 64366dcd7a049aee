// Checks `step`, which simulates a lock, against protocol.md §2: what a lock does in each state and for each trigger. A
// `ModelLock` runs `step`, from noon on unless stated, with a gateway that answers at once. Its `describeSince(time)`
// lists what the lock did; a line has the seconds since that time, and what the lock then published or did. The
// expected numbers follow from the timings of that section.
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

function power(settings: Partial<PowerSettings>): PowerSettings {
  return { mode: 'MID', rideTracking: true, airplane: false, recovery: false, ...settings };
}

function publishedReasons(lock: ModelLock): Set<string> {
  return new Set(lock.publishedUplinks().map(({ body }) => (body.kind === 'ack' ? 'ack' : body.reason)));
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
    const lock = new ModelLock(STATES[state as EffectiveState]);
    t.equal(lock.state.stateName, state);
    // A theft, a ride and two days: all triggers that need no command occur.
    lock.handle({ type: 'motion', moving: true }).advance(Minutes(1)).command(1, { type: 'siren', seconds: 1 });
    lock.handle({ type: 'lock-state', lockState: 'unlocked' }).advance(Minutes(1));
    lock.handle({ type: 'motion', moving: false }).advance(Days(2));
    const sentReasons = publishedReasons(lock);
    for (const [letter, reason] of columns) {
      t.equal(
        sentReasons.has(reason),
        row.includes(letter),
        `${state}: ${reason} ${row.includes(letter) ? 'is' : 'is not'} sent`,
      );
    }
  }
});

t.test('the states rank in the order airplane, low battery, recovery, HIGH, MID', async (t) => {
  const stateOf = (batteryPercent: number, settings: Partial<PowerSettings>) =>
    new ModelLock({ batteryPercent, power: power(settings) }).state.stateName;
  t.equal(stateOf(5, { airplane: true, recovery: true, mode: 'HIGH' }), 'AIRPLANE');
  t.equal(stateOf(9, { recovery: true, mode: 'HIGH' }), 'LOW_BATTERY');
  t.equal(stateOf(10, { recovery: true, mode: 'HIGH' }), 'RECOVERY', 'exactly 10 % is not low');
  t.equal(stateOf(10, { mode: 'HIGH' }), 'HIGH');
  t.equal(stateOf(10, {}), 'MID');
});

t.test(
  'period: a lock sends once daily at its own minute, a cellular ping at once and a GPS ping with the first fix',
  async (t) => {
    const lock = new ModelLock({ startMs: MIDNIGHT_MS });
    const dueMs = MIDNIGHT_MS + Minutes(periodMinuteOf(MODEL_LOCK_MAC));
    t.equal(lock.wakeAtMs, dueMs, 'nothing else wakes a sleeping lock');
    lock.advance(Days(1));
    t.same(lock.describeSince(dueMs), [
      '0 connect',
      '0 cellular PERIOD_TRACKING',
      '30 gps PERIOD_TRACKING',
      '50 close',
      '50 disconnect',
    ]);
    lock.advance(Days(9));
    const periods = lock.createdUplinks().filter(({ body }) => body.kind === 'cellular');
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
    // 2,400 locks in 24 hours.
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
    t.equal(cellular.length, 1, 'a boot in the same minute does not repeat the ping');
  },
);

t.test('theft: it starts when a locked lock has moved for more than 6 s', async (t) => {
  const lock = new ModelLock();
  lock.handle({ type: 'motion', moving: true }).advance(Seconds(6));
  t.same(lock.createdUplinks(), [], '6 s are not more than 6 s');
  lock.advance(1);
  t.same(lock.describeSince(NOON_MS), ['6.001 connect', '6.001 cellular THEFT']);
  lock.advance(Seconds(51)).handle({ type: 'motion', moving: false }).advance(Minutes(5));
  t.same(lock.describeSince(NOON_MS + Seconds(7)), [
    // The theft started at −0.999 s of this count. 30 s later it has its first fix, then a GPS ping every 10 s while
    // the lock moves (until 50.001 s), and ends after 2 min without motion.
    '29.001 gps THEFT',
    '39.001 gps THEFT',
    '49.001 gps THEFT',
    '170.001 close',
    '170.001 disconnect',
  ]);
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

    const lock = new ModelLock();
    lock.handle({ type: 'motion', moving: true }).advance(Minutes(16));
    const cellular = lock.createdUplinks().filter(({ body }) => body.kind === 'cellular');
    t.same(
      cellular.map(({ timeMs }) => (timeMs - NOON_MS) / 1000),
      [6.001, 306.001, 606.001, 906.001],
    );
    const effectsBefore = lock.timedEffects.length;
    lock.handle({ type: 'lock-state', lockState: 'unlocked' }).advance(Minutes(1));
    const after = lock
      .createdUplinks(effectsBefore)
      .map(({ body }) => (body.kind === 'ack' ? '' : `${body.kind} ${body.reason}`));
    t.same(after.slice(0, 2), ['cellular REASON_STATE_PING', 'cellular REASON_UNLOCKED_MOVEMENT']);
    t.notOk(after.some((line) => line.includes('THEFT')));

    const relocked = new ModelLock({ lockState: 'unlocked', moving: true });
    relocked.advance(Minutes(1)).handle({ type: 'lock-state', lockState: 'locked' }).advance(Seconds(6));
    t.notOk(publishedReasons(relocked).has('REASON_THEFT'), 'the 6 s start when the lock is both locked and moving');
    relocked.advance(1);
    t.ok(publishedReasons(relocked).has('REASON_THEFT'));
  },
);

t.test(
  'state change: each change makes a cellular ping with its lock state; one GPS ping follows for the latest',
  async (t) => {
    const lock = new ModelLock();
    lock.handle({ type: 'lock-state', lockState: 'unlocked' }).advance(Seconds(2));
    lock.handle({ type: 'lock-state', lockState: 'locked' }).advance(Seconds(2));
    lock.handle({ type: 'lock-state', lockState: 'unlocked' }).handle({ type: 'lock-state', lockState: 'unlocked' });
    lock.advance(Minutes(5));
    t.same(lock.describeSince(NOON_MS), [
      '0 connect',
      '0 cellular STATE_PING',
      '2 cellular STATE_PING',
      '4 cellular STATE_PING',
      '30 gps STATE_PING',
      '50 close',
      '50 disconnect',
    ]);
    const lockStates = lock.createdUplinks().map(({ body }) => (body.kind === 'ack' ? '' : body.lockState));
    t.same(lockStates, ['unlocked', 'locked', 'unlocked', 'unlocked', 'unlocked']);
  },
);

t.test('state change: changes in a silent state that cancel each other out are not reported', async (t) => {
  const lock = new ModelLock({ power: power({ airplane: true }) });
  lock.handle({ type: 'lock-state', lockState: 'unlocked' }).advance(Minutes(1));
  lock.handle({ type: 'settings', change: { airplane: false } }).advance(Minutes(1));
  lock.handle({ type: 'lock-state', lockState: 'locked' }).advance(Minutes(1));
  t.same(lock.createdUplinks(), [], 'the last ping reported locked');
  lock.handle({ type: 'lock-state', lockState: 'unlocked' });
  t.equal(lock.createdUplinks().length, 1);
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
  const lock = new ModelLock({ lockState: 'unlocked', power: power({ rideTracking: false }) });
  lock
    .handle({ type: 'motion', moving: true })
    .advance(Minutes(3))
    .command(1, { type: 'set-power', rideTracking: true });
  lock.advance(Seconds(30));
  t.ok(publishedReasons(lock).has('REASON_UNLOCKED_PING'), 'after switching on, the search starts at once');
  lock.command(2, { type: 'set-power', rideTracking: false });
  const effectsBefore = lock.timedEffects.length;
  lock
    .advance(Minutes(1))
    .handle({ type: 'motion', moving: false })
    .advance(Seconds(119))
    .handle({ type: 'motion', moving: true });
  lock.advance(Minutes(10));
  t.notOk(
    lock.createdUplinks(effectsBefore).some(({ body }) => body.kind === 'gps'),
    'no GPS ping after ride tracking is off',
  );
  t.equal(lock.state.link, 'up', 'a stop of under 2 min does not end the ride');
  lock
    .handle({ type: 'motion', moving: false })
    .handle({ type: 'lock-state', lockState: 'locked' })
    .advance(Minutes(1));
  t.equal(lock.state.link, 'down');
  const last = lock.createdUplinks().at(-1)?.body;
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
    const networkPings = high
      .createdUplinks()
      .filter(({ body }) => body.kind !== 'ack' && body.reason === 'REASON_NETWORK_PING');
    t.equal(networkPings.length, 12 * 4, 'four per hour from 07:00 until before 19:00');
    t.equal(networkPings[0]?.timeMs, MIDNIGHT_MS + Hours(7));
    const effectsAtEnd = high.timedEffects
      .filter(({ atMs }) => atMs >= MIDNIGHT_MS + Hours(19))
      .map(({ effect }) => effect.type);
    t.same(effectsAtEnd.slice(0, 3), ['made', 'publish', 'disconnect'], 'the connection closes at 19:00');
  },
);

t.test('the high window may have a UTC offset, cross midnight, or last all day', async (t) => {
  const at = (hour: number, minute = 0) => MIDNIGHT_MS + Hours(hour) + Minutes(minute);
  // 07:00 to 19:00 UTC.
  const day = { fromMinute: 420, toMinute: 1140, utcOffsetMinutes: 0 };
  t.same(
    [at(6, 59), at(7), at(18, 59), at(19)].map((ms) => windowContains(day, ms)),
    [false, true, true, false],
  );
  t.equal(nextWindowEdgeMs(day, at(7)), at(19));
  t.equal(nextWindowEdgeMs(day, at(19)), at(31));
  // The same at UTC+5:30, so 01:30 to 13:30 UTC.
  const delhi = { ...day, utcOffsetMinutes: 330 };
  t.same(
    [at(1, 29), at(1, 30), at(13, 29), at(13, 30)].map((ms) => windowContains(delhi, ms)),
    [false, true, true, false],
  );
  t.equal(nextWindowEdgeMs(delhi, at(0)), at(1, 30));
  // 22:00 to 06:00 at UTC−5, so 03:00 to 11:00 UTC.
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
  const lock = new ModelLock({ power: power({ mode: 'HIGH' }), highWindow: night, startMs: MIDNIGHT_MS });
  lock.advance(Hours(3));
  t.equal(lock.state.link, 'up', 'the lock follows its new window');
});

t.test('low battery: the lock announces it, and then sends only theft pings', async (t) => {
  const lock = new ModelLock();
  lock.handle({ type: 'battery', percent: 10 }).advance(Minutes(1));
  t.same(lock.createdUplinks(), [], 'exactly 10 % is not low');
  lock.handle({ type: 'battery', percent: 9 }).advance(Minutes(1));
  t.same(lock.describeSince(NOON_MS), ['60 connect', '60 close', '60 disconnect'], 'the lock connects to announce it');
  t.match(lock.createdUplinks()[0]?.body, { batteryPercent: 9 });
  const effectsBefore = lock.timedEffects.length;
  lock
    .handle({ type: 'lock-state', lockState: 'unlocked' })
    .handle({ type: 'motion', moving: true })
    .advance(Minutes(1));
  lock.handle({ type: 'modem-reset' }).handle({ type: 'battery', percent: 8 }).advance(Days(2));
  t.same(lock.createdUplinks(effectsBefore), [], 'no state change, ride, period or reset');
  lock
    .handle({ type: 'lock-state', lockState: 'locked' })
    .advance(Minutes(1))
    .command(9, { type: 'siren', seconds: 3 });
  lock.handle({ type: 'motion', moving: false }).advance(Minutes(5));
  const sentReasons = new Set(
    lock.createdUplinks(effectsBefore).map(({ body }) => (body.kind === 'ack' ? 'ack' : body.reason)),
  );
  t.same([...sentReasons], ['REASON_THEFT', 'REASON_CLOSE_CONNECTION'], 'theft pings, but no answer to a command');
  lock.handle({ type: 'battery', percent: 60 }).advance(1);
  t.match(
    lock.publishedUplinks().at(-1)?.body,
    { reason: 'REASON_RESET' },
    'the reset is reported as soon as the state allows it',
  );
});

t.test(
  'low battery during a theft: a theft ping reports it at once, and the close comes after the theft',
  async (t) => {
    const lock = new ModelLock();
    lock
      .handle({ type: 'motion', moving: true })
      .advance(Seconds(40))
      .handle({ type: 'battery', percent: 9 })
      .advance(Seconds(10));
    lock.handle({ type: 'motion', moving: false }).advance(Minutes(3));
    t.same(lock.describeSince(NOON_MS + Seconds(40)), [
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
    const lock = new ModelLock({ power: power({ recovery: true }) });
    lock.advance(Minutes(1)).handle({ type: 'settings', change: { airplane: true } });
    t.same(lock.describeSince(NOON_MS + Seconds(60)), ['0 close', '0 disconnect']);
    t.match(lock.createdUplinks().at(-1), { power: { airplane: true }, body: { kind: 'close_connection' } });
    t.equal(lock.wakeAtMs, Number.POSITIVE_INFINITY, 'no time wakes the lock');
    const effectsBefore = lock.timedEffects.length;
    lock
      .handle({ type: 'motion', moving: true })
      .advance(Days(2))
      .handle({ type: 'lock-state', lockState: 'unlocked' });
    lock.handle({ type: 'modem-reset' }).handle({ type: 'battery', percent: 3 }).advance(Days(2));
    t.same(lock.timedEffects.slice(effectsBefore), []);
    lock.handle({ type: 'battery', percent: 50 }).handle({ type: 'settings', change: { airplane: false } });
    t.equal(lock.state.link, 'up');

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
  const lock = new ModelLock({ power: power({ mode: 'HIGH' }) });
  const highWindow = { fromMinute: 0, toMinute: 60, utcOffsetMinutes: 60 };
  lock.advance(Minutes(1)).command(7, { type: 'set-power', airplane: true, highWindow });
  t.same(lock.describeSince(NOON_MS + Seconds(60)), ['0 ack 7 ok', '0 close', '0 disconnect']);
  t.match(lock.createdUplinks().at(-2), { power: { airplane: true, mode: 'HIGH' }, body: { highWindow } });
  const effectsBefore = lock.timedEffects.length;
  lock.command(8, { type: 'set-power', airplane: false }).advance(Days(2));
  t.same(lock.timedEffects.slice(effectsBefore), []);
  t.ok(lock.state.power.airplane);
});

t.test('a lock that becomes silent without coverage tries once to announce its silence', async (t) => {
  for (const input of [
    { type: 'battery', percent: 4 },
    { type: 'settings', change: { airplane: true } },
  ] as const) {
    const lock = new ModelLock({ covered: false });
    lock.handle(input).advance(Days(3));
    t.equal(lock.wakeAtMs, Number.POSITIVE_INFINITY, `${input.type}: it does not try again`);
    t.equal(lock.state.waiting.length, 1, 'the ping stays in the buffer');
    lock.handle({ type: 'coverage', covered: true }).handle({ type: 'battery', percent: 80 });
    lock.handle({ type: 'settings', change: { airplane: false } }).advance(Minutes(1));
    t.same(
      lock.publishedUplinks().map(({ body }) => body.kind),
      ['close_connection'],
      'the lock sends it when it may speak again',
    );
  }
});

t.test('triggers send in the order theft, state change, ride, period, over one connection', async (t) => {
  const dueMs = MIDNIGHT_MS + Minutes(periodMinuteOf(MODEL_LOCK_MAC));
  const dueTogether = new ModelLock({ startMs: dueMs - Seconds(6) - 1 });
  dueTogether.handle({ type: 'motion', moving: true }).advance(Seconds(6) + 1);
  t.same(dueTogether.describeSince(dueMs), ['0 connect', '0 cellular THEFT', '0 cellular PERIOD_TRACKING']);

  const lock = new ModelLock({ moving: true, startMs: dueMs, power: power({}) });
  t.equal(lock.publishedUplinks()[0]?.body.kind, 'cellular');
  lock.advance(Seconds(10)).handle({ type: 'lock-state', lockState: 'unlocked' }).advance(Seconds(60));
  const order = lock
    .createdUplinks()
    .map(({ body }) => (body.kind === 'ack' ? 'ack' : `${body.kind} ${body.reason.slice('REASON_'.length)}`));
  t.same(order.slice(0, 7), [
    'cellular PERIOD_TRACKING',
    'cellular THEFT',
    'cellular STATE_PING',
    'cellular UNLOCKED_MOVEMENT',
    'gps STATE_PING',
    'gps UNLOCKED_PING',
    'gps PERIOD_TRACKING',
  ]);
  t.equal(lock.timedEffects.filter(({ effect }) => effect.type === 'connect').length, 1);
});

t.test('commands: carried out once, acknowledged each time, rejected after their expiry', async (t) => {
  const lock = new ModelLock({ power: power({ recovery: true }) });
  const sendTwice = (id: number, command: Command) => {
    return lock.command(id, command).command(id, command).advance(Minutes(1));
  };
  sendTwice(1, { type: 'unlock' });
  sendTwice(2, { type: 'siren', seconds: 30 });
  sendTwice(3, { type: 'locate-gps' });
  sendTwice(4, { type: 'locate-cell' });
  sendTwice(5, { type: 'lock' });
  lock.command(6, { type: 'unlock' }, lock.nowMs).command(6, { type: 'unlock' }, lock.nowMs);
  const acks = lock
    .createdUplinks()
    .flatMap(({ body }) => (body.kind === 'ack' ? [`${body.commandId} ${body.result}`] : []));
  const twice = ['1 ok', '2 ok', '3 ok', '4 ok', '5 ok', '6 rejected'].flatMap((ack) => [ack, ack]);
  t.same(acks, twice);
  const count = (type: string) => lock.timedEffects.filter(({ effect }) => effect.type === type).length;
  t.same([count('unlock'), count('siren'), count('tone'), count('lock')], [1, 1, 1, 1]);
  t.equal(lock.state.lockState, 'locked', 'the expired unlock was not carried out');
  const located = lock
    .createdUplinks()
    .filter(({ body }) => body.kind !== 'ack' && /GPS_PING|CELL_PING/.test(body.reason));
  t.match(located, [
    { body: { kind: 'gps', reason: 'REASON_GPS_PING', position: lock.fix.position } },
    { body: { kind: 'cellular', reason: 'REASON_CELL_PING', position: lock.cellPosition } },
  ]);
});

t.test('commands: a tone of 5 s sounds before locking, a state ping follows; an unlock cancels it', async (t) => {
  const lock = new ModelLock({ lockState: 'unlocked', power: power({ recovery: true }) });
  lock.advance(Minutes(1)).command(1, { type: 'lock' }).advance(Seconds(10));
  t.same(lock.describeSince(NOON_MS + Seconds(60)), ['0 tone', '5 lock', '5 cellular STATE_PING', '5 ack 1 ok']);
  lock.command(2, { type: 'unlock' }).command(3, { type: 'lock' }).advance(Seconds(2)).command(4, { type: 'unlock' });
  lock.advance(Seconds(10));
  const acks = lock
    .createdUplinks()
    .flatMap(({ body }) => (body.kind === 'ack' ? [`${body.commandId} ${body.result}`] : []));
  t.same(acks, ['1 ok', '2 ok', '3 failed', '4 ok']);
  t.equal(lock.state.lockState, 'unlocked');
});

t.test(
  'commands: to locate without a fix or a position is acknowledged as failed, and the lock waits for it',
  async (t) => {
    const lock = new ModelLock({ skyOpen: false });
    lock.cellPosition = null;
    lock.handle({ type: 'lock-state', lockState: 'unlocked' }).advance(Seconds(110)).command(1, { type: 'locate-gps' });
    lock.advance(Seconds(119));
    t.equal(lock.state.link, 'up', 'the search keeps the connection open');
    lock.advance(Seconds(1)).command(2, { type: 'locate-cell' }).advance(Seconds(20));
    t.same(lock.describeSince(NOON_MS + Seconds(110)), [
      '120 ack 1 failed',
      '120 ack 2 failed',
      '140 close',
      '140 disconnect',
    ]);
  },
);

t.test('commands: the answer to set-power reports the window in force; an invalid window is rejected', async (t) => {
  const lock = new ModelLock({ power: power({ recovery: true }) });
  lock.command(1, { type: 'set-power', mode: 'HIGH', rideTracking: false });
  t.match(lock.createdUplinks().at(-1), {
    power: { mode: 'HIGH', rideTracking: false, recovery: true },
    body: { result: 'ok', highWindow: { fromMinute: 420, toMinute: 1140, utcOffsetMinutes: 0 } },
  });
  const highWindow = { fromMinute: 0, toMinute: 1440, utcOffsetMinutes: 0 };
  lock.command(2, { type: 'set-power', airplane: true, highWindow });
  t.match(lock.createdUplinks().at(-1)?.body, { result: 'rejected', highWindow: { toMinute: 1140 } });
  t.notOk(lock.state.power.airplane, 'none of its settings was applied');
});

t.test('commands: unfinished commands are answered before the lock becomes silent', async (t) => {
  const lock = new ModelLock({ power: power({ recovery: true }), lockState: 'unlocked', skyOpen: false });
  lock.command(1, { type: 'lock' }).command(2, { type: 'locate-gps' });
  lock.command(3, { type: 'set-power', airplane: true }).advance(Hours(1));
  const acks = lock
    .createdUplinks()
    .flatMap(({ body, power }) => (body.kind === 'ack' ? [`${body.commandId} ${body.result} ${power.airplane}`] : []));
  t.same(acks, ['1 failed false', '2 failed false', '3 ok true']);
  t.equal(lock.state.lockState, 'unlocked');
});

t.test(
  'reset by command: acknowledged, closed, restarted; REASON_RESET comes first on the next connection',
  async (t) => {
    const lock = new ModelLock({ power: power({ recovery: true }) });
    lock.advance(Minutes(1)).command(1, { type: 'reset' });
    t.same(lock.describeSince(NOON_MS + Seconds(60)).slice(0, 6), [
      '0 ack 1 ok',
      '0 close',
      '0 disconnect',
      '0 connect',
      '0 cellular RESET',
      '0 cellular NETWORK_PING',
    ]);
    t.equal(lock.state.boot, 1, 'a reset of the modem is not a boot');
    lock.advance(Minutes(1)).handle({ type: 'modem-reset' });
    const firstActions = lock.describeSince(NOON_MS + Seconds(120)).slice(0, 3);
    t.same(
      firstActions,
      ['0 drop', '0 connect', '0 cellular RESET'],
      'without a command, the connection drops without a close-connection ping',
    );
    const mid = new ModelLock();
    mid.handle({ type: 'modem-reset' }).advance(Minutes(1));
    t.same(mid.describeSince(NOON_MS), ['0 connect', '0 cellular RESET', '20 close', '20 disconnect']);
  },
);

t.test('the GPS receiver is on only while something waits for a fix', async (t) => {
  const lock = new ModelLock();
  lock.handle({ type: 'lock-state', lockState: 'unlocked' }).advance(Hours(1));
  const receiverChanges = lock.timedEffects.filter(
    ({ effect }) => effect.type === 'gps-on' || effect.type === 'gps-off',
  );
  t.same(
    receiverChanges.map(({ atMs, effect }) => [(atMs - NOON_MS) / 1000, effect.type]),
    [
      [0, 'gps-on'],
      [30, 'gps-off'],
    ],
  );
});

t.test('a fix takes 30 s cold and 5 s warm; after 120 s without a fix the GPS ping is skipped', async (t) => {
  const lock = new ModelLock();
  const change = (lockState: 'locked' | 'unlocked') => lock.handle({ type: 'lock-state', lockState });
  const delays = () =>
    lock.createdUplinks().flatMap(({ body, timeMs }) => (body.kind === 'gps' ? [(timeMs - NOON_MS) / 1000] : []));
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

t.test('in a tunnel a stolen lock sends no GPS pings, and each cellular ping starts a new search', async (t) => {
  const lock = new ModelLock();
  lock
    .handle({ type: 'motion', moving: true })
    .advance(Minutes(1))
    .handle({ type: 'sky', open: false })
    .advance(Minutes(3));
  t.equal(lock.state.gps, 'off', 'the search is given up after 120 s');
  lock.advance(Minutes(2)).handle({ type: 'sky', open: true }).advance(Seconds(5));
  const fixTimes = lock
    .createdUplinks()
    .filter(({ body }) => body.kind === 'gps')
    .map(({ timeMs }) => (timeMs - NOON_MS) / 1000);
  t.same(
    fixTimes,
    [36.001, 46.001, 56.001, 365],
    'a new search starts at 306 s, and a fix comes 5 s after the sky opens',
  );
});

t.test('after losing its fix, the receiver searches for 120 s', async (t) => {
  const lock = new ModelLock();
  lock.handle({ type: 'motion', moving: true }).advance(Seconds(60)).handle({ type: 'sky', open: false });
  lock.advance(Seconds(90)).handle({ type: 'sky', open: true }).advance(Seconds(5));
  t.equal(lock.createdUplinks().at(-1)?.timeMs, NOON_MS + Seconds(155));
});

t.test('a tick without a GPS measurement under an open sky counts as a closed sky', async (t) => {
  const lock = new ModelLock({ power: power({ recovery: true }) });
  lock.command(1, { type: 'locate-gps' });
  lock.nowMs += Seconds(30);
  lock.handle({ type: 'tick', fix: null, cellPosition: null });
  t.equal(lock.state.gps, 'searching');
  lock.advance(Minutes(3));
  t.match(lock.createdUplinks().at(-1)?.body, { commandId: 1, result: 'failed' });
});
