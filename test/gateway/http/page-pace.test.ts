/** The calls of our pages are spread while locks send very many pings, so that pings need not wait for all of them. */
import t from 'tap';
import { UplinkLoad } from '../../../gateway/fairness/uplink-load.js';
import { MAX_PAGE_WAIT, PAGE_PAUSE, PagePace } from '../../../gateway/http/connections/page-pace.js';
import { ManualClock, Seconds } from '../../../proto/clock.js';

/** What a page asks for. */
const READ = { method: 'GET', headers: { 'x-lockgate-console': '1' } };

/** A pace, and when each call started: ms since the beginning. */
function paceAt(isBusy: () => boolean) {
  const clock = new ManualClock(Seconds(1));
  const nowMs = (): number => clock.now() - Seconds(1);
  const startedMs: number[] = [];
  const pace = new PagePace({ isBusy, clock, monotonic: nowMs });
  /** How long each call waited, in the order of their starts. */
  const waits: number[] = [];
  const call = (request: Parameters<PagePace['run']>[0] = READ): (() => void) => {
    const calledAtMs = nowMs();
    return pace.run(request, () => {
      startedMs.push(nowMs());
      waits.push(nowMs() - calledAtMs);
    });
  };
  const pass = (span: number): void => {
    for (let passed = 0; passed < span; passed += 1) clock.advance(1);
  };
  return { pace, clock, startedMs, waits, call, pass };
}

t.test('the calls of a screen start one after another while pings are very many', (t) => {
  const { startedMs, call, pass } = paceAt(() => true);
  for (let count = 0; count < 4; count += 1) call();
  t.same(startedMs, [0], 'the first starts at once');
  pass(Seconds(1));
  t.same(startedMs, [0, PAGE_PAUSE, 2 * PAGE_PAUSE, 3 * PAGE_PAUSE]);
  call();
  t.equal(startedMs.at(-1), Seconds(1), 'a call after a pause starts at once');
  t.end();
});

t.test('all start at once while pings are few, and as soon as they are few again', (t) => {
  let isBusy = false;
  const { startedMs, call, pass, clock } = paceAt(() => isBusy);
  call();
  call();
  t.same(startedMs, [0, 0]);
  isBusy = true;
  for (let count = 0; count < 5; count += 1) call();
  t.same(startedMs, [0, 0]);
  isBusy = false;
  call();
  t.same(startedMs, Array(8).fill(0), 'a call lets those before it start too');
  isBusy = true;
  for (let count = 0; count < 5; count += 1) call();
  isBusy = false;
  pass(PAGE_PAUSE);
  t.same(startedMs.slice(8), Array(5).fill(PAGE_PAUSE), 'the next turn is everybody’s');
  t.equal(clock.pending, 0, 'no timer is left');
  t.end();
});

t.test('a call whose connection has closed takes no turn, and a stop starts what waits', (t) => {
  const { startedMs, call, pass, pace, clock } = paceAt(() => true);
  const [giveUpStarted, giveUp] = [call(), call()];
  call();
  giveUp();
  giveUpStarted();
  pass(Seconds(1));
  t.same(startedMs, [0, PAGE_PAUSE]);
  call();
  call()();
  t.equal(clock.pending, 0, 'no timer is left');
  call();
  pace.stop();
  t.equal(startedMs.length, 4);
  t.equal(clock.pending, 0, 'no timer is left');
  t.end();
});

t.test('changes and the calls of programs start at once, and delay no page', (t) => {
  const { startedMs, call, pass } = paceAt(() => true);
  call();
  call({ method: 'POST', headers: READ.headers });
  call({ method: 'GET', headers: {} });
  t.same(startedMs, [0, 0, 0]);
  pass(PAGE_PAUSE);
  call();
  t.equal(startedMs.at(-1), PAGE_PAUSE);
  t.end();
});

t.test('however many calls wait, none waits for longer than half a second', (t) => {
  /** Calls that come at once, and the time between those that follow. */
  for (const [burst, every] of [
    [120, 40],
    [120, 100],
    [60, 10],
    [2_000, 40],
    [1, 2 / 3],
  ] as const) {
    const { waits, startedMs, call, pass } = paceAt(() => true);
    for (let count = 0; count < burst; count += 1) call();
    let further = 0;
    for (let ms = 1; ms <= Seconds(2); ms += 1) {
      for (; further * every < ms; further += 1) call();
      pass(1);
    }
    pass(MAX_PAGE_WAIT);
    const what = `${burst} calls, then one every ${every.toFixed(1)} ms`;
    t.equal(waits.length, burst + further, what);
    t.ok(Math.max(...waits) <= MAX_PAGE_WAIT + 1, `${what}: one waited for ${Math.max(...waits)} ms`);
    const most = Math.ceil((1.5 * burst) / MAX_PAGE_WAIT + 2 / every) + 1;
    const later = startedMs.filter((ms) => ms > 0);
    const perMs = new Map<number, number>();
    for (const ms of later) perMs.set(ms, (perMs.get(ms) ?? 0) + 1);
    const atOnce = Math.max(...perMs.values());
    t.ok(atOnce <= most, `${what}: ${atOnce} started in one millisecond, at most ${most} expected`);
  }
  t.end();
});

t.test('the load is high from many uplinks until a quarter of a second later, whatever the clock does', (t) => {
  let nowMs = Seconds(1_000);
  const load = new UplinkLoad({ now: () => nowMs });
  t.notOk(load.isHigh);
  t.notOk(load.stored(79));
  t.notOk(load.isHigh, 'a commit of 79');
  nowMs += 20;
  t.ok(load.stored(80), 'a commit of 80');
  nowMs += 249;
  t.ok(load.isHigh);
  nowMs += 1;
  t.notOk(load.isHigh);
  for (let ms = 0; ms < 100; ms += 1) {
    nowMs += 1;
    load.stored(5);
  }
  t.notOk(load.isHigh, '5,000 a second, one by one');
  for (let ms = 0; ms < 100; ms += 1) {
    nowMs += 1;
    load.stored(7);
  }
  t.ok(load.isHigh, '7,000 a second');
  nowMs += Seconds(1);
  for (let commit = 0; commit < 100; commit += 1) {
    nowMs += 13;
    load.stored(13 * 5);
  }
  t.notOk(load.isHigh, '5,000 a second in commits every 13 ms, as on PostgreSQL');
  nowMs -= Seconds(900);
  t.notOk(load.isHigh, 'the clock was set back');
  t.end();
});
