/**
 * Stops the gateway: its parts in the reverse order of their start, one after another, all within one time limit.
 *
 * Each part itself limits how long a client can delay its stop (a delivery that hangs, a lock or a `tail` that does not
 * read). The overall limit is for unforeseen cases: then the error names the part that hangs, and the caller must end
 * the process.
 */
import { type Clock, type Milliseconds, Seconds } from '../proto/clock.js';
import { LockgateError } from '../proto/errors.js';

/** The time limit of the stop: one second less than the ten seconds within which the process must end. */
export const STOP_LIMIT: Milliseconds = Seconds(9);

/** Stops one part. */
export interface StopStep {
  (): Promise<void>;
  /** The name of the part, for the error. */
  partName?: string;
}

/** A step with a name. */
export function stopStep(partName: string, stop: () => Promise<void>): StopStep {
  return Object.assign(() => stop(), { partName });
}

/**
 * Runs the steps, last first. If a step fails, the others still run, and the first error is thrown at the end.
 *
 * @throws LockgateError `stop-hung` after {@link STOP_LIMIT}; the step that hangs is not interrupted
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
      const part = current?.partName ?? 'one of its parts';
      reject(new LockgateError('stop-hung', `the gateway did not stop within ${STOP_LIMIT / 1000} s: ${part} hangs`));
    });
    const cancel = (): void => limit.cancel();
    ended.then(cancel, cancel);
  });
  await Promise.race([ended, hung]);
}
