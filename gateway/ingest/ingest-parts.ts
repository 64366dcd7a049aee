/** What ingest is built with, and whom it notifies. `start/` passes these parts to {@link Ingest}. */
import type { Clock } from '../../proto/clock.js';
import type { ClockDoubt } from '../clocks/recorded-clocks.js';
import type { GatewayEvents } from '../events.js';
import type { KnownLock, Locks } from '../locks/locks.js';
import type { Store } from '../store/contract/store.js';
import type { Acknowledgement } from './draft-judge.js';

/** Notified after each commit about acknowledgements and judged locks. Implemented by the commands. */
export interface CommandListener {
  /** `isRefused`: it is not the first answer to a command that was sent to this lock. It is stored all the same. */
  acknowledged(acknowledgement: Acknowledgement, isRefused: boolean): void;
  /** Uplinks or connection events of the lock were judged, so its state may have changed. */
  judged(lock: KnownLock): void;
}

export interface IngestParts {
  readonly store: Store;
  readonly locks: Locks;
  /** The run's clock (wall-clock time, except in a sped-up simulation). */
  readonly clock: Clock;
  readonly events: GatewayEvents;
  /** Returns whether the store can't write now. Uplinks are then refused, so that the queue does not fill. */
  readonly isStoreFailing?: () => boolean;
  /** Called after a commit with the merchants that have new events, and the number of its uplinks. */
  readonly onStored: (merchantIds: ReadonlySet<number>, uplinks: number) => void;
  /** Called after a commit that may have stored events for merchants other than pings. */
  readonly onMerchantEvents?: (() => void) | undefined;
  readonly commands: CommandListener;
  /** Says whether the machine's clock is in doubt. Receives the time that each lock reports during a doubt. */
  readonly doubt?: Pick<ClockDoubt, 'isDoubted' | 'noteUplink'> | undefined;
  /** A monotonic clock in ms, for the pace of commits; tests pass their own. */
  readonly monotonic?: () => number;
}
