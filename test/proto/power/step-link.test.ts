// Checks `step`, the simulated lock, against protocol.md §1 and §2 when the network fails: retries, buffering and
// discarding of uplinks, overtaking, repeats after a lost connection, and boots.
import t from 'tap';
import { Days, Hours, Minutes, Seconds } from '../../../proto/clock.js';
import { flashDiffers, flashOf } from '../../../proto/power/step/state.js';
import { isTheft } from '../../../proto/power/step/uplinks.js';
import { encodeUplink } from '../../../proto/wire/codec.js';
import { DEFAULT_POWER, type Uplink } from '../../../proto/wire/ping.js';
import { describeEffect, MIDNIGHT_MS, ModelLock } from '../../helpers/mqtt/model-lock.js';

const NOON_MS = MIDNIGHT_MS + Hours(12);
const RECOVERY = { ...DEFAULT_POWER, recovery: true };

function toggle(bench: ModelLock): ModelLock {
  const lockState = bench.state.lockState === 'locked' ? 'unlocked' : 'locked';
  return bench.handle({ type: 'lock-state', lockState });
}

function names(uplinks: readonly Uplink[]): string[] {
  return uplinks.map(({ boot, sequence }) => `${boot}/${sequence}`);
}

function published(bench: ModelLock, since = 0): string[] {
  return bench.timedEffects
    .slice(since)
    .flatMap(({ effect }) => (effect.type === 'publish' ? [describeEffect(effect)] : []));
}

t.test('retries: after 10, 30 and 60 s, then every 5 min ± 20 %', async (t) => {
  const bench = new ModelLock({ power: RECOVERY });
  bench.gatewayAnswers = false;
  bench.handle({ type: 'modem-reset' }).timedEffects.length = 0;
  bench.advance(Hours(10));
  const tries = bench.timedEffects.filter(({ effect }) => effect.type === 'connect').map(({ atMs }) => atMs);
  const waits = tries.map((atMs, index) => atMs - (tries[index - 1] ?? NOON_MS));
  t.same(waits.slice(0, 3), [Seconds(10), Seconds(30), Seconds(60)]);
  const later = waits.slice(3);
  t.ok(later.length > 90 && later.every((wait) => wait >= Minutes(4) && wait <= Minutes(6)), 'between 4 and 6 min');
  t.ok(new Set(later).size > 80, 'the waits differ');
  t.ok(Math.min(...later) < Minutes(4.2) && Math.max(...later) > Minutes(5.8), 'the waits are spread over that range');
});

t.test('retries: the same jitter seed gives the same waits, another seed gives others', async (t) => {
  const retryTime = (jitterSeed: number) => {
    const bench = new ModelLock({ power: RECOVERY, covered: false, jitterSeed });
    bench.advance(Hours(1));
    return bench.state.retryAtMs;
  };
  t.equal(retryTime(5), retryTime(5));
  t.not(retryTime(5), retryTime(6));
});

t.test('retries: without coverage the modem does not try to connect; a new trigger connects at once', async (t) => {
  const bench = new ModelLock({ covered: false });
  toggle(bench).advance(Minutes(20));
  t.same(published(bench), []);
  t.notOk(bench.timedEffects.some(({ effect }) => effect.type === 'connect'));
  bench.handle({ type: 'coverage', covered: true });
  t.equal(bench.state.link, 'down', 'coverage alone does not make the lock connect');
  toggle(bench);
  t.equal(bench.state.link, 'up');
});

t.test('a lost connection counts as a failure, a closed one does not', async (t) => {
  const bench = new ModelLock({ power: RECOVERY });
  bench.advance(Minutes(1)).handle({ type: 'disconnected' }).advance(Minutes(1));
  t.same(bench.describeSince(NOON_MS + Seconds(60)), ['10 connect', '10 cellular NETWORK_PING']);
  bench.gatewayAnswers = false;
  bench.handle({ type: 'disconnected' }).advance(Minutes(30));
  bench.gatewayAnswers = true;
  bench.advance(Minutes(10)).handle({ type: 'disconnected' });
  t.equal(bench.wakeAtMs, bench.nowMs + Seconds(10), 'after a successful connection the first wait is 10 s again');
  bench.advance(Seconds(10)).handle({ type: 'coverage', covered: false });
  t.equal(bench.timedEffects.at(-1)?.effect.type, 'drop', 'losing coverage drops the connection');
});

