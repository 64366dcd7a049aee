// Checks `step`, which simulates a lock, against protocol.md §1 and §2 when the network fails: retries, buffering and
// discarding of uplinks, overtaking, repeats after a lost connection, and boots. The expected times and orders follow
// from these sections. A `ModelLock` runs `step` from noon on, with a gateway that answers at once unless the test
// switches that off. `describeSince(time)` lists what the lock did, each with the seconds since that time.
import t from 'tap';
import { Days, Hours, Minutes, Seconds } from '../../../proto/clock.js';
import { flashDiffers, flashOf } from '../../../proto/power/step/state.js';
import { isTheft } from '../../../proto/power/step/uplinks.js';
import { encodeUplink } from '../../../proto/wire/codec.js';
import { DEFAULT_POWER, type Uplink } from '../../../proto/wire/ping.js';
import { describeEffect, MIDNIGHT_MS, ModelLock } from '../../helpers/pair/model-lock.js';

const NOON_MS = MIDNIGHT_MS + Hours(12);
const RECOVERY = { ...DEFAULT_POWER, recovery: true };

/** Locks or unlocks at the lock, which makes the lock send a state ping. */
function changeLockState(lock: ModelLock): ModelLock {
  const lockState = lock.state.lockState === 'locked' ? 'unlocked' : 'locked';
  return lock.handle({ type: 'lock-state', lockState });
}

/** The boots and sequence numbers. */
function keysOf(uplinks: readonly Uplink[]): string[] {
  return uplinks.map(({ boot, sequence }) => `${boot}/${sequence}`);
}

/** The uplinks sent, as text such as `cellular STATE_PING`. */
function publishedTexts(lock: ModelLock, since = 0): string[] {
  return lock.timedEffects
    .slice(since)
    .flatMap(({ effect }) => (effect.type === 'publish' ? [describeEffect(effect)] : []));
}

t.test('retries: after 10, 30 and 60 s, then every 5 min ± 20 %', async (t) => {
  const lock = new ModelLock({ power: RECOVERY });
  lock.gatewayAnswers = false;
  // The restart of the modem ends the connection; the effects up to here do not count.
  lock.handle({ type: 'modem-reset' }).timedEffects.length = 0;
  lock.advance(Hours(10));
  const attempts = lock.timedEffects.filter(({ effect }) => effect.type === 'connect').map(({ atMs }) => atMs);
  const waits = attempts.map((atMs, index) => atMs - (attempts[index - 1] ?? NOON_MS));
  t.same(waits.slice(0, 3), [Seconds(10), Seconds(30), Seconds(60)]);
  const laterWaits = waits.slice(3);
  t.ok(
    // At most 6 min each, so over 90 in ten hours.
    laterWaits.length > 90 && laterWaits.every((wait) => wait >= Minutes(4) && wait <= Minutes(6)),
    'between 4 and 6 min',
  );
  t.ok(new Set(laterWaits).size > 80, 'the waits differ');
  t.ok(
    Math.min(...laterWaits) < Minutes(4.2) && Math.max(...laterWaits) > Minutes(5.8),
    'the waits are spread over that range',
  );
});

t.test('retries: the same jitter seed gives the same waits, another seed gives others', async (t) => {
  const retryTime = (jitterSeed: number) => {
    const lock = new ModelLock({ power: RECOVERY, covered: false, jitterSeed });
    lock.advance(Hours(1));
    return lock.state.retryAtMs;
  };
  t.equal(retryTime(5), retryTime(5));
  t.not(retryTime(5), retryTime(6));
});

t.test('retries: without coverage the modem does not try to connect; a new trigger connects at once', async (t) => {
  const lock = new ModelLock({ covered: false });
  changeLockState(lock).advance(Minutes(20));
  t.same(publishedTexts(lock), []);
  t.notOk(lock.timedEffects.some(({ effect }) => effect.type === 'connect'));
  lock.handle({ type: 'coverage', covered: true });
  t.equal(lock.state.link, 'down', 'coverage alone does not make the lock connect');
  changeLockState(lock);
  t.equal(lock.state.link, 'up');
});

t.test('a lost connection counts as a failure, a closed one does not', async (t) => {
  const lock = new ModelLock({ power: RECOVERY });
  lock.advance(Minutes(1)).handle({ type: 'disconnected' }).advance(Minutes(1));
  t.same(lock.describeSince(NOON_MS + Seconds(60)), ['10 connect', '10 cellular NETWORK_PING']);
  lock.gatewayAnswers = false;
  lock.handle({ type: 'disconnected' }).advance(Minutes(30));
  lock.gatewayAnswers = true;
  lock.advance(Minutes(10)).handle({ type: 'disconnected' });
  t.equal(lock.wakeAtMs, lock.nowMs + Seconds(10), 'after a successful connection the first wait is 10 s again');
  lock.advance(Seconds(10)).handle({ type: 'coverage', covered: false });
  t.equal(lock.timedEffects.at(-1)?.effect.type, 'drop', 'losing coverage drops the connection');
});

