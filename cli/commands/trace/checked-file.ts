import type { TraceFinding } from '../../../proto/trace/check.js';
import type { CoverageCell } from '../../../proto/trace/coverage.js';

/**
 * The findings of one file. It has a file of its own because terminal/junit.ts formats it and checker.ts prints that.
 */
export interface CheckedFile {
  readonly file: string;
  readonly pings: number;
  readonly locks: number;
  readonly findings: readonly TraceFinding[];
  readonly coverage: readonly CoverageCell[] | null;
}
