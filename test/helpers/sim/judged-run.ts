/**
 * Writes the trace of a virtual run, reads it back, and judges it as `trace check` does: compares the locks' messages
 * with the specification.
 */
import { VirtualTrace, type VirtualTraceOptions } from '../../../firmware-sim/fleet/virtual-trace.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { TraceCheck } from '../../../proto/trace/check.js';
import type { TraceFinding } from '../../../proto/trace/findings.js';
import { TraceReader } from '../../../proto/trace/reader.js';
import { eachLine } from './each-line.js';

/** The start of judged runs: a Monday, ms since the epoch. */
export const RUN_STARTS_MS = Date.UTC(2026, 0, 5);

/** The options of a virtual run, of which only the seed and the numbers of locks and days have no default. */
type Options = Partial<VirtualTraceOptions> & Pick<VirtualTraceOptions, 'seed' | 'locks' | 'days'>;

/** The lines of a run's trace. */
export function traceOf(options: Options): string[] {
  const lines: string[] = [];
  const trace = new VirtualTrace(
    { note: '', hasWorldEvents: false, startMs: RUN_STARTS_MS, ...options },
    eachLine((line) => lines.push(line)),
  );
  trace.advance(trace.endMs);
  return lines;
}

/** The findings about a trace. @throws Error where a line can't be read */
export function findingsIn(lines: readonly string[]): readonly TraceFinding[] {
  const reader = new TraceReader();
  let check: TraceCheck | undefined;
  for (const line of lines) {
    const event = reader.read(line);
    if (!event.ok) throw new Error(`line ${event.error.line}: ${event.error.message}`);
    if (event.value !== null) check?.judge(event.value, reader.line);
    else if (reader.header !== null) check = new TraceCheck(POWER_MODEL, reader.header);
  }
  return check?.findings() ?? [];
}

/** The names of the rules in the findings, once each, in alphabetical order. */
export function rulesBroken(findings: readonly TraceFinding[]): string[] {
  return [...new Set(findings.map(({ rule }) => rule))].sort();
}
