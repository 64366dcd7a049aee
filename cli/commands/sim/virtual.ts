/**
 * Runs a fleet without a gateway and without waiting, and writes its trace to a file: all uplinks (messages of locks)
 * and connections, as JSON Lines (interfaces.md §4).
 */
import { VirtualTrace } from '../../../firmware-sim/fleet/virtual-trace.js';
import { Days, type Milliseconds, monotonicMs, Seconds } from '../../../proto/clock.js';
import { DATE_EXPECTED, parseDate } from '../../../proto/date.js';
import { LockgateError } from '../../../proto/errors.js';
import { isDatable } from '../../../proto/wire/ping-json.js';
import type { Interruption } from '../../terminal/interrupt.js';
import { LineSink } from '../../terminal/line-sink.js';
import { print, printNote } from '../../terminal/output.js';
import { advanceInSlices } from '../../terminal/run-slices.js';
import { type BugNote, bugNotes, printBugNotes } from './bug-notes.js';
import type { FleetPlan, SimFlags } from './flags.js';
import {
  DEFAULT_DAYS,
  DEFAULT_LOCKS,
  DEFAULT_START,
  describeRun,
  plural,
  repeatCommand,
  runToJson,
} from './summary.js';

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
  const withOut = false;
  const trace = new VirtualTrace(
    {
      seed: flags.seed,
      locks,
      days,
      startMs,
      pace: flags.pace,
      note: repeatCommand(flags, withOut),
      world: flags.world ?? false,
      bugs: plan.bugs,
      faults: plan.faults,
      ...(plan.mix && { mix: plan.mix }),
      ...(plan.city && { city: plan.city }),
      ...(plan.path && { path: plan.path }),
    },
    sink === undefined ? null : (lines) => sink.writeBytes(lines),
  );
  const notes =
    plan.bugs.length === 0 ? [] : bugNotes(plan.bugs, trace.locks, { pace: flags.pace, days, hasGateway: false });
  if (!flags.json) printBugNotes(notes, locks);
  const progress = (): string => {
    return `${daysText(trace.nowMs - startMs)} of ${plural(days, 'day')}, ${plural(trace.uplinks, 'uplink')}`;
  };
  await advanceInSlices(trace, progress, interrupted.signal);
  sink?.end();
  report(flags, trace, notes, (monotonicMs() - startedAtMs) / Seconds(1));
  if (!interrupted.signal.aborted) return;
  printNote(`Interrupted after ${daysText(trace.nowMs - startMs)} of ${plural(days, 'day')}: the trace ends there.`);
  process.exitCode = interrupted.exitCode;
}

/** The start of the run, ms since the epoch. @throws LockgateError `input-start` */
function readStart(text: string, days: number): number {
  const startMs = parseDate(text);
  if (Number.isNaN(startMs)) throw new LockgateError('input-start', `--start is "${text}": expected ${DATE_EXPECTED}`);
  if (isDatable(startMs) && isDatable(startMs + Days(days))) return startMs;
  throw new LockgateError('input-start', `--start is "${text}": expected a run within the years 1970–9999`);
}

function daysText(span: Milliseconds): string {
  return (span / Days(1)).toFixed(1);
}

function report(flags: SimFlags, trace: VirtualTrace, notes: readonly BugNote[], seconds: number): void {
  // With `--out -` the standard output must have nothing but the trace.
  const printLine = flags.out === '-' ? printNote : print;
  const { connections, uplinks } = trace;
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
