/**
 * Runs a fleet without a gateway and without waiting, and writes its trace to a file: all uplinks (messages of locks)
 * and connections, as JSON Lines (interfaces.md §4).
 */
import { areAlone, VirtualRun } from '../../../firmware-sim/fleet/virtual-run.js';
import { VirtualTrace, type VirtualTraceOptions } from '../../../firmware-sim/fleet/virtual-trace.js';
import { LineRecorder } from '../../../firmware-sim/trace/line-recorder.js';
import { Days, monotonicMs, Seconds } from '../../../proto/clock.js';
import { DATE_EXPECTED, parseDate } from '../../../proto/date.js';
import { LockgateError } from '../../../proto/errors.js';
import { isDatable } from '../../../proto/wire/ping-json.js';
import type { Interruption } from '../../terminal/interrupt.js';
import { LineSink } from '../../terminal/line-sink.js';
import { print, printNote } from '../../terminal/output.js';
import { ProgressLine } from '../../terminal/progress-line.js';
import { advanceInSlices } from '../../terminal/run-slices.js';
import { type BugNote, bugNotes, printBugNotes } from './bug-notes.js';
import type { FleetPlan, SimFlags } from './flags.js';
import { JobsRun } from './jobs.js';
import {
  DEFAULT_DAYS,
  DEFAULT_LOCKS,
  DEFAULT_START,
  describeRun,
  plural,
  repeatCommand,
  runToJson,
} from './summary.js';
import { virtualOptions } from './virtual-options.js';

/**
 * Runs the fleet and prints a summary: to stderr if the trace goes to the standard output.
 *
 * @throws LockgateError `input-…` for a wrong date or file
 */
export async function runVirtually(flags: SimFlags, plan: FleetPlan, interrupted: Interruption): Promise<void> {
  const locks = flags.locks ?? DEFAULT_LOCKS;
  const days = flags.days ?? DEFAULT_DAYS;
  const startMs = readStart(flags.start ?? DEFAULT_START, days);
  if (!flags.json) printNote(describeRun(flags, locks));
  const sink = flags.out === undefined ? undefined : new LineSink(flags.out === '-' ? undefined : flags.out);
  const startedAtMs = monotonicMs();
  const options = virtualOptions(flags, plan, startMs);
  const notes = notesOf(options);
  if (!flags.json) printBugNotes(notes, locks);
  const made = await simulate(flags, options, sink && ((lines) => sink.writeBytes(lines)), interrupted.signal);
  sink?.end();
  report(flags, made, notes, (monotonicMs() - startedAtMs) / Seconds(1));
  if (!interrupted.signal.aborted) return;
  printNote(`Interrupted after ${made.progress}${sink === undefined ? '.' : ': the trace ends there.'}`);
  process.exitCode = interrupted.exitCode;
}

/** What a run has made, and how far it is, in words. */
interface Made {
  readonly connections: number;
  readonly uplinks: number;
  readonly progress: string;
}

type Write = ((lines: Uint8Array) => void) | undefined;

/** Simulates to the end, or until `signal` fires: in threads, lock by lock, or all locks together. */
async function simulate(flags: SimFlags, options: VirtualTraceOptions, write: Write, signal: AbortSignal) {
  const canBeShared = areAlone(options);
  if (!canBeShared && (flags.jobs ?? 1) > 1)
    printNote('The locks of this run affect each other: it has one thread, whatever --jobs says.');
  if (canBeShared && (flags.jobs ?? 1) > 1) return await simulateInThreads(flags, options, write, signal);
  return canBeShared && write === undefined
    ? await countLockByLock(options, signal)
    : await simulateTogether(options, write, signal);
}

