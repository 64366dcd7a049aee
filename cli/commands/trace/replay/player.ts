/**
 * Plays a plan: hands each step to its lock when it is due. Locks play side by side, and each keeps its own order.
 */
import { monotonicMs, systemClock } from '../../../../proto/clock.js';
import type { Mac } from '../../../../proto/wire/mac.js';
import { ReplayLock, type Stage } from './lock.js';
import type { ReplayPlan } from './plan.js';
import type { Secrets } from './secrets.js';

/** Steps that are begun and not done; past it the replay falls behind rather than pile up. */
const UNDER_WAY_MOST = 1_000;

/** How many times as fast as the trace; `max` waits for nothing but the gateway. */
export type ReplaySpeed = number | 'max';

/** See the head of this file. `onStep` is told how many steps are done. Every connection is closed when it resolves. */
export async function playReplay(
  plan: ReplayPlan,
  secrets: Secrets,
  speed: ReplaySpeed,
  stage: Stage,
  onStep: (done: number) => void,
): Promise<void> {
  const locks = new Map<Mac, ReplayLock>();
  const startMs = plan.steps[0]?.atMs ?? 0;
  const startedAt = monotonicMs();
  const underWay = new Set<Promise<void>>();
  let done = 0;
  for (const step of plan.steps) {
    if (speed !== 'max') await pause((step.atMs - startMs) / speed - (monotonicMs() - startedAt), stage.signal);
    if (underWay.size >= UNDER_WAY_MOST) await Promise.race(underWay);
    if (stage.signal.aborted) break;
    let lock = locks.get(step.mac);
    if (lock === undefined) {
      lock = new ReplayLock(stage, { mac: step.mac, secret: secrets.get(step.mac) as string });
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

/** Resolves after `delay`, at once where there is none, or when the signal fires. */
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
