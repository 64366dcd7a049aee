// Checks `step`, the simulated lock, against protocol.md §1 and §2 when the network fails: retries, buffering and
// discarding of uplinks, overtaking, repeats after a lost connection, and boots.
import t from 'tap';
import { Days, Hours, Minutes, Seconds } from '../../../proto/clock.js';
import { flashDiffers, flashOf } from '../../../proto/power/step/state.js';
import { isTheft } from '../../../proto/power/step/uplinks.js';
import { encodeUplink } from '../../../proto/wire/codec.js';
import { DEFAULT_POWER, type Uplink } from '../../../proto/wire/ping.js';
import { describeEffect, LockBench, MIDNIGHT_MS } from '../../helpers/mqtt/lock-bench.js';

const NOON_MS = MIDNIGHT_MS + Hours(12);
const RECOVERY = { ...DEFAULT_POWER, recovery: true };

function toggle(bench: LockBench): LockBench {
  const lockState = bench.state.lockState === 'locked' ? 'unlocked' : 'locked';
  return bench.give({ type: 'lock-state', lockState });
}

function names(uplinks: readonly Uplink[]): string[] {
  return uplinks.map(({ boot, sequence }) => `${boot}/${sequence}`);
}

function published(bench: LockBench, since = 0): string[] {
  return bench.noted.slice(since).flatMap(({ effect }) => (effect.type === 'publish' ? [describeEffect(effect)] : []));
}

t.test('retries: after 10, 30 and 60 s, then every 5 min ± 20 %', async (t) => {
  const bench = new LockBench({ power: RECOVERY });
  bench.answers = false;
  bench.give({ type: 'modem-reset' }).noted.length = 0;
  bench.pass(Hours(10));
  const tries = bench.noted.filter(({ effect }) => effect.type === 'connect').map(({ atMs }) => atMs);
  const waits = tries.map((atMs, index) => atMs - (tries[index - 1] ?? NOON_MS));
  t.same(waits.slice(0, 3), [Seconds(10), Seconds(30), Seconds(60)]);
  const later = waits.slice(3);
  t.ok(later.length > 90 && later.every((wait) => wait >= Minutes(4) && wait <= Minutes(6)), 'between 4 and 6 min');
  t.ok(new Set(later).size > 80, 'the waits differ');
  t.ok(Math.min(...later) < Minutes(4.2) && Math.max(...later) > Minutes(5.8), 'the waits are spread over that range');
});

t.test('retries: the same jitter seed gives the same waits, another seed gives others', async (t) => {
  const retryTime = (jitterSeed: number) => {
    const bench = new LockBench({ power: RECOVERY, covered: false, jitterSeed });
    bench.pass(Hours(1));
    return bench.state.retryAtMs;
  };
  t.equal(retryTime(5), retryTime(5));
  t.not(retryTime(5), retryTime(6));
});

t.test('retries: without coverage the modem does not try to connect; a new trigger connects at once', async (t) => {
  const bench = new LockBench({ covered: false });
  toggle(bench).pass(Minutes(20));
  t.same(published(bench), []);
  t.notOk(bench.noted.some(({ effect }) => effect.type === 'connect'));
  bench.give({ type: 'coverage', covered: true });
  t.equal(bench.state.link, 'down', 'coverage alone does not make the lock connect');
  toggle(bench);
  t.equal(bench.state.link, 'up');
});

t.test('a lost connection counts as a failure, a closed one does not', async (t) => {
  const bench = new LockBench({ power: RECOVERY });
  bench.pass(Minutes(1)).give({ type: 'disconnected' }).pass(Minutes(1));
  t.same(bench.story(NOON_MS + Seconds(60)), ['10 connect', '10 cellular NETWORK_PING']);
  bench.answers = false;
  bench.give({ type: 'disconnected' }).pass(Minutes(30));
  bench.answers = true;
  bench.pass(Minutes(10)).give({ type: 'disconnected' });
  t.equal(bench.wakeAtMs, bench.nowMs + Seconds(10), 'after a successful connection the first wait is 10 s again');
  bench.pass(Seconds(10)).give({ type: 'coverage', covered: false });
  t.equal(bench.noted.at(-1)?.effect.type, 'drop', 'losing coverage drops the connection');
});

