/** Puts together the parts behind the operations on a merchant's own data. */
import type { Clock } from '../../proto/clock.js';
import type { OwnDataParts } from '../accounts/own-data-parts.js';
import { LockList } from '../locks/list/lock-list.js';
import { ReadTurns } from '../locks/list/read-turns.js';
import type { UplinkBudgets } from '../mqtt/budget/uplink-budgets.js';
import type { Store } from '../store/contract/store.js';

type Given = Omit<OwnDataParts, 'runClock' | 'lockList' | 'turns' | 'uplinkBudgets'>;

/** Returns the parts, with a new list of locks. @param parts `clock` is the run's clock (the time of locks) */
export function makeOwnData(
  parts: Given & { readonly store: Store; readonly clock: Clock; readonly budgets: UplinkBudgets },
): OwnDataParts {
  const { store, clock, budgets, locks, devices, commands, webhooks, usage, refusals } = parts;
  const turns = new ReadTurns();
  const lockList = new LockList({ store, states: locks, clock, turns });
  const given = { locks, devices, commands, webhooks, usage, refusals };
  return { ...given, runClock: clock, lockList, turns, uplinkBudgets: budgets };
}
