/**
 * Defines the judge in use, which checks what locks do against the protocol's rules, and the record of a lock for which
 * the judge failed (quality.md §2, "an exception while one lock is judged").
 *
 * Nothing that a lock sends makes a correct judge throw. So an exception is a bug in lockgate, and would recur whenever
 * the same event is judged. From then on the lock is not judged: its pings are stored, acknowledged and delivered, its
 * state stays unchanged, and the operator is notified. Other locks are not affected. The lock is judged again when an
 * operator asks for it (`device rejudge`), or at the first start with another version of lockgate.
 */
import { judgeInPlace } from '../../proto/power/judge/judge.js';
import { VERSION } from '../version.js';

/** A judge, and the version of lockgate that it belongs to. */
export interface VersionedJudge {
  readonly judge: typeof judgeInPlace;
  /** The version of lockgate. Another version may have fixed the bug. */
  readonly version: string;
}

/** The real judge. Tests may use another. */
export const CURRENT_JUDGE: VersionedJudge = Object.freeze({ judge: judgeInPlace, version: VERSION });

/** Why a lock is not judged. Stored with the lock's state. */
export interface JudgingStop {
  /** By the run's clock (wall-clock time, except in a sped-up simulation), ms since the epoch. */
  readonly sinceMs: number;
  /** The message of the exception. */
  readonly why: string;
  /** The version of lockgate that failed. */
  readonly version: string;
}

/** The judge threw while a lock's stored uplinks were being judged again. */
export class JudgeFailure extends Error {
  constructor(cause: unknown) {
    super(`the judge failed: ${messageOf(cause)}`, { cause });
    this.name = 'JudgeFailure';
  }
}

const MAX_MESSAGE_CHARS = 300;

/** The message of a thrown value, shortened. */
export function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return [...message].slice(0, MAX_MESSAGE_CHARS).join('');
}
