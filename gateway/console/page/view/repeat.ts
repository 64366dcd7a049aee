/** Repeats a call while a view is shown. */
import { type Milliseconds, systemClock } from '../../../../proto/clock.js';

/** Calls `act` every `wait` ms, the first time after one `wait`. Returns a function that ends the repetition. */
export function repeat(wait: Milliseconds, act: () => void): () => void {
  let timer = systemClock.after(wait, next);
  function next(): void {
    act();
    timer = systemClock.after(wait, next);
  }
  return () => timer.cancel();
}