t.test(
  'without coverage uplinks are buffered, and later sent in order with the times at which they were made',
  async (t) => {
    const bench = new LockBench({ covered: false });
    toggle(bench).pass(Minutes(3));
    toggle(bench).pass(Minutes(30));
    t.same(bench.published(), []);
    bench.give({ type: 'coverage', covered: true }).pass(Minutes(10));
    t.same(published(bench), [
      'cellular STATE_PING',
      'gps STATE_PING',
      'cellular STATE_PING',
      'gps STATE_PING',
      'close',
    ]);
    t.same(
      bench
        .published()
        .map(({ timeMs }) => (timeMs - NOON_MS) / 1000)
        .slice(0, 4),
      [0, 30, 180, 185],
    );
    t.same(
      bench.published().map(({ kept }) => kept),
      [0, 1, 2, 3, 0],
      '`kept` is the number of uplinks that waited when this one was made',
    );
  },
);

t.test(
  'one uplink is in flight at a time; a cellular theft ping overtakes waiting uplinks, not the one in flight',
  async (t) => {
    const bench = new LockBench({ covered: false });
    toggle(bench).pass(Minutes(2));
    toggle(bench).pass(Minutes(20));
    bench.acknowledges = false;
    bench.give({ type: 'coverage', covered: true }).pass(Minutes(6));
    t.same(names(bench.published()), ['1/1'], 'no further uplink until this one is acknowledged');
    bench.give({ type: 'motion', moving: true }).pass(Seconds(15));
    bench.acknowledges = true;
    const first = bench.state.waiting[0];
    if (first) bench.acknowledge(first);
    t.same(published(bench).slice(0, 5), [
      'cellular STATE_PING',
      'cellular THEFT',
      'gps STATE_PING',
      'cellular STATE_PING',
      'gps STATE_PING',
    ]);
    t.equal(bench.published()[1]?.kept, 4);
  },
);

t.test('an unacknowledged uplink is sent again on the next connection, with the same bytes', async (t) => {
  const bench = new LockBench();
  bench.acknowledges = false;
  toggle(bench).pass(Seconds(5)).give({ type: 'coverage', covered: false }).pass(Minutes(1));
  bench.give({ type: 'battery', percent: 70 }).give({ type: 'coverage', covered: true });
  bench.acknowledges = true;
  bench.pass(Minutes(10));
  const [first, again] = bench.published();
  t.ok(first && again);
  if (first && again) t.same(encodeUplink(again), encodeUplink(first));
  const stale = bench.state.waiting.length;
  bench.give({ type: 'acknowledged', boot: 1, sequence: 1 });
  t.equal(bench.state.waiting.length, stale, 'a late acknowledgement changes nothing');
});

t.test('a connection without an acknowledgement for 300 s (the keepalive) counts as dead', async (t) => {
  const bench = new LockBench();
  bench.acknowledges = false;
  toggle(bench).pass(Seconds(311));
  t.same(bench.story(NOON_MS).slice(2), ['300 drop', '310 connect', '310 cellular STATE_PING']);
});

t.test(
  'the buffer holds 256 uplinks; beyond that the oldest uplink that is not a theft ping is discarded',
  async (t) => {
    const bench = new LockBench({ covered: false, skyOpen: false });
    bench
      .give({ type: 'motion', moving: true })
      .pass(Seconds(7))
      .give({ type: 'motion', moving: false })
      .pass(Minutes(3));
    for (let change = 0; change < 255; change++) toggle(bench);
    t.equal(bench.state.waiting.length, 256);
    t.equal(bench.state.dropped, 0);
    toggle(bench);
    toggle(bench);
    t.equal(bench.state.waiting.length, 256);
    t.same(names(bench.state.waiting).slice(0, 2), ['1/1', '1/4'], 'the theft ping stays');
    t.same(
      bench
        .made()
        .slice(-3)
        .map(({ dropped, kept }) => [dropped, kept]),
      [
        [0, 255],
        [1, 255],
        [2, 255],
      ],
    );
    bench.give({ type: 'coverage', covered: true }).pass(Hours(1));
    t.equal(bench.published().length, 257, 'the remaining uplinks and the close are sent');
    t.match(bench.published().at(-1), { kept: 0, dropped: 2, body: { kind: 'close_connection' } });
  },
);