t.test(
  'without coverage uplinks are buffered, and later sent in order with the times at which they were made',
  async (t) => {
    const bench = new ModelLock({ covered: false });
    toggle(bench).advance(Minutes(3));
    toggle(bench).advance(Minutes(30));
    t.same(bench.publishedUplinks(), []);
    bench.handle({ type: 'coverage', covered: true }).advance(Minutes(10));
    t.same(published(bench), [
      'cellular STATE_PING',
      'gps STATE_PING',
      'cellular STATE_PING',
      'gps STATE_PING',
      'close',
    ]);
    t.same(
      bench
        .publishedUplinks()
        .map(({ timeMs }) => (timeMs - NOON_MS) / 1000)
        .slice(0, 4),
      [0, 30, 180, 185],
    );
    t.same(
      bench.publishedUplinks().map(({ kept }) => kept),
      [0, 1, 2, 3, 0],
      '`kept` is the number of uplinks that waited when this one was made',
    );
  },
);

t.test(
  'one uplink is in flight at a time; a cellular theft ping overtakes waiting uplinks, not the one in flight',
  async (t) => {
    const bench = new ModelLock({ covered: false });
    toggle(bench).advance(Minutes(2));
    toggle(bench).advance(Minutes(20));
    bench.gatewayAcknowledges = false;
    bench.handle({ type: 'coverage', covered: true }).advance(Minutes(6));
    t.same(names(bench.publishedUplinks()), ['1/1'], 'no further uplink until this one is acknowledged');
    bench.handle({ type: 'motion', moving: true }).advance(Seconds(15));
    bench.gatewayAcknowledges = true;
    const first = bench.state.waiting[0];
    if (first) bench.acknowledge(first);
    t.same(published(bench).slice(0, 5), [
      'cellular STATE_PING',
      'cellular THEFT',
      'gps STATE_PING',
      'cellular STATE_PING',
      'gps STATE_PING',
    ]);
    t.equal(bench.publishedUplinks()[1]?.kept, 4);
  },
);

t.test('an unacknowledged uplink is sent again on the next connection, with the same bytes', async (t) => {
  const bench = new ModelLock();
  bench.gatewayAcknowledges = false;
  toggle(bench).advance(Seconds(5)).handle({ type: 'coverage', covered: false }).advance(Minutes(1));
  bench.handle({ type: 'battery', percent: 70 }).handle({ type: 'coverage', covered: true });
  bench.gatewayAcknowledges = true;
  bench.advance(Minutes(10));
  const [first, again] = bench.publishedUplinks();
  t.ok(first && again);
  if (first && again) t.same(encodeUplink(again), encodeUplink(first));
  const stale = bench.state.waiting.length;
  bench.handle({ type: 'acknowledged', boot: 1, sequence: 1 });
  t.equal(bench.state.waiting.length, stale, 'a late acknowledgement changes nothing');
});

t.test('a connection without an acknowledgement for 300 s (the keepalive) counts as dead', async (t) => {
  const bench = new ModelLock();
  bench.gatewayAcknowledges = false;
  toggle(bench).advance(Seconds(311));
  t.same(bench.describeSince(NOON_MS).slice(2), ['300 drop', '310 connect', '310 cellular STATE_PING']);
});

t.test(
  'the buffer holds 256 uplinks; beyond that the oldest uplink that is not a theft ping is discarded',
  async (t) => {
    const bench = new ModelLock({ covered: false, skyOpen: false });
    bench
      .handle({ type: 'motion', moving: true })
      .advance(Seconds(7))
      .handle({ type: 'motion', moving: false })
      .advance(Minutes(3));
    for (let change = 0; change < 255; change++) toggle(bench);
    t.equal(bench.state.waiting.length, 256);
    t.equal(bench.state.dropped, 0);
    toggle(bench);
    toggle(bench);
    t.equal(bench.state.waiting.length, 256);
    t.same(names(bench.state.waiting).slice(0, 2), ['1/1', '1/4'], 'the theft ping stays');
    t.same(
      bench
        .createdUplinks()
        .slice(-3)
        .map(({ dropped, kept }) => [dropped, kept]),
      [
        [0, 255],
        [1, 255],
        [2, 255],
      ],
    );
    bench.handle({ type: 'coverage', covered: true }).advance(Hours(1));
    t.equal(bench.publishedUplinks().length, 257, 'the remaining uplinks and the close are sent');
    t.match(bench.publishedUplinks().at(-1), { kept: 0, dropped: 2, body: { kind: 'close_connection' } });
  },
);

