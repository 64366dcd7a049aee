/**
 * What judges, and what is known of a lock where that failed (quality.md §2, "an exception while one lock is judged").
 *
 * The judge throws on nothing that a lock sends, so an exception is a mistake of ours, and would come again each time
 * that the same is judged. So the lock is not judged from then on: its pings are stored, acknowledged and delivered,
 * what is believed of it stays as it was, and the operator hears of it. All other locks notice nothing. It is judged
 * again when an operator asks for it (`device rejudge`), or when a start finds another version of lockgate than the one
 * that failed.
 */
import { judgeInPlace } from '../../proto/power/judge/judge.js';
import { VERSION } from '../version.js';

export interface Judging {
  readonly judge: typeof judgeInPlace;
  /** Lockgate's own: a mistake is likely to be mended in another one. */
  readonly version: string;
}

/** What a gateway judges with. */
export const JUDGING: Judging = Object.freeze({ judge: judgeInPlace, version: VERSION });

/** Why a lock is not judged. It is stored with its state. */
export interface Unjudged {
  /** By the run's clock, ms since the epoch. */
  readonly sinceMs: number;
  /** What was thrown, for people. */
  readonly why: string;
  /** The version of lockgate that failed. */
  readonly version: string;
}

/** The judge threw while something was judged once more. */
export class JudgeFailure extends Error {
  constructor(cause: unknown) {
    super(`the judge failed: ${messageOf(cause)}`, { cause });
    this.name = 'JudgeFailure';
  }
}

const WHY_LIMIT = 300;

/** What was thrown, in a line. */
export function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return [...text].slice(0, WHY_LIMIT).join('');
}
