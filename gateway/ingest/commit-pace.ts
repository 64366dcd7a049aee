/**
 * The pace of commits while pings arrive steadily. Each commit has costs that do not depend on its size (an fsync, two
 * messages between threads, a read by each URL's worker), so commits of one ping each would take most of the event
 * loop's time at a thousand pings a second. Here commits follow one another at once, as long as they are few. Once
 * there were many, each waits until {@link COMMITS_PER_SECOND} is kept, and gathers the pings of a few milliseconds.
 * Under a flood a commit takes longer than that by itself, and nothing waits.
 *
 * Pure bookkeeping: it reads no clock.
 */
import { type Milliseconds, Seconds } from '../../proto/clock.js';

/** The pace at which commits are sent while they follow one another for long: one every 4 ms. */
export const COMMITS_PER_SECOND = 250;
/**
 * So many commits may be sent at once before that pace is kept: a lock that sends its buffered pings one by one, each
 * after the PUBACK of the one before it, waits for none of them.
 */
export const MAX_BURST_COMMITS = 50;

const INTERVAL: Milliseconds = Seconds(1) / COMMITS_PER_SECOND;

export class CommitPace {
  /** When the burst is available in full again, by a monotonic clock. */
  #fullAtMs = Number.NEGATIVE_INFINITY;

  /** How long the next commit should wait; 0 if it may be sent now. */
  waitAt(nowMs: number): Milliseconds {
    return Math.max(this.#fullAtMs - (MAX_BURST_COMMITS - 1) * INTERVAL - nowMs, 0);
  }

  /** Must be called for each commit that is sent. */
  sent(nowMs: number): void {
    this.#fullAtMs = Math.max(this.#fullAtMs, nowMs) + INTERVAL;
  }
}
