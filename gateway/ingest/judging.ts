/**
 * The judge in use, and what is recorded about a lock for which it failed (quality.md §2, "an exception while one lock
 * is judged").
 *
 * The judge throws on nothing that a lock sends, so an exception is a bug of ours, and would recur each time the same
 * event is judged. So from then on the lock is not judged: its pings are stored, acknowledged and delivered, its state
 * stays as it was, and the operator is notified. Other locks are not affected. It is judged again when an operator asks
 * for it (`device rejudge`), or at a start with another version of lockgate than the one that failed.
 */
import { judgeInPlace } from '../../proto/power/judge/judge.js';
import { VERSION } from '../version.js';

export interface Judging {
  readonly judge: typeof judgeInPlace;
  /** Lockgate's version. A bug is likely to be fixed in another one. */
  readonly version: string;
}

/** The judge of a real gateway. */
export const JUDGING: Judging = Object.freeze({ judge: judgeInPlace, version: VERSION });

/** Why a lock is not judged. It is stored with the lock's state. */
export interface Unjudged {
  /** By the run's clock, ms since the epoch. */
  readonly sinceMs: number;
  /** The message of the exception. */
  readonly why: string;
  /** The version of lockgate that failed. */
  readonly version: string;
}

/** The judge threw while the log was being replayed. */
export class JudgeFailure extends Error {
  constructor(cause: unknown) {
    super(`the judge failed: ${messageOf(cause)}`, { cause });
    this.name = 'JudgeFailure';
  }
}

/** In characters. */
const WHY_LIMIT = 300;

/** The message of what was thrown, shortened. */
export function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return [...text].slice(0, WHY_LIMIT).join('');
}
