/** The parts behind the operations on a merchant's own data (http/merchant/own-data/). */
import type { Clock } from '../../proto/clock.js';
import type { Commands } from '../commands/commands.js';
import type { LiveFeed } from '../live/live-feed.js';
import type { LockList } from '../locks/list/lock-list.js';
import type { ReadTurns } from '../locks/list/read-turns.js';
import type { Locks } from '../locks/locks.js';
import type { UplinkBudgets } from '../mqtt/budget/uplink-budgets.js';
import type { RefusalRecorder } from '../mqtt/refusals/refusal-recorder.js';
import type { Usage } from '../usage/usage.js';
import type { Webhooks } from '../webhooks/webhooks.js';
import type { DeviceAccounts } from './device-accounts.js';

export interface OwnDataParts {
  /** The run's clock, the time of locks; a simulation may let it run faster than the wall clock. */
  readonly runClock: Clock;
  readonly locks: Locks;
  readonly lockList: LockList;
  /** The open streams of locks, of merchants and operators. */
  readonly live: LiveFeed;
  /** The turns in which long reads are made. */
  readonly readTurns: ReadTurns;
  /** Changes of locks. */
  readonly devices: DeviceAccounts;
  readonly commands: Commands;
  readonly webhooks: Webhooks;
  readonly usage: Usage;
  /** Each lock's budget of uplinks. */
  readonly uplinkBudgets: UplinkBudgets;
  /** What the broker recently refused of each lock. */
  readonly refusals: RefusalRecorder;
}
