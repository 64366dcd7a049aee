/**
 * The pace of commits while pings arrive steadily. Each commit has costs that do not depend on its size (an fsync, two
 * messages between threads, a read by each URL's worker), so commits of one ping each would take most of the event
 * loop's time at a thousand pings a second. So only a burst of commits is sent without a wait. After it at most {@link
 * COMMITS_PER_SECOND} are sent, and each has the pings of a few milliseconds. Under a flood a commit takes longer than
 * that by itself, and nothing waits.
 *
 * Only keeps books: it reads no clock.
 */
import { type Milliseconds, Seconds } from '../../proto/clock.js';

/** The pace at which commits are sent while they follow one another for long: one every 4 ms. */
export const COMMITS_PER_SECOND = 250;
/**
 * The number of commits in a burst. With it, a lock that sends its buffered pings one by one, each after the PUBACK of
 * the one before it, waits for none of them.
 */
export const MAX_BURST_COMMITS = 50;

const INTERVAL: Milliseconds = Seconds(1) / COMMITS_PER_SECOND;

export class CommitPace {
  /** When a whole burst is allowed again, by a monotonic clock. Each commit moves this time by one interval. */
  #fullAtMs = Number.NEGATIVE_INFINITY;

  /**
   * How long the next commit should wait; 0 if it may be sent now. A burst of all its commits may start at `#fullAtMs`;
   * a single commit may be sent earlier, by the intervals that the other commits of the burst would need.
   */
  waitAt(nowMs: number): Milliseconds {
    return Math.max(this.#fullAtMs - (MAX_BURST_COMMITS - 1) * INTERVAL - nowMs, 0);
  }

  /** Must be called for each commit that is sent. */
  sent(nowMs: number): void {
    this.#fullAtMs = Math.max(this.#fullAtMs, nowMs) + INTERVAL;
  }
}