async function simulateInThreads(
  flags: SimFlags,
  options: VirtualTraceOptions,
  write: Write,
  signal: AbortSignal,
): Promise<Made> {
  const run = new JobsRun(flags, options, write !== undefined);
  const progressText = (): string => {
    return write === undefined ? locksText(run.finishedLocks, options) : timeText(run.nowMs, options);
  };
  const progress = new ProgressLine(() => `${progressText()}, ${plural(run.counts.uplinks, 'uplink')}`);
  try {
    await run.run(write ?? null, signal);
  } finally {
    progress.end();
  }
  return { ...run.counts, progress: progressText() };
}

/** Only counts: simulates one lock after another from the start to the end, which is the fastest way. */
async function countLockByLock(options: VirtualTraceOptions, signal: AbortSignal): Promise<Made> {
  const recorder = new LineRecorder(null);
  const run = new VirtualRun({ ...options, sink: recorder, anyOrder: true });
  const span = run.endMs - options.startMs;
  let finished = 0;
  // As a run with a clock: the time that all locks together have been simulated for.
  const sliced = {
    endMs: options.locks * span,
    get nowMs() {
      return finished * span;
    },
    advance(untilMs: number) {
      finished = run.finishNext(Math.max(1, Math.floor(untilMs / span) - finished));
    },
  };
  const progressText = (): string => `${locksText(finished, options)}, ${plural(recorder.uplinks, 'uplink')}`;
  await advanceInSlices(sliced, progressText, signal);
  return { connections: recorder.connections, uplinks: recorder.uplinks, progress: locksText(finished, options) };
}

async function simulateTogether(options: VirtualTraceOptions, write: Write, signal: AbortSignal): Promise<Made> {
  const trace = new VirtualTrace(options, write ?? null);
  const progressText = (): string => `${timeText(trace.nowMs, options)}, ${plural(trace.uplinks, 'uplink')}`;
  await advanceInSlices(trace, progressText, signal);
  return { connections: trace.connections, uplinks: trace.uplinks, progress: timeText(trace.nowMs, options) };
}

/** Which locks have which bugs. */
function notesOf(options: VirtualTraceOptions): readonly BugNote[] {
  const { bugs = [], pace = 'everyday', days } = options;
  if (bugs.length === 0) return [];
  return bugNotes(bugs, new VirtualRun({ ...options, anyOrder: true }).locks, { pace, days, hasGateway: false });
}

function timeText(nowMs: number, { startMs, days }: VirtualTraceOptions): string {
  return `${((nowMs - startMs) / Days(1)).toFixed(1)} of ${plural(days, 'day')}`;
}

function locksText(finished: number, { locks }: VirtualTraceOptions): string {
  return `${finished.toLocaleString('en-US')} of ${plural(locks, 'lock')}`;
}

/** The start of the run, ms since the epoch. @throws LockgateError `input-start` */
function readStart(text: string, days: number): number {
  const startMs = parseDate(text);
  if (Number.isNaN(startMs)) throw new LockgateError('input-start', `--start is "${text}": expected ${DATE_EXPECTED}`);
  if (isDatable(startMs) && isDatable(startMs + Days(days))) return startMs;
  throw new LockgateError('input-start', `--start is "${text}": expected a run within the years 1970–9999`);
}

function report(flags: SimFlags, made: Made, notes: readonly BugNote[], seconds: number): void {
  // With `--out -` the standard output must have nothing but the trace.
  const printLine = flags.out === '-' ? printNote : print;
  const { connections, uplinks } = made;
  const locks = flags.locks ?? DEFAULT_LOCKS;
  if (flags.json) {
    const counts = { out: flags.out ?? null, connections, uplinks, seconds };
    printLine(
      JSON.stringify({ ...runToJson(flags, locks), bug_locks: notes, ...counts, repeat: repeatCommand(flags) }),
    );
    return;
  }
  const outFile = flags.out === undefined || flags.out === '-' ? '' : ` in ${flags.out}`;
  const counts = `${plural(uplinks, 'uplink')} over ${plural(connections, 'connection')}${outFile}`;
  printLine(`${describeRun(flags, locks)}: ${counts}, made in ${seconds.toFixed(1)} s`);
  printLine(`Repeat with: ${repeatCommand(flags)}`);
}