t.test('the buffer: among theft pings only, the oldest is discarded, but never the uplink in flight', async (t) => {
  const bench = new LockBench();
  bench.acknowledges = false;
  bench.give({ type: 'motion', moving: true });
  // There are so many changes within the keepalive that the buffer overflows while the first uplink is in flight.
  bench.pass(Seconds(7));
  for (let change = 0; change < 300; change++) toggle(bench);
  t.equal(bench.state.waiting.length, 256);
  t.equal(bench.state.waiting[0]?.sequence, 1, 'in flight');
  bench.give({ type: 'lock-state', lockState: 'locked' }).pass(Hours(3));
  t.ok(bench.state.waiting.every(isTheft), 'hours later only theft pings are left');
  t.equal(bench.state.dropped, bench.state.sequence - 256);
  const sequences = bench.state.waiting.map(({ sequence }) => sequence);
  t.equal(Math.max(...sequences), bench.state.sequence, 'the newest is among them');
});

t.test(
  'after a buffered close-connection ping the lock disconnects, unless the ping is the first uplink of its connection',
  async (t) => {
    const bench = new LockBench({ covered: false });
    toggle(bench)
      .give({ type: 'settings', change: { airplane: true } })
      .pass(Hours(1));
    bench
      .give({ type: 'coverage', covered: true })
      .give({ type: 'settings', change: { airplane: false, recovery: true } });
    bench.pass(Seconds(1));
    t.same(bench.story(NOON_MS + Hours(1)), [
      '0 connect',
      '0 cellular STATE_PING',
      '0 close',
      '0 disconnect',
      '0 connect',
      '0 cellular NETWORK_PING',
      '0 cellular NETWORK_PING',
    ]);

    const first = new LockBench();
    toggle(first).pass(Seconds(40));
    first.acknowledges = false;
    first.pass(Seconds(20)).give({ type: 'disconnected' });
    first.acknowledges = true;
    first.pass(Hours(1));
    const story = first.story(NOON_MS + Seconds(50));
    t.same(
      story,
      ['0 close', '20 connect', '20 close', '20 disconnect'],
      'the ping is the first and only uplink of its connection',
    );
  },
);

t.test('a boot increases the boot counter and restarts the sequence; the flash is preserved', async (t) => {
  const bench = new LockBench({ covered: false });
  toggle(bench)
    .pass(Minutes(1))
    .give({ type: 'settings', change: { mode: 'HIGH' } });
  const before = bench.state;
  bench.give({ type: 'boot' });
  const { state } = bench;
  t.equal(state.boot, 2);
  t.same(names(state.waiting), ['1/1', '1/2'], 'waiting uplinks keep the boot in which they were made');
  t.same({ ...flashOf(state), boot: 1 }, flashOf(before));
  t.ok(flashDiffers(before, state) && !flashDiffers(state, { ...state }));
  bench.give({ type: 'coverage', covered: true }).pass(Minutes(10));
  t.same(names(bench.published()).slice(0, 3), ['1/1', '1/2', '2/1']);

  const revived = new LockBench({ flash: JSON.parse(JSON.stringify(flashOf(before))) });
  t.equal(revived.state.boot, 2, 'a lock that boots from a saved flash continues');
  revived.pass(1);
  t.same(names(revived.published()).slice(0, 2), ['1/1', '1/2']);
});

t.test('a lock still remembers a finished command after a boot', async (t) => {
  const bench = new LockBench({ power: RECOVERY });
  bench.command(1, { type: 'unlock' }).give({ type: 'lock-state', lockState: 'locked' }).give({ type: 'boot' });
  bench.command(1, { type: 'unlock' }).pass(Days(1));
  t.equal(bench.state.lockState, 'locked');
  t.equal(bench.noted.filter(({ effect }) => effect.type === 'unlock').length, 1);
  t.match(
    bench.made().filter(({ body }) => body.kind === 'ack'),
    [{ boot: 1 }, { boot: 2 }],
  );
});
