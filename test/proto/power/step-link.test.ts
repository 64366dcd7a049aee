// `step` against protocol.md §1 and §2 where the network fails: retries, what is kept and discarded, what overtakes,
// what comes again after a loss, and what a boot leaves.
import t from 'tap';
import { Days, Hours, Minutes, Seconds } from '../../../proto/clock.js';
import { flashDiffers, flashOf } from '../../../proto/power/step/state.js';
import { isTheft } from '../../../proto/power/step/uplinks.js';
import { encodeUplink } from '../../../proto/wire/codec.js';
import { DEFAULT_POWER, type Uplink } from '../../../proto/wire/ping.js';
import { LockBench, MIDNIGHT_MS, tell } from '../../helpers/mqtt/lock-bench.js';

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
  return bench.noted.slice(since).flatMap(({ effect }) => (effect.type === 'publish' ? [tell(effect)] : []));
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
  t.ok(new Set(later).size > 80, 'and not all alike');
  t.ok(Math.min(...later) < Minutes(4.2) && Math.max(...later) > Minutes(5.8), 'spread over the whole of it');
});

t.test('retries: another lock’s dice fall otherwise, the same dice fall the same', async (t) => {
  const waits = (chance: number) => {
    const bench = new LockBench({ power: RECOVERY, covered: false, jitterSeed: chance });
    bench.pass(Hours(1));
    return bench.state.retryAtMs;
  };
  t.equal(waits(5), waits(5));
  t.not(waits(5), waits(6));
});

t.test('retries: without coverage the modem does not even try, and a new trigger does not wait', async (t) => {
  const bench = new LockBench({ covered: false });
  toggle(bench).pass(Minutes(20));
  t.same(published(bench), []);
  t.notOk(bench.noted.some(({ effect }) => effect.type === 'connect'));
  bench.give({ type: 'coverage', covered: true });
  t.equal(bench.state.link, 'down', 'it does not know at once that coverage is back');
  toggle(bench);
  t.equal(bench.state.link, 'up');
});

t.test('a connection that is lost counts as a failure, one that was closed does not', async (t) => {
  const bench = new LockBench({ power: RECOVERY });
  bench.pass(Minutes(1)).give({ type: 'disconnected' }).pass(Minutes(1));
  t.same(bench.story(NOON_MS + Seconds(60)), ['10 connect', '10 cellular NETWORK_PING']);
  bench.answers = false;
  bench.give({ type: 'disconnected' }).pass(Minutes(30));
  bench.answers = true;
  bench.pass(Minutes(10)).give({ type: 'disconnected' });
  t.equal(bench.wakeAtMs, bench.nowMs + Seconds(10), 'after one that worked the waits begin anew');
  bench.pass(Seconds(10)).give({ type: 'coverage', covered: false });
  t.equal(bench.noted.at(-1)?.effect.type, 'drop', 'a lost network is a connection that dies without a word');
});

t.test('without coverage: kept, and sent in order with the time at which each was made', async (t) => {
  const bench = new LockBench({ covered: false });
  toggle(bench).pass(Minutes(3));
  toggle(bench).pass(Minutes(30));
  t.same(bench.published(), []);
  bench.give({ type: 'coverage', covered: true }).pass(Minutes(10));
  t.same(published(bench), ['cellular STATE_PING', 'gps STATE_PING', 'cellular STATE_PING', 'gps STATE_PING', 'close']);
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
    'kept: what waited when it was made',
  );
});

t.test(
  'one uplink is in flight at a time; a theft’s cellular ping overtakes those kept, not the one in flight',
  async (t) => {
    const bench = new LockBench({ covered: false });
    toggle(bench).pass(Minutes(2));
    toggle(bench).pass(Minutes(20));
    bench.acknowledges = false;
    bench.give({ type: 'coverage', covered: true }).pass(Minutes(6));
    t.same(names(bench.published()), ['1/1'], 'nothing more until it is acknowledged');
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

t.test('an unacknowledged uplink comes again after the loss, with the same bytes', async (t) => {
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
  t.equal(bench.state.waiting.length, stale, 'an acknowledgement that is late changes nothing');
});

t.test('a connection on which nothing is acknowledged for the keepalive of 300 s is taken for dead', async (t) => {
  const bench = new LockBench();
  bench.acknowledges = false;
  toggle(bench).pass(Seconds(311));
  t.same(bench.story(NOON_MS).slice(2), ['300 drop', '310 connect', '310 cellular STATE_PING']);
});

t.test('the buffer: 256 uplinks, of which the oldest that is not a theft’s goes first', async (t) => {
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
  t.same(names(bench.state.waiting).slice(0, 2), ['1/1', '1/4'], 'the theft’s stays');
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
  t.equal(bench.published().length, 257, 'the rest is sent, and the close');
  t.match(bench.published().at(-1), { kept: 0, dropped: 2, body: { kind: 'close_connection' } });
});

t.test('the buffer: where all are a theft’s the oldest goes; the one in flight never', async (t) => {
  const bench = new LockBench();
  bench.acknowledges = false;
  bench.give({ type: 'motion', moving: true });
  // The world says so much within the keepalive that the buffer runs over while the first uplink is in flight.
  bench.pass(Seconds(7));
  for (let change = 0; change < 300; change++) toggle(bench);
  t.equal(bench.state.waiting.length, 256);
  t.equal(bench.state.waiting[0]?.sequence, 1, 'in flight');
  bench.give({ type: 'lock-state', lockState: 'locked' }).pass(Hours(3));
  t.ok(bench.state.waiting.every(isTheft), 'hours later only those of the theft are left');
  t.equal(bench.state.dropped, bench.state.sequence - 256);
  const sequences = bench.state.waiting.map(({ sequence }) => sequence);
  t.equal(Math.max(...sequences), bench.state.sequence, 'the newest is among them');
});

t.test(
  'a close-connection ping that was kept: nothing follows it on a connection that had begun before it',
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
    t.same(story, ['0 close', '20 connect', '20 close', '20 disconnect'], 'its connection’s first uplink, and all');
  },
);

t.test('a boot: one more, the sequence anew, and the flash keeps what it must', async (t) => {
  const bench = new LockBench({ covered: false });
  toggle(bench)
    .pass(Minutes(1))
    .give({ type: 'settings', change: { mode: 'HIGH' } });
  const before = bench.state;
  bench.give({ type: 'boot' });
  const { state } = bench;
  t.equal(state.boot, 2);
  t.same(names(state.waiting), ['1/1', '1/2'], 'what was made is kept under its own boot');
  t.same({ ...flashOf(state), boot: 1 }, flashOf(before));
  t.ok(flashDiffers(before, state) && !flashDiffers(state, { ...state }));
  bench.give({ type: 'coverage', covered: true }).pass(Minutes(10));
  t.same(names(bench.published()).slice(0, 3), ['1/1', '1/2', '2/1']);

  const revived = new LockBench({ flash: JSON.parse(JSON.stringify(flashOf(before))) });
  t.equal(revived.state.boot, 2, 'a flash that was written and read boots the same lock');
  revived.pass(1);
  t.same(names(revived.published()).slice(0, 2), ['1/1', '1/2']);
});

t.test('a command that was carried out is remembered through a boot', async (t) => {
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
