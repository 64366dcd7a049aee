/** Puts together the parts behind the operations on a merchant's own data. */
import { type Clock, RunClock } from '../../proto/clock.js';
import type { OwnDataParts } from '../accounts/own-data-parts.js';
import type { GatewayEvents } from '../events.js';
import { type StopStep, stopStep } from '../graceful-stop.js';
import { tailOf } from '../http/operator/json/event.js';
import { LiveFeed } from '../live/live-feed.js';
import type { ClosedLocks } from '../locks/list/closed-locks.js';
import type { LockDirectory } from '../locks/list/lock-directory.js';
import { LockList } from '../locks/list/lock-list.js';
import { ReadTurns } from '../locks/list/read-turns.js';
import { SharedStates } from '../locks/list/shared-states.js';
import type { UplinkBudgets } from '../mqtt/budget/uplink-budgets.js';
import type { Store } from '../store/contract/store.js';

type Given = Omit<OwnDataParts, 'runClock' | 'live' | 'lockList' | 'readTurns' | 'uplinkBudgets'>;

/**
 * Returns the parts, with a new list of locks and a new feed of streams.
 *
 * @param parts `clock` is the run's clock (wall-clock time, except in a sped-up simulation); `started` gets the step
 *   that ends all streams
 */
export function makeOwnData(
  parts: Given & {
    readonly store: Store;
    readonly directory: LockDirectory;
    readonly closedLocks: ClosedLocks;
    readonly clock: Clock;
    readonly budgets: UplinkBudgets;
    readonly events: GatewayEvents;
    readonly started: StopStep[];
  },
): OwnDataParts {
  const { store, directory, closedLocks, clock, budgets, events, started, locks } = parts;
  const turns = new ReadTurns();
  const owners = store.ownership.locks;
  const states = owners.isSole ? locks : new SharedStates(locks, store, owners);
  const lockList = new LockList({
    directory,
    isClosed: (mac) => closedLocks.has(mac),
    states,
    clock,
    turns,
  });
  const live = new LiveFeed({
    store,
    states,
    events,
    runClock: clock,
    // Real time. Only differences of times are used, so it may start at 0.
    clock: new RunClock(0),
    turns,
    tail: tailOf(events),
  });
  // Stops before the HTTP interfaces, whose stop waits for their calls.
  started.push(stopStep('the streams of locks', async () => live.stop()));
  const { devices, commands, webhooks, usage, refusals } = parts;
  const given = { locks, devices, commands, webhooks, usage, refusals };
  return { ...given, runClock: clock, live, lockList, readTurns: turns, uplinkBudgets: budgets };
}
