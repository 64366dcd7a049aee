// Checks `step`, which simulates a lock, against protocol.md §2: what a lock does in each state, and which trigger
// comes first. A `ModelLock` runs `step`, from noon on unless stated, with a gateway that answers at once. Its
// `describeSince(time)` lists what the lock did; a line has the seconds since that time, and what the lock then
// published or did. The expected numbers follow from the timings of that section. The step-*.test.ts files beside this
// one test triggers, silence, commands and GPS in the same way.
import t from 'tap';
import { Days, Hours, Minutes, Seconds } from '../../../proto/clock.js';
import type { EffectiveState } from '../../../proto/power/model.js';
import { nextWindowEdgeMs, periodMinuteOf, windowContains } from '../../../proto/power/step/reading.js';
import type { PowerSettings } from '../../../proto/wire/ping.js';
import {
  MIDNIGHT_MS,
  MODEL_LOCK_MAC,
  ModelLock,
  type ModelLockOptions,
  power,
  publishedReasons,
} from '../../helpers/pair/model-lock.js';

/** The options that put a lock into each state at noon, with the model's high window (07:00–19:00 UTC). */
const STATES: Record<EffectiveState, ModelLockOptions> = {
  AIRPLANE: { power: power({ airplane: true, recovery: true, mode: 'HIGH' }) },
  LOW_BATTERY: { batteryPercent: 9, power: power({ recovery: true, mode: 'HIGH' }) },
  RECOVERY: { power: power({ recovery: true, mode: 'HIGH' }) },
  HIGH: { power: power({ mode: 'HIGH' }) },
  MID: { power: power({}) },
};

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

t.test('triggers send in the order theft, state change, ride, period, over one connection', async (t) => {
  const dueMs = MIDNIGHT_MS + Minutes(periodMinuteOf(MODEL_LOCK_MAC));
  // A theft starts 1 ms later than 6 s after the first motion, here at the moment of the daily ping.
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
