/** What the broker is given: where it listens, what it works on, and who hears of it. */
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
  /** Other limits of the front door than {@link DOOR_LIMITS}. */
  readonly limits?: Partial<GuardLimits> | undefined;
  /** What the front door's limits are measured by: real time, whatever the run's clock does. */
  readonly doorClock?: Clock | undefined;
  /** Whether the process has a descriptor to spare for a connection; it does where this is left out. */
  readonly roomFor?: ((raw: Socket) => DescriptorRoom) | undefined;
  readonly store: Store;
  readonly keys: Keys;
  readonly ingest: Ingest;
  /** Counts what goes over the air, and activates SIMs. */
  readonly usage: Pick<Usage, 'meter' | 'sims'>;
  readonly events: GatewayEvents;
  /** The run's clock. */
  readonly clock: Clock;
  /** The wall's, by which credentials expire. */
  readonly wallClock: Clock;
  /** Whether the store can write, as far as is known: while it can't, nobody is let in whose word could not be kept. */
  readonly canStore?: () => Promise<boolean>;
  /** How much each lock may send; any amount where this is left out. */
  readonly budgets?: UplinkBudgets | undefined;
  /** False takes every uplink by way of aedes: for tests, which compare. */
  readonly fastLane?: boolean | undefined;
  /** Told when a lock has subscribed to `down`: from now on it hears commands. */
  readonly onListening?: (session: Session) => void;
}
