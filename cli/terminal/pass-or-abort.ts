/** Waits in a command that Ctrl-C may interrupt. */
import type { Clock, Milliseconds } from '../../proto/clock.js';

/** Resolves when this span has passed by the clock, or as soon as the signal fires. */
export async function passOrAbort(clock: Clock, span: Milliseconds, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const end = (): void => {
      timer.cancel();
      // A signal may exist for days and many waits, so each wait removes its listener.
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = clock.after(span, end);
    signal.addEventListener('abort', end);
  });
}
