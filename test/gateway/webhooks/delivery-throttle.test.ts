/**
 * Pings have priority over webhooks: the throttle limits how many webhook attempts may start while very many pings are
 * being stored, by how much time the gateway's main thread has left. The test simulates that thread.
 */
import t from 'tap';
import {
  DeliveryThrottle,
  MIN_ATTEMPTS_PER_SECOND,
  type Throttled,
} from '../../../gateway/webhooks/delivery-throttle.js';
import { ManualClock, Seconds } from '../../../proto/clock.js';

/** Many: the throttle is on from 80 uplinks (messages of locks) at once, or from 6,000 a second. */
const UPLINKS_PER_COMMIT = 500;
/** How long the thread works on an attempt, ms. */
const ATTEMPT_MS = 0.25;

/** A thread on which storing pings takes the share `pingShare` of the time, and each webhook attempt `ATTEMPT_MS`. */
class SimulatedThread {
  readonly clock = new ManualClock(1_000_000);
  /** 0 to 1. */
  pingShare = 1;
  startedAttempts = 0;
  #activeMs = 0;
  #idleMs = 0;
  /** Work of started attempts that the thread has not done yet. */
  #attemptWorkMs = 0;

  /** The thread's idle and active time so far, ms, as Node measures the event loop. */
  readonly loopTime = (): { idle: number; active: number } => ({ idle: this.#idleMs, active: this.#activeMs });

  attempt(): void {
    this.startedAttempts += 1;
    this.#attemptWorkMs += ATTEMPT_MS;
  }

  /** Passes some time, in which pings come first and attempts get what they leave. */
  simulate(spanMs = 10): void {
    const pingMs = spanMs * this.pingShare;
    const busyMs = Math.min(spanMs, pingMs + this.#attemptWorkMs);
    this.#attemptWorkMs = Math.max(0, this.#attemptWorkMs - (spanMs - pingMs));
    this.#activeMs += busyMs;
    this.#idleMs += spanMs - busyMs;
    this.clock.advance(spanMs);
  }
}

/** The worker of a URL that always has events to send. */
class Url implements Throttled {
  readonly throttle: DeliveryThrottle;
  readonly thread: SimulatedThread;
  startedAttempts = 0;

  constructor(throttle: DeliveryThrottle, thread: SimulatedThread) {
    this.throttle = throttle;
    this.thread = thread;
  }

  wake(): void {
    // The running attempts of one URL are limited, as in the gateway.
    for (let running = 0; running < 64 && this.throttle.freeAttempts(this) > 0; running++) {
      this.throttle.attemptStarted(this);
      this.thread.attempt();
      this.startedAttempts += 1;
    }
  }
}

/** Simulates a time during which a commit with this many uplinks is stored every 10 ms. */
function run(thread: SimulatedThread, throttle: DeliveryThrottle, spanMs: number, uplinks = UPLINKS_PER_COMMIT): void {
  for (let passedMs = 0; passedMs < spanMs; passedMs += 10) {
    throttle.uplinksStored(uplinks);
    thread.simulate();
  }
}

t.test('while pings use the whole thread, attempts start at the minimum rate, and every URL gets its share', (t) => {
  const thread = new SimulatedThread();
  const throttle = new DeliveryThrottle(thread);
  const urls = Array.from({ length: 20 }, () => new Url(throttle, thread));
  throttle.uplinksStored(UPLINKS_PER_COMMIT);
  for (const url of urls) url.wake();
  run(thread, throttle, Seconds(1));
  thread.startedAttempts = 0;
  for (const url of urls) url.startedAttempts = 0;
  run(thread, throttle, Seconds(10));
  t.equal(thread.startedAttempts, 10 * MIN_ATTEMPTS_PER_SECOND);
  const perUrl = urls.map(({ startedAttempts }) => startedAttempts);
  t.same([...new Set(perUrl)], [(10 * MIN_ATTEMPTS_PER_SECOND) / urls.length], 'each URL started as many');
  throttle.stop();
  t.end();
});

t.test('every URL gets its share of grants that cannot be divided evenly', (t) => {
  for (const count of [2, 3, 6, 7]) {
    const thread = new SimulatedThread();
    // The rate rises to 1,012 attempts a second, 20 in each grant, which use a quarter of the thread, and stays there.
    thread.pingShare = 0.3;
    const throttle = new DeliveryThrottle(thread);
    const urls = Array.from({ length: count }, () => new Url(throttle, thread));
    throttle.uplinksStored(UPLINKS_PER_COMMIT);
    for (const url of urls) url.wake();
    run(thread, throttle, Seconds(10));
    const perUrl = urls.map(({ startedAttempts }) => startedAttempts);
    const [least, most] = [Math.min(...perUrl), Math.max(...perUrl)];
    t.ok(least > 1_000 && most <= 1.05 * least, `${count} URLs: ${perUrl.join(', ')} attempts`);
    throttle.stop();
  }
  t.end();
});

t.test('while pings use a quarter of the thread, attempts use a part of the rest, and some time stays idle', (t) => {
  const thread = new SimulatedThread();
  thread.pingShare = 0.25;
  const throttle = new DeliveryThrottle(thread);
  const url = new Url(throttle, thread);
  throttle.uplinksStored(UPLINKS_PER_COMMIT);
  url.wake();
  run(thread, throttle, Seconds(2));
  thread.startedAttempts = 0;
  run(thread, throttle, Seconds(10));
  const share = (thread.startedAttempts * ATTEMPT_MS) / Seconds(10);
  // The throttle keeps the idle share between 40 % and 50 %, and attempts get what is left besides the pings.
  t.ok(share >= 0.25 && share <= 0.35, `${share} of the thread`);

  thread.pingShare = 1;
  run(thread, throttle, Seconds(2));
  thread.startedAttempts = 0;
  run(thread, throttle, Seconds(1));
  t.equal(thread.startedAttempts, MIN_ATTEMPTS_PER_SECOND, 'attempts slow down when pings need the time');
  throttle.stop();
  t.end();
});

t.test('while pings are few, no attempt is delayed', (t) => {
  const thread = new SimulatedThread();
  const throttle = new DeliveryThrottle(thread);
  const url = new Url(throttle, thread);
  const [fewUplinks, manyUplinks] = [59, 80];
  run(thread, throttle, Seconds(1), fewUplinks);
  t.equal(throttle.freeAttempts(url), Number.POSITIVE_INFINITY);
  throttle.uplinksStored(manyUplinks);
  t.not(throttle.freeAttempts(url), Number.POSITIVE_INFINITY);
  thread.clock.advance(Seconds(1));
  t.equal(
    throttle.freeAttempts(url),
    Number.POSITIVE_INFINITY,
    'the throttle turns off soon after the last large commit',
  );
  t.equal(thread.clock.pending, 0, 'no timer is left');
  throttle.uplinksStored(manyUplinks);
  throttle.stop();
  throttle.uplinksStored(manyUplinks);
  t.equal(throttle.freeAttempts(url), Number.POSITIVE_INFINITY, 'a stopped throttle delays nothing');
  t.equal(thread.clock.pending, 0);
  t.end();
});

t.test('many uplinks turn the throttle on in small commits too', (t) => {
  for (const { perSecond, isOn } of [
    { perSecond: 5_000, isOn: false },
    { perSecond: 7_000, isOn: true },
  ]) {
    const thread = new SimulatedThread();
    const throttle = new DeliveryThrottle(thread);
    const url = new Url(throttle, thread);
    // A commit every 4 ms, the pace of small ones.
    for (let commit = 0; commit < 250; commit++) {
      throttle.uplinksStored(perSecond / 250);
      thread.clock.advance(4);
    }
    t.equal(throttle.freeAttempts(url) < Number.POSITIVE_INFINITY, isOn, `${perSecond} uplinks a second`);
    throttle.stop();
  }
  t.end();
});

t.test('a sudden start of many pings turns the throttle on with its second commit', (t) => {
  for (const { afterMs, uplinks, isOn } of [
    { afterMs: 4, uplinks: 40, isOn: true },
    // As many, but at 4,000 a second.
    { afterMs: 10, uplinks: 40, isOn: false },
    // A fast small commit: the pings of a few locks that came together.
    { afterMs: 1, uplinks: 20, isOn: false },
  ]) {
    const thread = new SimulatedThread();
    const throttle = new DeliveryThrottle(thread);
    const url = new Url(throttle, thread);
    thread.clock.advance(Seconds(60));
    throttle.uplinksStored(2);
    t.equal(throttle.freeAttempts(url), Number.POSITIVE_INFINITY, 'the first commit of a start is small');
    thread.clock.advance(afterMs);
    throttle.uplinksStored(uplinks);
    t.equal(throttle.freeAttempts(url) < Number.POSITIVE_INFINITY, isOn, `${uplinks} after ${afterMs} ms`);
    throttle.stop();
  }
  t.end();
});

t.test('what is stored without uplinks does not make their next commit look sudden', (t) => {
  const thread = new SimulatedThread();
  const throttle = new DeliveryThrottle(thread);
  throttle.uplinksStored(40);
  thread.clock.advance(10);
  // The end of a command.
  throttle.uplinksStored(0);
  throttle.uplinksStored(40);
  t.equal(throttle.freeAttempts(new Url(throttle, thread)), Number.POSITIVE_INFINITY);
  throttle.stop();
  t.end();
});

t.test('when very many pings follow a sudden start, attempts begin slowly again', (t) => {
  const thread = new SimulatedThread();
  thread.pingShare = 0.1;
  const throttle = new DeliveryThrottle(thread);
  const url = new Url(throttle, thread);
  const storeAndWake = (uplinks: number): void => {
    throttle.uplinksStored(uplinks);
    if (!throttle.isThrottled(url)) url.wake();
  };
  for (let tick = 0; tick < 50; tick++) {
    storeAndWake(1);
    thread.simulate(4);
    storeAndWake(25);
    thread.simulate(6);
  }
  thread.pingShare = 1;
  storeAndWake(UPLINKS_PER_COMMIT);
  thread.simulate(20);
  const before = thread.startedAttempts;
  run(thread, throttle, 50);
  t.ok(thread.startedAttempts - before <= 10, `${thread.startedAttempts - before} in 50 ms, at most 200 a second`);
  throttle.stop();
  t.end();
});

t.test('if a sudden start is not followed by very many pings, attempts soon keep up with them', (t) => {
  const thread = new SimulatedThread();
  // Busy with other work: the idle share alone would keep the rate at its minimum.
  thread.pingShare = 0.7;
  const throttle = new DeliveryThrottle(thread);
  const url = new Url(throttle, thread);
  for (let tick = 0; tick < 50; tick++) {
    // 25 uplinks 4 ms after one: fast for a moment, 2,600 a second on average.
    throttle.uplinksStored(1);
    thread.simulate(4);
    throttle.uplinksStored(25);
    if (!throttle.isThrottled(url)) url.wake();
    thread.simulate(6);
  }
  t.ok(throttle.freeAttempts(url) < Number.POSITIVE_INFINITY, 'the throttle is on');
  t.ok(thread.startedAttempts > 500, `${thread.startedAttempts} attempts in half a second, where the minimum gives 50`);
  thread.clock.advance(Seconds(1));
  t.equal(throttle.freeAttempts(url), Number.POSITIVE_INFINITY, 'it turns off again');
  t.equal(thread.clock.pending, 0, 'no timer is left');
  t.end();
});

t.test('a machine’s clock that is set back or forward does not turn the throttle on', (t) => {
  for (const stepMs of [-Seconds(3600), -1, Seconds(3600)]) {
    const { clock, loopTime } = new SimulatedThread();
    let nowMs = clock.now();
    const steppedClock = { now: () => nowMs, after: clock.after.bind(clock) };
    const throttle = new DeliveryThrottle({ clock: steppedClock, loopTime });
    const worker: Throttled = { wake: () => undefined };
    throttle.uplinksStored(20);
    nowMs += stepMs;
    throttle.uplinksStored(11);
    t.equal(throttle.freeAttempts(worker), Number.POSITIVE_INFINITY, `${stepMs} ms`);
    throttle.stop();
  }
  t.end();
});

t.test('few attempts start together, however high the rate is', (t) => {
  const thread = new SimulatedThread();
  thread.pingShare = 0.1;
  const throttle = new DeliveryThrottle(thread);
  const urls = Array.from({ length: 20 }, () => new Url(throttle, thread));
  throttle.uplinksStored(UPLINKS_PER_COMMIT);
  for (const url of urls) url.wake();
  let [maxAtOnce, total] = [0, 0];
  // The throttle lets attempts start every 5 ms or more rarely, so each start is observed separately.
  const stepMs = 5;
  for (let passedMs = 0; passedMs < Seconds(2); passedMs += stepMs) {
    const before = thread.startedAttempts;
    throttle.uplinksStored(UPLINKS_PER_COMMIT);
    thread.simulate(stepMs);
    maxAtOnce = Math.max(maxAtOnce, thread.startedAttempts - before);
    total += thread.startedAttempts - before;
  }
  t.ok(total > 2_000, `${total} in 2 s: the rate has risen from the 200 per second that it begins with`);
  // 24 attempts take 6 ms, about as long as a commit waits for the disk.
  t.ok(maxAtOnce <= 24, `${maxAtOnce} at once`);
  throttle.stop();
  t.end();
});
