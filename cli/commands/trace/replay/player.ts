/**
 * Replays a plan: gives each step to its lock when it is due. Locks are replayed in parallel, each in its own order.
 */
import { monotonicMs, systemClock } from '../../../../proto/clock.js';
import type { Mac } from '../../../../proto/wire/mac.js';
import { type ReplayContext, ReplayLock } from './lock.js';
import type { ReplayPlan } from './plan.js';
import type { Secrets } from './secrets.js';

/** The most steps in progress; past it the replay falls behind instead of queueing more. */
const UNDER_WAY_MOST = 1_000;

/** The speed relative to the trace; `max` waits only for the gateway. */
export type ReplaySpeed = number | 'max';

/**
 * See the head of this file. `onStep` is called with the number of finished steps. All connections are closed when it
 * resolves.
 */
export async function playReplay(
  plan: ReplayPlan,
  secrets: Secrets,
  speed: ReplaySpeed,
  context: ReplayContext,
  onStep: (done: number) => void,
): Promise<void> {
  const locks = new Map<Mac, ReplayLock>();
  const startMs = plan.steps[0]?.atMs ?? 0;
  const startedAt = monotonicMs();
  const underWay = new Set<Promise<void>>();
  let done = 0;
  for (const step of plan.steps) {
    if (speed !== 'max') await pause((step.atMs - startMs) / speed - (monotonicMs() - startedAt), context.signal);
    if (underWay.size >= UNDER_WAY_MOST) await Promise.race(underWay);
    if (context.signal.aborted) break;
    let lock = locks.get(step.mac);
    if (lock === undefined) {
      lock = new ReplayLock(context, { mac: step.mac, secret: secrets.get(step.mac) as string });
      locks.set(step.mac, lock);
    }
    const work = lock.take(step).then(() => {
      underWay.delete(work);
      done += 1;
      onStep(done);
    });
    underWay.add(work);
  }
  await Promise.all([...locks.values()].map((lock) => lock.end()));
}

/** Resolves after `delay`, at once where that is not positive, or when the signal fires. */
async function pause(delay: number, signal: AbortSignal): Promise<void> {
  if (delay <= 0 || signal.aborted) return;
  await new Promise<void>((resolve) => {
    const over = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', over);
      resolve();
    };
    const timer = systemClock.after(delay, over);
    signal.addEventListener('abort', over);
  });
}
