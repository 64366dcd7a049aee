// Checks each trigger of `step` against protocol.md §2: period, theft, state change, ride. A `ModelLock` runs `step`,
// from noon on unless stated; its `describeSince(time)` lists what the lock published or did, each line with the
// seconds since that time.
import t from 'tap';
import { Days, Hours, Minutes, Seconds } from '../../../proto/clock.js';
import { periodMinuteOf } from '../../../proto/power/step/reading.js';
import {
  MIDNIGHT_MS,
  MODEL_LOCK_MAC,
  ModelLock,
  macOf,
  NOON_MS,
  power,
  publishedReasons,
} from '../../helpers/pair/model-lock.js';

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

  // The factory settings have ride tracking on.
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
