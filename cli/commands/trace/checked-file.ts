import type { TraceFinding } from '../../../proto/trace/check.js';
import type { CoverageCell } from '../../../proto/trace/coverage.js';

/** What was found in one file. */
export interface CheckedFile {
  readonly file: string;
  readonly pings: number;
  readonly locks: number;
  readonly findings: readonly TraceFinding[];
  readonly coverage: readonly CoverageCell[] | null;
}
