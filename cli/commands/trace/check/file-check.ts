/** Reads and judges one trace file, and collects what the reports of `trace check` need. Prints nothing. */

import { TraceTimelines } from '../../../../gateway/console/timeline/trace-timelines.js';
import { LockgateError } from '../../../../proto/errors.js';
import { POWER_MODEL } from '../../../../proto/power/model.js';
import { TraceCheck } from '../../../../proto/trace/check.js';
import type { CoverageCell } from '../../../../proto/trace/coverage.js';
import type { FindingSink, TraceFinding } from '../../../../proto/trace/findings.js';
import type { TraceNotes } from '../../../../proto/trace/notes.js';
import type { TraceEvent, TraceHeader } from '../../../../proto/trace/trace.js';
import { sanitizeLine } from '../../../terminal/output.js';
import { ProgressLine } from '../../../terminal/progress-line.js';
import { readTraceFile, UnreadableTrace } from '../trace-file.js';
import type { FileError, FileReport } from './checked-file.js';
import { FindingSpool, type LeftOut } from './findings/finding-spool.js';
import type { SpillFile } from './findings/spill-file.js';
import type { TraceObserver } from './observer.js';

/** What to collect from each file. */
export interface FileCheckOptions extends LeftOut {
  readonly spill: SpillFile;
  readonly withCoverage: boolean;
  readonly withTimelines: boolean;
  readonly observers: readonly TraceObserver[];
}

/** Checks one file. If it can't be read to its end, the report has the error and what was found before. */
export async function reportFile(file: string, options: FileCheckOptions): Promise<FileReport> {
  const findings = new FindingSpool(options.spill, options);
  const timelines = options.withTimelines ? new TraceTimelines(POWER_MODEL) : null;
  const observers: readonly TraceObserver[] =
    timelines === null ? options.observers : [...options.observers, timelines];
  const judgement = new FileJudgement(file, findings, options.withCoverage, observers);
  const error = await judgement.read();
  await judgement.pause();
  for (const observer of observers) await observer.end?.(findings);
  const { pings = 0, locks = 0 } = judgement.check ?? {};
  return {
    ...{ file, pings, locks, findings, error, timelines },
    isTrace: judgement.check !== null,
    notes: judgement.seenNotes?.all() ?? [],
    notesLeftOut: judgement.seenNotes?.leftOut ?? 0,
    coverage: judgement.check?.coverage() ?? null,
  };
}

/** The result of {@link checkFile}. */
export interface CheckedFile {
  readonly file: string;
  readonly pings: number;
  readonly locks: number;
  readonly findings: readonly TraceFinding[];
  /** Null unless the caller wants it. */
  readonly coverage: readonly CoverageCell[] | null;
}

/**
 * Checks one file, with all findings in memory. For tests and measurements; the command calls {@link reportFile}.
 *
 * @throws LockgateError `input-…` if the file can't be read to its end
 */
export async function checkFile(
  file: string,
  { coverage = false, ignore }: { readonly coverage?: boolean; readonly ignore: readonly string[] },
): Promise<CheckedFile> {
  const judgement = new FileJudgement(file, undefined, coverage, []);
  const error = await judgement.read();
  if (error !== null) throw new LockgateError(error.code, error.message);
  const { pings = 0, locks = 0 } = judgement.check ?? {};
  const findings = (judgement.check?.findings() ?? []).filter(({ rule }) => !ignore.includes(rule));
  return { file, pings, locks, findings, coverage: judgement.check?.coverage() ?? null };
}

/** Reads one file and judges it by the rules, line by line; observers follow along. */
class FileJudgement {
  /** Null before the header. */
  check: TraceCheck | null = null;
  seenNotes: TraceNotes | null = null;
  readonly #file: string;
  readonly #sink: FindingSink | undefined;
  readonly #withCoverage: boolean;
  readonly #observers: readonly TraceObserver[];

  /** @param sink receives the findings; without a sink they stay in {@link check} */
  constructor(file: string, sink: FindingSink | undefined, withCoverage: boolean, observers: readonly TraceObserver[]) {
    this.#file = file;
    this.#sink = sink;
    this.#withCoverage = withCoverage;
    this.#observers = observers;
  }

  /** Judges the file to its end, or to the first line that can't be read: then returns the error. */
  async read(): Promise<FileError | null> {
    const text = (): string => `${sanitizeLine(this.#file)}: ${(this.check?.pings ?? 0).toLocaleString('en-US')} pings`;
    const progress = new ProgressLine(text);
    try {
      await readTraceFile(this.#file, this);
    } catch (error) {
      if (!(error instanceof UnreadableTrace)) throw error;
      return { code: error.code, message: error.message, line: error.line };
    } finally {
      progress.end();
    }
    return null;
  }

  notes(notes: TraceNotes): void {
    this.seenNotes = notes;
  }

  header(header: TraceHeader): void {
    // No observer of the judge itself: those of this file follow the trace's events.
    this.check = new TraceCheck(POWER_MODEL, header, this.#withCoverage, null, this.#sink);
    const sink = this.#sink;
    if (sink !== undefined) for (const observer of this.#observers) observer.header?.(header, sink);
  }

  /** Called after each chunk of the file: lets the observers catch up, such as with a second file that they read. */
  async pause(): Promise<void> {
    for (const observer of this.#observers) await observer.pause?.();
  }

  event(event: TraceEvent, line: number): void {
    this.check?.judge(event, line);
    for (const observer of this.#observers) observer.event?.(event, line);
  }
}
