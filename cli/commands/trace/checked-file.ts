import type { TraceFinding } from '../../../proto/trace/check.js';
import type { CoverageCell } from '../../../proto/trace/coverage.js';

/**
 * What `trace check` found in one file. junit.ts formats it, and checker.ts imports junit.ts: a separate file avoids an
 * import cycle.
 */
export interface CheckedFile {
  readonly file: string;
  readonly pings: number;
  readonly locks: number;
  readonly findings: readonly TraceFinding[];
  /** Null without `--coverage`. */
  readonly coverage: readonly CoverageCell[] | null;
}
