/** The result of checking one trace file. file-check.ts makes it, and the formats of the report print it. */

import type { TraceTimelines } from '../../../../gateway/console/timeline/trace-timelines.js';
import type { CoverageCell } from '../../../../proto/trace/coverage.js';
import type { TraceNote } from '../../../../proto/trace/notes.js';
import type { FindingSpool } from './findings/finding-spool.js';

/** Why a file could not be read to its end. Everything before that was checked. */
export interface FileError {
  readonly code: string;
  /** Names the file, the line and what was expected. */
  readonly message: string;
  /** From 1; null if the whole file can't be read. */
  readonly line: number | null;
}

/** The result of one file. */
export interface FileReport {
  readonly file: string;
  /** Whether the file has a trace's header. Without one nothing was checked. */
  readonly isTrace: boolean;
  readonly pings: number;
  readonly locks: number;
  readonly findings: FindingSpool;
  /** Notes about members that the format does not have. */
  readonly notes: readonly TraceNote[];
  /** Members that were not noted because there were too many different ones. */
  readonly notesLeftOut: number;
  /** Why the file could not be read to its end; null if it was. */
  readonly error: FileError | null;
  /** Null without `--coverage`. */
  readonly coverage: readonly CoverageCell[] | null;
  /** Null for reports without a timeline. */
  readonly timelines: TraceTimelines | null;
}
