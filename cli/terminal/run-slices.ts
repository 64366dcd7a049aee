/** Advances a simulated run in slices, so that Ctrl-C and the progress line work meanwhile. */
import { afterThisTurn, type Milliseconds, Minutes, monotonicMs } from '../../proto/clock.js';
import { ProgressLine } from './progress-line.js';

/** The duration of a slice, in real time. */
const SLICE: Milliseconds = 100;

/** A run with its own clock, ms since the epoch. */
export interface SlicedRun {
  readonly nowMs: number;
  readonly endMs: number;
  /** Advances to this time, at most to the end. */
  advance(untilMs: number): void;
}

/** Advances to the end, or until `signal` fires. The length of the slices does not affect the run. */
export async function goOn(run: SlicedRun, progressText: () => string, signal: AbortSignal): Promise<void> {
  const progress = new ProgressLine(progressText);
  try {
    let slice = Minutes(10);
    while (run.nowMs < run.endMs && !signal.aborted) {
      const sliceAt = monotonicMs();
      run.advance(run.nowMs + slice);
      const took = monotonicMs() - sliceAt;
      if (took < SLICE / 2) slice *= 2;
      else if (took > SLICE) slice = Math.max(Minutes(1), slice / 2);
      await new Promise<void>((resolve) => afterThisTurn(resolve));
    }
  } finally {
    progress.end();
  }
}
