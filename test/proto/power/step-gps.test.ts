// Checks when the GPS receiver of a lock of `step` is on, and what it sends without a fix, against protocol.md §2. A
// `ModelLock` runs `step` from noon on; its `describeSince(time)` lists what the lock published or did, each line with
// the seconds since that time.
import t from 'tap';
import { Hours, Minutes, Seconds } from '../../../proto/clock.js';
import { ModelLock, NOON_MS, power } from '../../helpers/pair/model-lock.js';

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

  // Without a view of the sky there is never a fix.
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
    // The theft starts after 6.001 s, and the first fix takes 30 s.
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
