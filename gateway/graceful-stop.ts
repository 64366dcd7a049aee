/**
 * How the gateway stops: its parts in the order opposite to that of their start, each to its end, all within one limit.
 *
 * Every part bounds what strangers can do to its end (a delivery that hangs, a lock or a `tail` that doesn't read). The
 * limit is for what nobody thought of: then it is said what hung, and the process has to be ended.
 */
import { type Clock, type Milliseconds, Seconds } from '../proto/clock.js';
import { LockgateError } from '../proto/errors.js';

/** For the whole stop: a second less than the ten that quality.md §2 gives the process. */
export const STOP_LIMIT: Milliseconds = Seconds(9);

/** Ends one part. */
export interface StopStep {
  (): Promise<void>;
  /** What it ends, for the sentence that says what hung. */
  what?: string;
}

/** A step that has a name. */
export function stopStep(what: string, stop: () => Promise<void>): StopStep {
  return Object.assign(() => stop(), { what });
}

/**
 * Runs the steps, the last first. One that fails keeps none of the others from running; its error is thrown at the end.
 *
 * @throws LockgateError `stop-hung` where it takes longer than {@link STOP_LIMIT}; what hangs goes on hanging
 */
export async function stopAll(steps: readonly StopStep[], clock: Clock): Promise<void> {
  let current: StopStep | undefined;
  const run = async (): Promise<void> => {
    const errors: unknown[] = [];
    for (const step of [...steps].reverse()) {
      current = step;
      await step().catch((error: unknown) => errors.push(error));
    }
    if (errors.length > 0) throw errors[0];
  };
  const ended = run();
  const hung = new Promise<never>((_resolve, reject) => {
    const limit = clock.after(STOP_LIMIT, () => {
      const what = current?.what ?? 'one of its parts';
      reject(new LockgateError('stop-hung', `the gateway did not stop within ${STOP_LIMIT / 1000} s: ${what} hangs`));
    });
    const cancel = (): void => limit.cancel();
    ended.then(cancel, cancel);
  });
  await Promise.race([ended, hung]);
}
