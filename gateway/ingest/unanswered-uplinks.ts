/**
 * Counts the uplinks that were accepted but not answered yet, for each lock, and says when another one must be refused.
 * An uplink is answered with a PUBACK if it is on disk, or with an error, after which its lock sends it again.
 *
 * Called for each uplink: it creates an object only for a lock's first one.
 */
import { LockgateError } from '../../proto/errors.js';
import { MAX_COMMIT_ITEMS } from './commit-draft.js';
import type { Judgeable } from './ingest-queue.js';

/** Uplinks that may wait for a commit. Further uplinks are refused without a PUBACK, so their locks send them again. */
const MAX_WAITING_UPLINKS = 20_000;
/**
 * Maximum number of unanswered uplinks of one lock. A correct lock has one. A faulty lock must not fill the queue: with
 * as many uplinks as fit into one commit, it delays other locks by at most one commit.
 */
export const MAX_UNANSWERED_PER_LOCK = MAX_COMMIT_ITEMS;

/** The number of a lock's unanswered uplinks. */
export interface UnansweredCount {
  count: number;
}

export class UnansweredUplinks {
  readonly #byDeviceId = new Map<number, UnansweredCount>();

  /** The lock's count. A caller that accepts an uplink adds one to it. */
  of(deviceId: number): UnansweredCount {
    const existing = this.#byDeviceId.get(deviceId);
    if (existing !== undefined) return existing;
    const created = { count: 0 };
    this.#byDeviceId.set(deviceId, created);
    return created;
  }

  /** Answers the uplinks among `items`, in order: with `error`, or with a PUBACK if there is none. */
  answer(items: readonly Judgeable[], error?: Error): void {
    for (const item of items) {
      // Nobody waits for an answer to a connect, a tick or another event.
      if (item.type === 'event') continue;
      this.of(item.sender.deviceId).count -= 1;
      item.answer(error);
    }
  }
}

/**
 * Why another uplink of a lock is refused; undefined if it is not. Only new uplinks are refused: waiting ones are never
 * dropped.
 *
 * @param unanswered the lock's count
 * @param waiting the number of uplinks and events of all locks that wait for a commit
 */
export function overloadOf(unanswered: UnansweredCount, waiting: number): LockgateError | undefined {
  if (unanswered.count >= MAX_UNANSWERED_PER_LOCK)
    return new LockgateError('overloaded', `${MAX_UNANSWERED_PER_LOCK} uplinks of this lock wait to be stored`);
  if (waiting < MAX_WAITING_UPLINKS) return undefined;
  return new LockgateError('overloaded', `${MAX_WAITING_UPLINKS} uplinks wait to be stored`);
}
