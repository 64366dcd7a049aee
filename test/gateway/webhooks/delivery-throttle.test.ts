// Pings have priority (quality.md §1): the throttle limits how many webhook attempts may start while very many pings
// are being stored. The test simulates the time of the gateway's main thread.
import t from 'tap';
import {
  DeliveryThrottle,
  MIN_ATTEMPTS_PER_SECOND,
  type Throttled,
} from '../../../gateway/webhooks/delivery-throttle.js';
import { ManualClock, Seconds } from '../../../proto/clock.js';

const UPLINKS_PER_COMMIT = 500;

/** A thread on which storing pings takes the share `pings` of the time, and each webhook attempt `ATTEMPT_MS`. */
class SimulatedThread {
  readonly clock = new ManualClock(1_000_000);
  pings = 1;
  startedAttempts = 0;
  #active = 0;
  #idle = 0;
  #spent = 0;

  readonly loopTime = (): { idle: number; active: number } => ({ idle: this.#idle, active: this.#active });

  attempt(): void {
    this.startedAttempts += 1;
    this.#spent += ATTEMPT_MS;
  }

  /** Simulates a time, in ms. */
  simulate(span = 10): void {
    const busy = Math.min(span, span * this.pings + this.#spent);
    this.#spent = Math.max(0, this.#spent - Math.max(0, span - span * this.pings));
    this.#active += busy;
    this.#idle += span - busy;
    this.clock.advance(span);
  }
}

const ATTEMPT_MS = 0.25;

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
    for (let at = 0; at < 64 && this.throttle.freeAttempts(this) > 0; at++) {
      this.throttle.attemptStarted(this);
      this.thread.attempt();
      this.startedAttempts += 1;
    }
  }
}

/** Simulates a time during which a commit with this many uplinks is stored every 10 ms. */
function run(thread: SimulatedThread, throttle: DeliveryThrottle, span: number, uplinks = UPLINKS_PER_COMMIT): void {
  for (let at = 0; at < span; at += 10) {
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
  const each = urls.map(({ startedAttempts }) => startedAttempts);
  t.ok(Math.max(...each) - Math.min(...each) <= 5, `each started ${Math.min(...each)} to ${Math.max(...each)}`);
  throttle.stop();
  t.end();
});

t.test('while pings use half of the thread, attempts use a part of the other half, and some time stays idle', (t) => {
  const thread = new SimulatedThread();
  thread.pings = 0.5;
  const throttle = new DeliveryThrottle(thread);
  const url = new Url(throttle, thread);
  throttle.uplinksStored(UPLINKS_PER_COMMIT);
  url.wake();
  run(thread, throttle, Seconds(2));
  thread.startedAttempts = 0;
  run(thread, throttle, Seconds(10));
  const share = (thread.startedAttempts * ATTEMPT_MS) / Seconds(10);
  t.ok(share > 0.1 && share < 0.35, `${share} of the thread`);

  thread.pings = 1;
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
  run(thread, throttle, Seconds(1), 31);
  t.equal(throttle.freeAttempts(url), Number.POSITIVE_INFINITY);
  throttle.uplinksStored(32);
  t.not(throttle.freeAttempts(url), Number.POSITIVE_INFINITY);
  thread.clock.advance(Seconds(1));
  t.equal(
    throttle.freeAttempts(url),
    Number.POSITIVE_INFINITY,
    'the throttle turns off soon after the last large commit',
  );
  t.equal(thread.clock.pending, 0, 'no timer is left');
  throttle.uplinksStored(32);
  throttle.stop();
  throttle.uplinksStored(32);
  t.equal(throttle.freeAttempts(url), Number.POSITIVE_INFINITY);
  t.equal(thread.clock.pending, 0);
  t.end();
});

t.test('few attempts start together, however high the rate is', (t) => {
  const thread = new SimulatedThread();
  thread.pings = 0.1;
  const throttle = new DeliveryThrottle(thread);
  const urls = Array.from({ length: 20 }, () => new Url(throttle, thread));
  throttle.uplinksStored(UPLINKS_PER_COMMIT);
  for (const url of urls) url.wake();
  let [maxAtOnce, all] = [0, 0];
  for (let at = 0; at < Seconds(2); at += 5) {
    const before = thread.startedAttempts;
    throttle.uplinksStored(UPLINKS_PER_COMMIT);
    // Half of the grant interval, so that each grant is observed separately.
    thread.simulate(5);
    maxAtOnce = Math.max(maxAtOnce, thread.startedAttempts - before);
    all += thread.startedAttempts - before;
  }
  t.ok(all > Seconds(2), `${all} in 2 s`);
  // At 250 µs each: as long as a commit waits for the disk.
  t.ok(maxAtOnce <= 24, `${maxAtOnce} at once`);
  throttle.stop();
  t.end();
});
