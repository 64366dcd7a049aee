/**
 * Sums up how a URL's newest attempts went: success rate, duration, last success, last error. Pure: the attempts are
 * arguments. An engine sums them up where it reads them, which may be another thread than that of pings.
 */

/** An attempt. Times are ms since the epoch, wall-clock time. */
export interface AttemptSummary {
  readonly atMs: number;
  readonly durationMs: number;
  /** HTTP status; null if there was no answer. */
  readonly status: number | null;
  /** Why it failed, as a sentence; null if it succeeded. */
  readonly error: string | null;
}

/** Which attempts at a URL are summed up: of its newest, at most `limit`, those that started at `sinceMs` or later. */
export interface SummedAttempts {
  readonly limit: number;
  /** Wall-clock time; 0 for all. */
  readonly sinceMs: number;
}

/** Figures of a URL's newest attempts. */
export interface AttemptFigures {
  /** The number of attempts that the figures are about. */
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

/** Sums up those of the attempts that started at `sinceMs` or later, in any order. */
export function sumUpAttempts(newest: readonly AttemptSummary[], sinceMs = 0): AttemptFigures {
  const attempts = newest.filter(({ atMs }) => atMs >= sinceMs);
  const count = attempts.length;
  // Sorts numbers without a comparison in JavaScript, since pages ask for this again and again.
  const durations = new Float64Array(count);
  let succeeded = 0;
  let lastSuccessAtMs: number | null = null;
  let lastError: AttemptSummary | null = null;
  for (const [index, attempt] of attempts.entries()) {
    const { atMs, durationMs, error } = attempt;
    durations[index] = durationMs;
    if (error === null) {
      succeeded += 1;
      if (lastSuccessAtMs === null || atMs > lastSuccessAtMs) lastSuccessAtMs = atMs;
    } else if (lastError === null || atMs > lastError.atMs) lastError = attempt;
  }
  durations.sort();
  return {
    attempts: count,
    successRate: count === 0 ? null : succeeded / count,
    p95Ms: durations[Math.ceil(count * 0.95) - 1] ?? null,
    lastSuccessAtMs,
    lastError,
  };
}