t.test(
  'without coverage uplinks are buffered, and later sent in order with the times at which they were made',
  async (t) => {
    const lock = new ModelLock({ covered: false });
    changeLockState(lock).advance(Minutes(3));
    changeLockState(lock).advance(Minutes(30));
    t.same(lock.publishedUplinks(), []);
    lock.handle({ type: 'coverage', covered: true }).advance(Minutes(10));
    t.same(publishedTexts(lock), [
      'cellular STATE_PING',
      'gps STATE_PING',
      'cellular STATE_PING',
      'gps STATE_PING',
      'close',
    ]);
    t.same(
      lock
        .publishedUplinks()
        .map(({ timeMs }) => (timeMs - NOON_MS) / 1000)
        .slice(0, 4),
      // A cold receiver has a fix after 30 s, a warm one after 5 s.
      [0, 30, 180, 185],
    );
    t.same(
      lock.publishedUplinks().map(({ kept }) => kept),
      [0, 1, 2, 3, 0],
      '`kept` is the number of uplinks that waited when this one was made',
    );
  },
);

t.test(
  'one uplink is in flight at a time; a cellular theft ping overtakes waiting uplinks, not the one in flight',
  async (t) => {
    const lock = new ModelLock({ covered: false });
    changeLockState(lock).advance(Minutes(2));
    changeLockState(lock).advance(Minutes(20));
    lock.gatewayAcknowledges = false;
    // The lock retries within 6 min.
    lock.handle({ type: 'coverage', covered: true }).advance(Minutes(6));
    t.same(keysOf(lock.publishedUplinks()), ['1/1'], 'no further uplink until this one is acknowledged');
    lock.handle({ type: 'motion', moving: true }).advance(Seconds(15));
    lock.gatewayAcknowledges = true;
    const first = lock.state.waiting[0];
    if (first) lock.acknowledge(first);
    t.same(publishedTexts(lock).slice(0, 5), [
      'cellular STATE_PING',
      'cellular THEFT',
      'gps STATE_PING',
      'cellular STATE_PING',
      'gps STATE_PING',
    ]);
    t.equal(lock.publishedUplinks()[1]?.kept, 4, 'four uplinks waited when the theft ping was made');
  },
);

t.test('an unacknowledged uplink is sent again on the next connection, with the same bytes', async (t) => {
  const lock = new ModelLock();
  lock.gatewayAcknowledges = false;
  changeLockState(lock).advance(Seconds(5)).handle({ type: 'coverage', covered: false }).advance(Minutes(1));
  lock.handle({ type: 'battery', percent: 70 }).handle({ type: 'coverage', covered: true });
  lock.gatewayAcknowledges = true;
  lock.advance(Minutes(10));
  const [first, again] = lock.publishedUplinks();
  t.ok(first && again);
  if (first && again) t.same(encodeUplink(again), encodeUplink(first));
  const waitingBefore = lock.state.waiting.length;
  lock.handle({ type: 'acknowledged', boot: 1, sequence: 1 });
  t.equal(lock.state.waiting.length, waitingBefore, 'a late acknowledgement changes nothing');
});

t.test('a connection without an acknowledgement for 300 s (the keepalive) counts as dead', async (t) => {
  const lock = new ModelLock();
  lock.gatewayAcknowledges = false;
  // The connection drops after 300 s, and the lock retries 10 s later.
  changeLockState(lock).advance(Seconds(311));
  // After its first connect and ping.
  t.same(lock.describeSince(NOON_MS).slice(2), ['300 drop', '310 connect', '310 cellular STATE_PING']);
});

t.test(
  'the buffer holds 256 uplinks; beyond that the oldest uplink that is not a theft ping is discarded',
  async (t) => {
    const lock = new ModelLock({ covered: false, skyOpen: false });
    lock
      .handle({ type: 'motion', moving: true })
      .advance(Seconds(7))
      .handle({ type: 'motion', moving: false })
      .advance(Minutes(3));
    // With the theft ping, 255 state pings fill the buffer.
    for (let change = 0; change < 255; change++) changeLockState(lock);
    t.equal(lock.state.waiting.length, 256);
    t.equal(lock.state.dropped, 0);
    changeLockState(lock);
    changeLockState(lock);
    t.equal(lock.state.waiting.length, 256);
    t.same(
      keysOf(lock.state.waiting).slice(0, 2),
      ['1/1', '1/4'],
      'the theft ping stays; the two oldest state pings are discarded',
    );
    t.same(
      lock
        .createdUplinks()
        .slice(-3)
        .map(({ dropped, kept }) => [dropped, kept]),
      [
        [0, 255],
        [1, 255],
        [2, 255],
      ],
    );
    lock.handle({ type: 'coverage', covered: true }).advance(Hours(1));
    t.equal(lock.publishedUplinks().length, 257, 'the remaining uplinks and the close are sent');
    t.match(lock.publishedUplinks().at(-1), { kept: 0, dropped: 2, body: { kind: 'close_connection' } });
  },
);

