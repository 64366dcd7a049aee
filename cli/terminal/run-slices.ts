/** Advances a simulated run in short slices, between which the process handles Ctrl-C and redraws the progress line. */
import { afterThisTurn, type Milliseconds, Minutes, monotonicMs } from '../../proto/clock.js';
import { ProgressLine } from './progress-line.js';

/** The intended duration of a slice, in real time. */
const SLICE_MS: Milliseconds = 100;

/** A run with a simulated clock; times are ms since the epoch. */
export interface SlicedRun {
  readonly nowMs: number;
  readonly endMs: number;
  /** Advances to this time, but not beyond `endMs`. */
  advance(untilMs: number): void;
}

/** Advances to the end, or until `signal` fires. The length of the slices does not affect the result of the run. */
export async function advanceInSlices(run: SlicedRun, progressText: () => string, signal: AbortSignal): Promise<void> {
  const progress = new ProgressLine(progressText);
  try {
    // In simulated time; doubled and halved so that a slice takes about SLICE_MS of real time.
    let simulatedSliceMs = Minutes(10);
    while (run.nowMs < run.endMs && !signal.aborted) {
      const startedAtMs = monotonicMs();
      run.advance(run.nowMs + simulatedSliceMs);
      const tookMs = monotonicMs() - startedAtMs;
      if (tookMs < SLICE_MS / 2) simulatedSliceMs *= 2;
      else if (tookMs > SLICE_MS) simulatedSliceMs = Math.max(Minutes(1), simulatedSliceMs / 2);
      await new Promise<void>((resolve) => afterThisTurn(resolve));
    }
  } finally {
    progress.end();
  }
}
