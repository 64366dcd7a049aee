// Checks how a lock of `step` becomes silent against protocol.md §2: low battery, airplane mode, no coverage. A
// `ModelLock` runs `step` from noon on; its `describeSince(time)` lists what the lock published or did, each line with
// the seconds since that time.
import t from 'tap';
import { Days, Minutes, Seconds } from '../../../proto/clock.js';
import { ModelLock, NOON_MS, power } from '../../helpers/pair/model-lock.js';

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
    // The first GPS ping came after 6 s of motion and 30 s of search, the second 10 s later. The theft ends 2 min after
    // the motion, which lasts 50 s.
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
