/**
 * The pace of commits while pings arrive steadily. Each commit has costs that do not depend on its size (an fsync, two
 * messages between threads or a way to the database and back, a read by each URL's worker), so commits of one ping each
 * would take most of the event loop's time at a thousand pings a second. So only a burst of small commits is sent
 * without a wait. After it they are sent at a fixed rate, and each has the pings of some milliseconds. A commit that
 * many items share is sent as soon as the one before it is stored: its costs are small for each of its pings, and a
 * longer wait would only delay PUBACKs. Commits of any size use up the burst. The store says what rate and how many
 * items fit its costs.
 *
 * Only keeps books: it reads no clock.
 */
import { type Milliseconds, Seconds } from '../../proto/clock.js';
import type { CommitSpacing } from '../store/contract/log/commit-spacing.js';

/**
 * The number of commits in a burst. With it, a lock that sends its buffered pings one by one, each after the PUBACK of
 * the one before it, waits for none of them.
 */
export const MAX_BURST_COMMITS = 50;

export class CommitPace {
  readonly #interval: Milliseconds;
  readonly #minSharingItems: number;
  /**
   * When a whole burst is allowed again, by a monotonic clock. Each commit moves this time by one interval, up to the
   * length of a burst ahead of the present: commits that did not wait must not make later ones wait longer.
   */
  #fullAtMs = Number.NEGATIVE_INFINITY;

  constructor({ commitsPerSecond, minSharingItems }: CommitSpacing) {
    this.#interval = Seconds(1) / commitsPerSecond;
    this.#minSharingItems = minSharingItems;
  }

  /**
   * How long the next commit, which has `items` so far, should wait; 0 if it may be sent now. A burst of all its
   * commits may start at `#fullAtMs`; a single commit may be sent earlier, by the intervals that the other commits of
   * the burst would need.
   */
  waitAt(nowMs: number, items: number): Milliseconds {
    if (items >= this.#minSharingItems) return 0;
    return Math.max(this.#fullAtMs - (MAX_BURST_COMMITS - 1) * this.#interval - nowMs, 0);
  }

  /** Must be called for each commit that is sent. */
  sent(nowMs: number): void {
    this.#fullAtMs = Math.min(
      Math.max(this.#fullAtMs, nowMs) + this.#interval,
      nowMs + MAX_BURST_COMMITS * this.#interval,
    );
  }
}
