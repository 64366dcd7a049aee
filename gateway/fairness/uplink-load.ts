/**
 * Tells whether locks send very many pings now. Then other work must leave time for them: webhooks are slowed down
 * (../webhooks/delivery-throttle.ts), and the calls of our pages are spread (../http/connections/page-pace.ts).
 *
 * Stored uplinks (messages of locks) fill a bucket of a fixed size, which drains at a fixed rate; uplinks are very many
 * when it is full. So a single large commit shows it at once, and smaller ones do if they follow one another fast.
 * A sudden start shows earlier: in a commit whose uplinks came faster than the bucket drains.
 */
import { type Clock, type Milliseconds, Seconds, systemClock } from '../../proto/clock.js';

/** At this rate, the webhooks of all pings would take most of the main thread's time. */
const DRAINED_PER_SECOND = 6_000;
/** What comes at that rate between two commits, which are up to 13 ms apart (the stores' `commitSpacing`). */
const BUCKET_UPLINKS = 80;
/**
 * A commit with at least this many uplinks is a sudden start if they came faster than {@link DRAINED_PER_SECOND} since
 * the commit before. It is what comes at that rate between two commits of a store on the local disk, which are up to
 * 4 ms apart.
 */
const SUDDEN_UPLINKS = 24;
/** From the last time that the bucket was full until the load counts as low, in real time. */
const HIGH_FOR: Milliseconds = 250;

export class UplinkLoad {
  /** Wall-clock time. */
  readonly #clock: Pick<Clock, 'now'>;
  /** How full the bucket was when the last uplinks were stored, and when that was. */
  #bucketUplinks = 0;
  #storedAtMs = 0;
  /** When the bucket was last full. */
  #lastFullAtMs = Number.NEGATIVE_INFINITY;
  /** When the last sudden start was. */
  #lastSuddenStartAtMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Pick<Clock, 'now'> = systemClock) {
    this.#clock = clock;
  }

  /** Must be called after each commit, with its number of uplinks. Returns whether the bucket is full now. */
  stored(uplinks: number): boolean {
    // What is stored without uplinks says nothing about how fast they come.
    if (uplinks === 0) return false;
    const nowMs = this.#clock.now();
    // `abs`: if the machine's clock was set back, the bucket must not fill by the step.
    const drained = (Math.abs(nowMs - this.#storedAtMs) * DRAINED_PER_SECOND) / Seconds(1);
    this.#storedAtMs = nowMs;
    if (uplinks >= SUDDEN_UPLINKS && uplinks > drained) this.#lastSuddenStartAtMs = nowMs;
    this.#bucketUplinks = Math.min(Math.max(this.#bucketUplinks - drained, 0) + uplinks, BUCKET_UPLINKS);
    const isFull = this.#bucketUplinks === BUCKET_UPLINKS;
    if (isFull) this.#lastFullAtMs = nowMs;
    return isFull;
  }

  /** Whether uplinks are very many, or were a quarter of a second ago. */
  get isHigh(): boolean {
    return this.#isRecent(this.#lastFullAtMs);
  }

  /** Whether uplinks are very many, or a sudden start says that they may soon be. */
  get isHighOrRising(): boolean {
    return this.isHigh || this.#isRecent(this.#lastSuddenStartAtMs);
  }

  #isRecent(atMs: number): boolean {
    // `abs`: if the machine's clock was set back, the load must not count as high until the clock has caught up.
    return Math.abs(this.#clock.now() - atMs) < HIGH_FOR;
  }
}
