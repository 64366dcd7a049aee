/** The options of the broker: where it listens, its collaborators, its callbacks. */
import type { Socket } from 'node:net';
import type { Clock } from '../../proto/clock.js';
import type { Keys } from '../data-folder/keys.js';
import type { GatewayEvents } from '../events.js';
import type { Ingest } from '../ingest/ingest.js';
import type { DescriptorRoom } from '../network/descriptors.js';
import type { Store } from '../store/contract/store.js';
import type { Usage } from '../usage/usage.js';
import type { UplinkBudgets } from './budget/uplink-budgets.js';
import type { GuardLimits } from './connection-guard.js';
import type { Session } from './sessions.js';
import type { TlsFiles } from './tls-identity.js';

/** See {@link Broker}. */
export interface BrokerOptions {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** The listener over TLS; there is none where this is left out. */
  readonly tls?: { readonly host: string; readonly port: number; readonly files: TlsFiles } | null | undefined;
  /** Overrides of {@link GUARD_LIMITS}. */
  readonly limits?: Partial<GuardLimits> | undefined;
  /** Measures the time limits of connections: real time, whatever the run's clock does. */
  readonly guardClock?: Clock | undefined;
  /** Whether the process has a descriptor to spare for a connection; always, where this is left out. */
  readonly roomFor?: ((raw: Socket) => DescriptorRoom) | undefined;
  readonly store: Store;
  readonly keys: Keys;
  readonly ingest: Ingest;
  /** Counts what goes over the air, and activates SIMs. */
  readonly usage: Pick<Usage, 'meter' | 'sims'>;
  readonly events: GatewayEvents;
  /** The run's clock. */
  readonly clock: Clock;
  /** The wall clock, by which credentials expire. */
  readonly wallClock: Clock;
  /** Whether the store can write, as far as is known: while it can't, a CONNECT is refused (server unavailable). */
  readonly canStore?: () => Promise<boolean>;
  /** How much each lock may send; unlimited where this is left out. */
  readonly budgets?: UplinkBudgets | undefined;
  /** False sends every uplink through aedes: for tests that compare the two ways. */
  readonly fastPath?: boolean | undefined;
  /** Called when a lock has subscribed to `down`: from now on it receives commands. */
  readonly onListening?: (session: Session) => void;
}
