/**
 * Replays a plan: gives each step to its lock when the step is due. Locks are replayed in parallel; the steps of one
 * lock keep their order.
 */
import { monotonicMs, systemClock } from '../../../../proto/clock.js';
import type { Mac } from '../../../../proto/wire/mac.js';
import { type ReplayContext, ReplayLock } from './lock.js';
import type { ReplayPlan } from './plan.js';
import type { Secrets } from './secrets.js';

/** The maximum number of unfinished steps. At this limit the next step waits for one of them, even if it is due. */
const MAX_STEPS_IN_PROGRESS = 1_000;

/** How many times faster than the trace; `max` waits only for the gateway. */
export type ReplaySpeed = number | 'max';

/**
 * Replays all steps, unless the context's signal fires first. Calls `onStep` with the number of finished steps.
 * Resolves when all connections are closed.
 */
export async function playReplay(
  plan: ReplayPlan,
  secrets: Secrets,
  speed: ReplaySpeed,
  context: ReplayContext,
  onStep: (doneSteps: number) => void,
): Promise<void> {
  const locks = new Map<Mac, ReplayLock>();
  const startMs = plan.steps[0]?.atMs ?? 0;
  const startedAt = monotonicMs();
  const inProgress = new Set<Promise<void>>();
  let doneSteps = 0;
  for (const step of plan.steps) {
    if (speed !== 'max') await pause((step.atMs - startMs) / speed - (monotonicMs() - startedAt), context.signal);
    if (inProgress.size >= MAX_STEPS_IN_PROGRESS) await Promise.race(inProgress);
    if (context.signal.aborted) break;
    let lock = locks.get(step.mac);
    if (lock === undefined) {
      // Every lock of the plan has a secret: requireSecrets or provisionLocks has made sure of it.
      lock = new ReplayLock(context, { mac: step.mac, secret: secrets.get(step.mac) as string });
      locks.set(step.mac, lock);
    }
    const work = lock.enqueue(step).then(() => {
      inProgress.delete(work);
      doneSteps += 1;
      onStep(doneSteps);
    });
    inProgress.add(work);
  }
  await Promise.all([...locks.values()].map((lock) => lock.end()));
}

/** Resolves after `delayMs`, immediately if it is not positive, or when the signal fires. */
async function pause(delayMs: number, signal: AbortSignal): Promise<void> {
  if (delayMs <= 0 || signal.aborted) return;
  await new Promise<void>((resolve) => {
    const finish = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', finish);
      resolve();
    };
    const timer = systemClock.after(delayMs, finish);
    signal.addEventListener('abort', finish);
  });
}