t.test('the buffer: among theft pings only, the oldest is discarded, but never the uplink in flight', async (t) => {
  const bench = new ModelLock();
  bench.gatewayAcknowledges = false;
  bench.handle({ type: 'motion', moving: true });
  // There are so many changes within the keepalive that the buffer overflows while the first uplink is in flight.
  bench.advance(Seconds(7));
  for (let change = 0; change < 300; change++) toggle(bench);
  t.equal(bench.state.waiting.length, 256);
  t.equal(bench.state.waiting[0]?.sequence, 1, 'in flight');
  bench.handle({ type: 'lock-state', lockState: 'locked' }).advance(Hours(3));
  t.ok(bench.state.waiting.every(isTheft), 'hours later only theft pings are left');
  t.equal(bench.state.dropped, bench.state.sequence - 256);
  const sequences = bench.state.waiting.map(({ sequence }) => sequence);
  t.equal(Math.max(...sequences), bench.state.sequence, 'the newest is among them');
});

t.test(
  'after a buffered close-connection ping the lock disconnects, unless the ping is the first uplink of its connection',
  async (t) => {
    const bench = new ModelLock({ covered: false });
    toggle(bench)
      .handle({ type: 'settings', change: { airplane: true } })
      .advance(Hours(1));
    bench
      .handle({ type: 'coverage', covered: true })
      .handle({ type: 'settings', change: { airplane: false, recovery: true } });
    bench.advance(Seconds(1));
    t.same(bench.describeSince(NOON_MS + Hours(1)), [
      '0 connect',
      '0 cellular STATE_PING',
      '0 close',
      '0 disconnect',
      '0 connect',
      '0 cellular NETWORK_PING',
      '0 cellular NETWORK_PING',
    ]);

    const first = new ModelLock();
    toggle(first).advance(Seconds(40));
    first.gatewayAcknowledges = false;
    first.advance(Seconds(20)).handle({ type: 'disconnected' });
    first.gatewayAcknowledges = true;
    first.advance(Hours(1));
    const story = first.describeSince(NOON_MS + Seconds(50));
    t.same(
      story,
      ['0 close', '20 connect', '20 close', '20 disconnect'],
      'the ping is the first and only uplink of its connection',
    );
  },
);

t.test('a boot increases the boot counter and restarts the sequence; the flash is preserved', async (t) => {
  const bench = new ModelLock({ covered: false });
  toggle(bench)
    .advance(Minutes(1))
    .handle({ type: 'settings', change: { mode: 'HIGH' } });
  const before = bench.state;
  bench.handle({ type: 'boot' });
  const { state } = bench;
  t.equal(state.boot, 2);
  t.same(names(state.waiting), ['1/1', '1/2'], 'waiting uplinks keep the boot in which they were made');
  t.same({ ...flashOf(state), boot: 1 }, flashOf(before));
  t.ok(flashDiffers(before, state) && !flashDiffers(state, { ...state }));
  bench.handle({ type: 'coverage', covered: true }).advance(Minutes(10));
  t.same(names(bench.publishedUplinks()).slice(0, 3), ['1/1', '1/2', '2/1']);

  const revived = new ModelLock({ flash: JSON.parse(JSON.stringify(flashOf(before))) });
  t.equal(revived.state.boot, 2, 'a lock that boots from a saved flash continues');
  revived.advance(1);
  t.same(names(revived.publishedUplinks()).slice(0, 2), ['1/1', '1/2']);
});

t.test('a lock still remembers a finished command after a boot', async (t) => {
  const bench = new ModelLock({ power: RECOVERY });
  bench.command(1, { type: 'unlock' }).handle({ type: 'lock-state', lockState: 'locked' }).handle({ type: 'boot' });
  bench.command(1, { type: 'unlock' }).advance(Days(1));
  t.equal(bench.state.lockState, 'locked');
  t.equal(bench.timedEffects.filter(({ effect }) => effect.type === 'unlock').length, 1);
  t.match(
    bench.createdUplinks().filter(({ body }) => body.kind === 'ack'),
    [{ boot: 1 }, { boot: 2 }],
  );
});