t.test('the buffer: among theft pings only, the oldest is discarded, but never the uplink in flight', async (t) => {
  const lock = new ModelLock();
  lock.gatewayAcknowledges = false;
  lock.handle({ type: 'motion', moving: true });
  // There are so many changes within the keepalive that the buffer overflows while the first uplink is in flight.
  lock.advance(Seconds(7));
  for (let change = 0; change < 300; change++) changeLockState(lock);
  t.equal(lock.state.waiting.length, 256);
  t.equal(lock.state.waiting[0]?.sequence, 1, 'in flight');
  // The lock still moves, so while it is locked it is being stolen.
  lock.handle({ type: 'lock-state', lockState: 'locked' }).advance(Hours(3));
  t.ok(lock.state.waiting.every(isTheft), 'hours later only theft pings are left');
  t.equal(lock.state.dropped, lock.state.sequence - 256);
  const sequences = lock.state.waiting.map(({ sequence }) => sequence);
  t.equal(Math.max(...sequences), lock.state.sequence, 'the newest is among them');
});

t.test(
  'after a buffered close-connection ping the lock disconnects, unless the ping is the first uplink of its connection',
  async (t) => {
    const lock = new ModelLock({ covered: false });
    changeLockState(lock)
      .handle({ type: 'settings', change: { airplane: true } })
      .advance(Hours(1));
    lock
      .handle({ type: 'coverage', covered: true })
      .handle({ type: 'settings', change: { airplane: false, recovery: true } });
    lock.advance(Seconds(1));
    // On each connection the lock makes a network ping. That of the first waits behind the close-connection ping.
    t.same(lock.describeSince(NOON_MS + Hours(1)), [
      '0 connect',
      '0 cellular STATE_PING',
      '0 close',
      '0 disconnect',
      '0 connect',
      '0 cellular NETWORK_PING',
      '0 cellular NETWORK_PING',
    ]);

    const first = new ModelLock();
    changeLockState(first).advance(Seconds(40));
    first.gatewayAcknowledges = false;
    first.advance(Seconds(20)).handle({ type: 'disconnected' });
    first.gatewayAcknowledges = true;
    first.advance(Hours(1));
    const eventLines = first.describeSince(NOON_MS + Seconds(50));
    t.same(
      eventLines,
      ['0 close', '20 connect', '20 close', '20 disconnect'],
      'the ping is the first and only uplink of its connection',
    );
  },
);

t.test('a boot increases the boot counter and restarts the sequence; the flash is preserved', async (t) => {
  const lock = new ModelLock({ covered: false });
  changeLockState(lock)
    .advance(Minutes(1))
    .handle({ type: 'settings', change: { mode: 'HIGH' } });
  const before = lock.state;
  lock.handle({ type: 'boot' });
  const { state } = lock;
  t.equal(state.boot, 2);
  t.same(keysOf(state.waiting), ['1/1', '1/2'], 'waiting uplinks keep the boot in which they were made');
  t.same({ ...flashOf(state), boot: 1 }, flashOf(before));
  t.ok(flashDiffers(before, state) && !flashDiffers(state, { ...state }));
  lock.handle({ type: 'coverage', covered: true }).advance(Minutes(10));
  t.same(keysOf(lock.publishedUplinks()).slice(0, 3), ['1/1', '1/2', '2/1']);

  const fromSavedFlash = new ModelLock({ flash: JSON.parse(JSON.stringify(flashOf(before))) });
  t.equal(fromSavedFlash.state.boot, 2, 'a lock that boots from a saved flash continues');
  fromSavedFlash.advance(1);
  t.same(keysOf(fromSavedFlash.publishedUplinks()).slice(0, 2), ['1/1', '1/2']);
});

t.test('a lock still remembers a finished command after a boot', async (t) => {
  const lock = new ModelLock({ power: RECOVERY });
  lock.command(1, { type: 'unlock' }).handle({ type: 'lock-state', lockState: 'locked' }).handle({ type: 'boot' });
  lock.command(1, { type: 'unlock' }).advance(Days(1));
  t.equal(lock.state.lockState, 'locked');
  t.equal(lock.timedEffects.filter(({ effect }) => effect.type === 'unlock').length, 1);
  t.match(
    lock.createdUplinks().filter(({ body }) => body.kind === 'ack'),
    [{ boot: 1 }, { boot: 2 }],
  );
});
