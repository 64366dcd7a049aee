/** A run that makes its own time, gone through in slices, so that Ctrl-C is heard and the progress seen meanwhile. */
import { afterThisTurn, type Milliseconds, Minutes, monotonicMs } from '../../proto/clock.js';
import { ProgressLine } from './progress-line.js';

/** How long the run goes on at a time, in real time. */
const SLICE: Milliseconds = 100;

/** A run by a clock of its own, ms since the epoch. */
export interface SlicedRun {
  readonly nowMs: number;
  readonly endMs: number;
  /** Goes on to this moment, at most to the end. */
  advance(untilMs: number): void;
}

/** Goes to the end, or until `signal` fires. How long the slices are changes nothing of the run. */
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
