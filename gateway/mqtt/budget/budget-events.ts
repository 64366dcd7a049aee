/** Emits a `budget` event when a lock exceeds its uplink budget, and when it is within the budget again. */
import type { Clock } from '../../../proto/clock.js';
import type { Source } from '../../../proto/wire/ping.js';
import type { GatewayEvents } from '../../events.js';
import type { BudgetLimit, BudgetLimits, BudgetWatcher } from './uplink-budget.js';

/** A sentence for people, without a full stop: which limit a lock exceeds, and the consequence. */
export function budgetText(limits: BudgetLimits, limit: BudgetLimit, source: Source): string {
  const subject = source === 'phone' ? 'phones that act for it send' : 'the lock sends';
  const verb = source === 'phone' ? 'are' : 'is';
  const [perSecond, burst, perDay] = [limits.uplinksPerSecond, limits.burstUplinks, limits.uplinksPerDay].map((count) =>
    count.toLocaleString('en'),
  );
  const exceeded = limit === 'day' ? `${perDay} uplinks a day` : `${perSecond} uplinks a second (${burst} at once)`;
  return `${subject} more than ${exceeded} and ${verb} read at that pace`;
}

/**
 * A watcher that emits `budget` events. @param clock the run's clock (wall-clock time, except in a sped-up simulation)
 */
export function budgetWatcher(events: GatewayEvents, clock: Clock, limits: BudgetLimits): BudgetWatcher {
  return {
    now: () => clock.now(),
    over: ({ owner: { mac, source }, over }) => {
      const why = budgetText(limits, over?.limit ?? 'rate', source);
      events.emit('budget', { atMs: clock.now(), mac, source, state: 'over', why });
    },
    within: ({ owner: { mac, source } }) => {
      const subject = source === 'phone' ? 'phones that act for it are' : 'the lock is';
      events.emit('budget', {
        atMs: clock.now(),
        mac,
        source,
        state: 'within',
        why: `${subject} within the budget again`,
      });
    },
  };
}
