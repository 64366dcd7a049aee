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
  const call = (request: Parameters<PagePace['run']>[0] = READ): void =>
    pace.run(request, () => startedMs.push(nowMs()));
  const pass = (span: number): void => {
    for (let passed = 0; passed < span; passed += 1) clock.advance(1);
  };
  return { startedMs, call, pass };
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

t.test('all start at once while pings are few, and after those that still wait', (t) => {
  let isBusy = false;
  const { startedMs, call, pass } = paceAt(() => isBusy);
  call();
  call();
  t.same(startedMs, [0, 0]);
  isBusy = true;
  call();
  call();
  isBusy = false;
  call();
  t.same(startedMs, [0, 0], 'none overtakes');
  pass(Seconds(1));
  t.same(startedMs.slice(2), [PAGE_PAUSE, 2 * PAGE_PAUSE, 3 * PAGE_PAUSE]);
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

t.test('however many calls wait, none waits for long', (t) => {
  const CALLS = 2_000;
  const { startedMs, call, pass } = paceAt(() => true);
  for (let count = 0; count < CALLS; count += 1) call();
  pass(MAX_PAGE_WAIT);
  t.equal(startedMs.length, CALLS);
  const atOnce = Math.max(...startedMs.map((ms) => startedMs.filter((other) => other === ms).length));
  t.ok(atOnce <= 5, `${atOnce} started in one millisecond`);
  // They arrive half as often again as one starts every 40 ms.
  for (let count = 0; count < 100; count += 1) {
    call();
    pass((2 / 3) * PAGE_PAUSE);
  }
  pass(MAX_PAGE_WAIT);
  t.equal(startedMs.length, CALLS + 100);
  t.end();
});

t.test('the load is high from many uplinks until a quarter of a second later, whatever the clock does', (t) => {
  let nowMs = Seconds(1_000);
  const load = new UplinkLoad({ now: () => nowMs });
  t.notOk(load.isHigh);
  t.notOk(load.stored(31));
  t.notOk(load.isHigh, 'a commit of 31');
  nowMs += 10;
  t.ok(load.stored(32), 'a commit of 32');
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
  nowMs -= Seconds(900);
  t.notOk(load.isHigh, 'the clock was set back');
  t.end();
});
