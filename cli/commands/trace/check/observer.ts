/** What follows a trace besides the judge: for a flag of `trace check` that needs more than the judge's findings. */
import type { FindingSink } from '../../../../proto/trace/findings.js';
import type { TraceEvent, TraceHeader } from '../../../../proto/trace/trace.js';

/** Follows a trace while it is checked, and may add findings of its own at its end. */
export interface TraceObserver {
  header?(header: TraceHeader): void;
  event?(event: TraceEvent, line: number): void;
  /** Called at the end of the trace, or where it can't be read any further. */
  end?(findings: FindingSink): void;
}
