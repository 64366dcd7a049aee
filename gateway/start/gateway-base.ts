/** Types: the options of a gateway, and the objects that exist before its first part starts. */
import type { Clock } from '../../proto/clock.js';
import type { MachineClock } from '../clocks/machine-clock.js';
import type { GatewayEvents } from '../events.js';
import type { StopStep } from '../graceful-stop.js';
import type { Health } from '../health/health.js';
import type { VersionedJudge } from '../ingest/judging.js';
import type { GuardLimits } from '../mqtt/connection-guard.js';
import type { SocketCopier } from '../mqtt/socket-copier.js';
import type { DescriptorWatch } from '../network/descriptor-watch.js';
import type { ResolvedSetting } from '../resolved-settings.js';
import type { StoreFailure } from '../store/contract/errors.js';
import type { Store } from '../store/contract/store.js';
import type { RunSize } from '../store/contract/store-options.js';
import type { LookupAll } from '../webhooks/sending/name-service.js';

/** Options of a gateway in addition to its settings. Most replace a clock or a part in tests. */
export interface GatewayOptions {
  /**
   * The speed of the run's clock (wall-clock time, except in a sped-up simulation), 1 for real time (protocol.md §3,
   * Sped-up runs).
   */
  readonly speed?: number;
  /** Replaces the run's clock, for tests that stop time while the network works. */
  readonly runClock?: Clock;
  /** The machine's clocks; the system's by default. */
  readonly machine?: MachineClock;
  /** Random numbers in [0, 1) for the jitter of retries. */
  readonly random?: () => number;
  /** The clock that deliveries wait by, which never jumps; the system's monotonic clock by default. */
  readonly deliveryClock?: Clock;
  /** The clock that dates deliveries; by default `deliveryClock` if given, otherwise the wall clock. */
  readonly deliveryDates?: Clock;
  /** Resolves the host names of webhook URLs; the system's resolver by default. */
  readonly lookUp?: LookupAll;
  /** The clock of credentials, tokens, sessions and retention; the confirmed date by default. */
  readonly wallClock?: Clock;
  /** Measures the time limits of MQTT connections; real time by default. */
  readonly guardClock?: Clock;
  /** Refills locks' budgets; real time at the run's speed by default. */
  readonly budgetClock?: Clock;
  /** The judge and its version, for tests in which the judge fails. */
  readonly judging?: VersionedJudge;
  /** Overrides limits of MQTT connections, for tests. */
  readonly guardLimits?: Partial<GuardLimits>;
  /** Refills the HTTP budgets of merchants and strangers; real time by default. */
  readonly httpBudgetClock?: Clock;
  /** The clock of months and bills; the confirmed date by default. */
  readonly usageClock?: Clock;
  /** Whether a separate thread writes the store's log; true by default, false in tests that start many gateways. */
  readonly logThread?: boolean;
  /** Whether a separate thread counts the store's figures; true by default, false in tests that start many gateways. */
  readonly figuresThread?: boolean;
  /** Whether a separate thread scans uplinks; by default true. */
  readonly scanThread?: boolean;
  /**
   * Whether the sockets for locks are copied, so that more connections are accepted at a time; true by default, false
   * in tests that start many gateways.
   */
  readonly socketCopies?: boolean;
  /** Overrides the size of the log's runs (store/contract/store-options.ts), for tests. */
  readonly runSize?: RunSize | undefined;
  /** Whether other gateways may use the store's database at the same time; for tests so far. */
  readonly isShared?: boolean | undefined;
  /** Wraps the store, for tests that make it fail. */
  readonly wrapStore?: (store: Store) => Store;
  /** Creates a new store even in a data folder that seems to have had one. */
  readonly makeNew?: boolean;
  /** The settings with their sources, shown to operators. */
  readonly settings?: readonly ResolvedSetting[];
  /** Receives the gateway's events; given by callers that listen before the start. */
  readonly events?: GatewayEvents;
  /** Called once when the store can no longer be trusted: the process must end, without closing anything. */
  readonly onBroken?: (failure: StoreFailure) => void;
}

/** The objects that exist before the first part starts. */
export interface GatewayBase {
  readonly store: Store;
  /** Copies the sockets for locks; undefined if they are not copied. */
  readonly copier: SocketCopier | undefined;
  /** Resolves with whether the store can write. */
  readonly canStore: () => Promise<boolean>;
  readonly events: GatewayEvents;
  readonly health: Health;
  readonly descriptorWatch: DescriptorWatch;
  /** For each started part the step that stops it, in the order in which the parts were started. */
  readonly started: StopStep[];
  readonly stop: () => Promise<void>;
  /** Returns the time for the timestamps of events. */
  readonly now: () => number;
  /** Sets the clock that `now` reads. */
  readonly stampBy: (clock: Clock) => void;
}
