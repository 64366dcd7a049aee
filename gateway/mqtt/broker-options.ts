/** The options of the MQTT broker (broker.ts): its addresses, collaborators and callbacks. */
import type { Socket } from 'node:net';
import type { Clock } from '../../proto/clock.js';
import type { Keys } from '../data-folder/keys.js';
import type { GatewayEvents } from '../events.js';
import type { Ingest, Sender } from '../ingest/ingest.js';
import type { DescriptorRoom } from '../network/descriptors.js';
import type { Store } from '../store/contract/store.js';
import type { Usage } from '../usage/usage.js';
import type { UplinkBudgets } from './budget/uplink-budgets.js';
import type { GuardLimits } from './connection-guard.js';
import type { Session, Sessions } from './sessions.js';
import type { TlsFiles } from './tls-identity.js';

/** Options of `Broker.start`. */
export interface BrokerOptions {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  /** The listener over TLS; there is none if undefined. */
  readonly tls?: { readonly host: string; readonly port: number; readonly files: TlsFiles } | null | undefined;
  /** Whether a balancer has this address, whose connections begin with a PROXY protocol header; none if undefined. */
  readonly isProxy?: ((address: string) => boolean) | undefined;
  /** Overrides of {@link GUARD_LIMITS}. */
  readonly limits?: Partial<GuardLimits> | undefined;
  /** Measures the time limits of connections in real time, independent of the run's clock. */
  readonly guardClock?: Clock | undefined;
  /** Returns whether the process has a free file descriptor for a connection; always if undefined. */
  readonly roomFor?: ((raw: Socket) => DescriptorRoom) | undefined;
  /** Holds the authenticated connections; a new one if undefined. */
  readonly sessions?: Sessions | undefined;
  readonly store: Store;
  readonly keys: Keys;
  readonly ingest: Ingest;
  /** Counts bytes and messages for billing, and activates SIM cards. */
  readonly usage: Pick<Usage, 'meter' | 'sims'>;
  readonly events: GatewayEvents;
  /** The run's clock, which stamps events. A demonstration can run it faster than real time. */
  readonly clock: Clock;
  /** The clock by which credentials expire. */
  readonly wallClock: Clock;
  /**
   * Resolves with whether the store can write, by its last check. While it can't, a CONNECT is refused (server
   * unavailable).
   */
  readonly canStore?: () => Promise<boolean>;
  /**
   * Which senders this gateway serves; all if undefined. `owns` is usually true; otherwise `claim` resolves with
   * whether this gateway may serve the sender from now on.
   */
  readonly owner?:
    | { owns(sender: Sender): boolean; claim(sender: Sender, isWaiting: () => boolean): Promise<boolean> }
    | undefined;
  /** How much each lock may send; unlimited if undefined. */
  readonly budgets?: UplinkBudgets | undefined;
  /** False sends every uplink through aedes, for tests that compare aedes with the fast path. */
  readonly fastPath?: boolean | undefined;
  /** Called when a lock has subscribed to `down` and so can receive commands. */
  readonly onSubscribed?: (session: Session) => void;
}
