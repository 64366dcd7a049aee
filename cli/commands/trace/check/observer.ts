/** What follows a trace besides the judge: for a flag of `trace check` that needs more than the judge's findings. */
import type { FindingSink } from '../../../../proto/trace/findings.js';
import type { TraceEvent, TraceHeader } from '../../../../proto/trace/trace.js';

/** Follows a trace while it is checked, and may add findings of its own. */
export interface TraceObserver {
  /** @param findings takes findings at any time until the end */
  header?(header: TraceHeader, findings: FindingSink): void;
  event?(event: TraceEvent, line: number): void;
  /** Called after each part of the file and at its end: the file is read further when it resolves. */
  pause?(): Promise<void>;
  /** Called at the end of the trace, or where it can't be read any further. */
  end?(findings: FindingSink): void | Promise<void>;
}
