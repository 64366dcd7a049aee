/**
 * The pace of commits while pings arrive steadily. Each commit has costs that do not depend on its size (an fsync, two
 * messages between threads, a read by each URL's worker), so commits of one ping each would take most of the event
 * loop's time at a thousand pings a second. So only a burst of small commits is sent without a wait. After it at most
 * {@link COMMITS_PER_SECOND} of them are sent, and each has the pings of a few milliseconds. A commit that has gathered
 * {@link MIN_SHARING_ITEMS} is sent as soon as the one before it is stored: its costs are small for each of its pings,
 * and a longer wait would only delay PUBACKs. Commits of any size use up the burst.
 *
 * Only keeps books: it reads no clock.
 */
import { type Milliseconds, Seconds } from '../../proto/clock.js';

/** The pace at which small commits are sent while they follow one another for long: one every 4 ms. */
export const COMMITS_PER_SECOND = 250;
/**
 * With so many uplinks and events a commit is sent without a wait. From 8,000 pings a second on, most commits gather
 * them within 4 ms. A smaller number costs more CPU time; with 24 to 40 PUBACKs take equally long, with 12 they vary
 * more (docs/decisions.md, 2026-11-30).
 */
export const MIN_SHARING_ITEMS = 32;
/**
 * The number of commits in a burst. With it, a lock that sends its buffered pings one by one, each after the PUBACK of
 * the one before it, waits for none of them.
 */
export const MAX_BURST_COMMITS = 50;

const INTERVAL: Milliseconds = Seconds(1) / COMMITS_PER_SECOND;

export class CommitPace {
  /**
   * When a whole burst is allowed again, by a monotonic clock. Each commit moves this time by one interval, up to the
   * length of a burst ahead of the present: commits that did not wait must not make later ones wait longer.
   */
  #fullAtMs = Number.NEGATIVE_INFINITY;

  /**
   * How long the next commit, which has `items` so far, should wait; 0 if it may be sent now. A burst of all its
   * commits may start at `#fullAtMs`; a single commit may be sent earlier, by the intervals that the other commits of
   * the burst would need.
   */
  waitAt(nowMs: number, items: number): Milliseconds {
    if (items >= MIN_SHARING_ITEMS) return 0;
    return Math.max(this.#fullAtMs - (MAX_BURST_COMMITS - 1) * INTERVAL - nowMs, 0);
  }

  /** Must be called for each commit that is sent. */
  sent(nowMs: number): void {
    this.#fullAtMs = Math.min(Math.max(this.#fullAtMs, nowMs) + INTERVAL, nowMs + MAX_BURST_COMMITS * INTERVAL);
  }
}
