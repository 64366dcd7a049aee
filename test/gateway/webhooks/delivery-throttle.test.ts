// Pings have priority (quality.md §1): how many webhook attempts may start while very many pings are being stored.
import t from 'tap';
import {
  DeliveryThrottle,
  MIN_ATTEMPTS_PER_SECOND,
  type Throttled,
} from '../../../gateway/webhooks/delivery-throttle.js';
import { ManualClock, Seconds } from '../../../proto/clock.js';

const BATCH = 500;

/** A thread on which pings take `pings` of its time, and each attempt `ATTEMPT_MS`. */
class Thread {
  readonly clock = new ManualClock(1_000_000);
  pings = 1;
  begun = 0;
  #active = 0;
  #idle = 0;
  #spent = 0;

  readonly loopTime = (): { idle: number; active: number } => ({ idle: this.#idle, active: this.#active });

  attempt(): void {
    this.begun += 1;
    this.#spent += ATTEMPT_MS;
  }

  /** Simulates a time, in ms. */
  live(span = 10): void {
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
  readonly pace: DeliveryThrottle;
  readonly thread: Thread;
  begun = 0;

  constructor(pace: DeliveryThrottle, thread: Thread) {
    this.pace = pace;
    this.thread = thread;
  }

  wake(): void {
    // The running attempts of one URL are limited, as in the gateway.
    for (let at = 0; at < 64 && this.pace.freeAttempts(this) > 0; at++) {
      this.pace.attemptStarted(this);
      this.thread.attempt();
      this.begun += 1;
    }
  }
}

function run(thread: Thread, pace: DeliveryThrottle, span: number, uplinks = BATCH): void {
  for (let at = 0; at < span; at += 10) {
    pace.uplinksStored(uplinks);
    thread.live();
  }
}

t.test('while pings use the whole thread, attempts start at the minimum rate, and every URL gets its share', (t) => {
  const thread = new Thread();
  const pace = new DeliveryThrottle(thread);
  const urls = Array.from({ length: 20 }, () => new Url(pace, thread));
  pace.uplinksStored(BATCH);
  for (const url of urls) url.wake();
  run(thread, pace, Seconds(1));
  thread.begun = 0;
  for (const url of urls) url.begun = 0;
  run(thread, pace, Seconds(10));
  t.equal(thread.begun, 10 * MIN_ATTEMPTS_PER_SECOND);
  const each = urls.map(({ begun }) => begun);
  t.ok(Math.max(...each) - Math.min(...each) <= 5, `each started ${Math.min(...each)} to ${Math.max(...each)}`);
  pace.stop();
  t.end();
});

t.test('while pings use half of the thread, attempts use a part of the other half, and some time stays idle', (t) => {
  const thread = new Thread();
  thread.pings = 0.5;
  const pace = new DeliveryThrottle(thread);
  const url = new Url(pace, thread);
  pace.uplinksStored(BATCH);
  url.wake();
  run(thread, pace, Seconds(2));
  thread.begun = 0;
  run(thread, pace, Seconds(10));
  const share = (thread.begun * ATTEMPT_MS) / Seconds(10);
  t.ok(share > 0.1 && share < 0.35, `${share} of the thread`);

  thread.pings = 1;
  run(thread, pace, Seconds(2));
  thread.begun = 0;
  run(thread, pace, Seconds(1));
  t.equal(thread.begun, MIN_ATTEMPTS_PER_SECOND, 'attempts slow down when pings need the time');
  pace.stop();
  t.end();
});

t.test('while pings are few, no attempt is delayed', (t) => {
  const thread = new Thread();
  const pace = new DeliveryThrottle(thread);
  const url = new Url(pace, thread);
  run(thread, pace, Seconds(1), 31);
  t.equal(pace.freeAttempts(url), Number.POSITIVE_INFINITY);
  pace.uplinksStored(32);
  t.not(pace.freeAttempts(url), Number.POSITIVE_INFINITY);
  thread.clock.advance(Seconds(1));
  t.equal(pace.freeAttempts(url), Number.POSITIVE_INFINITY, 'the throttle turns off soon after the last large commit');
  t.equal(thread.clock.pending, 0, 'no timer is left');
  pace.uplinksStored(32);
  pace.stop();
  pace.uplinksStored(32);
  t.equal(pace.freeAttempts(url), Number.POSITIVE_INFINITY);
  t.equal(thread.clock.pending, 0);
  t.end();
});

t.test('few attempts start together, however high the rate is', (t) => {
  const thread = new Thread();
  thread.pings = 0.1;
  const pace = new DeliveryThrottle(thread);
  const urls = Array.from({ length: 20 }, () => new Url(pace, thread));
  pace.uplinksStored(BATCH);
  for (const url of urls) url.wake();
  let [most, all] = [0, 0];
  for (let at = 0; at < Seconds(2); at += 5) {
    const before = thread.begun;
    pace.uplinksStored(BATCH);
    // Half of the grant interval, so that each grant is observed separately.
    thread.live(5);
    most = Math.max(most, thread.begun - before);
    all += thread.begun - before;
  }
  t.ok(all > Seconds(2), `${all} in 2 s`);
  // At 250 µs each: as long as a commit waits for the disk.
  t.ok(most <= 24, `${most} at once`);
  pace.stop();
  t.end();
});
