/**
 * Sums up how a URL's newest attempts went: success rate, duration, last success, last error. Pure: the attempts are
 * arguments.
 */
import type { AttemptSummary } from '../store/contract/webhook-store.js';

/** How many of a URL's newest attempts are summed up. */
export const SUMMED_ATTEMPTS = 500;

/** Figures of a URL's newest attempts. */
export interface AttemptFigures {
  /** The number of attempts that the figures are about; at most {@link SUMMED_ATTEMPTS}. */
  readonly attempts: number;
  /** The share of them that the receiver answered with 2xx, 0 to 1; null without attempts. */
  readonly successRate: number | null;
  /** 95 % of them took at most this long, in ms; null without attempts. */
  readonly p95Ms: number | null;
  /** When the last successful one started, wall-clock time; null if none succeeded. */
  readonly lastSuccessAtMs: number | null;
  /** The last failed one; null if none failed. */
  readonly lastError: AttemptSummary | null;
}

/** Sums up attempts, in any order. */
export function sumUpAttempts(attempts: readonly AttemptSummary[]): AttemptFigures {
  const succeeded = attempts.filter(({ error }) => error === null);
  const failed = attempts.filter(({ error }) => error !== null);
  const durations = attempts.map(({ durationMs }) => durationMs).sort((a, b) => a - b);
  return {
    attempts: attempts.length,
    successRate: attempts.length === 0 ? null : succeeded.length / attempts.length,
    p95Ms: durations[Math.ceil(durations.length * 0.95) - 1] ?? null,
    lastSuccessAtMs: latest(succeeded)?.atMs ?? null,
    lastError: latest(failed) ?? null,
  };
}

function latest(attempts: readonly AttemptSummary[]): AttemptSummary | undefined {
  let found: AttemptSummary | undefined;
  for (const each of attempts) if (found === undefined || each.atMs > found.atMs) found = each;
  return found;
}
