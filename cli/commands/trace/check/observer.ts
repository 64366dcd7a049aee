/**
 * The interface of code that reads a trace along with the rules, for flags of `trace check` that need more than
 * findings.
 */
import type { FindingSink } from '../../../../proto/trace/findings.js';
import type { TraceEvent, TraceHeader } from '../../../../proto/trace/trace.js';

/** Follows a trace while it is checked, and may add findings. */
export interface TraceObserver {
  /** Called once, before all events. @param findings the observer may add findings to it until {@link end} */
  header?(header: TraceHeader, findings: FindingSink): void;
  /** Called for each event, after the rules have judged it. */
  event?(event: TraceEvent, line: number): void;
  /** Called after each chunk of the file and at its end. Reading continues when it resolves. */
  pause?(): Promise<void>;
  /** Called at the end of the trace, or at the first line that can't be read. */
  end?(findings: FindingSink): void | Promise<void>;
}
