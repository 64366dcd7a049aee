/**
 * The events of the gateway, as a typed event map. The gateway's parts emit them; the log, metrics, notices, `tail`,
 * the demo and tests listen, so that parts need not call each other. What each event contains is in lock-events.ts,
 * webhook-events.ts and operation-events.ts.
 */
import { EventEmitter } from 'node:events';
import type {
  BootBack,
  BudgetChanged,
  CommandChanged,
  FindingMade,
  JudgingTurned,
  LockConnected,
  LockDeparted,
  LockDisconnected,
  LockReflashed,
  LocksAdded,
  LocksChanged,
  PresenceChanged,
  Refused,
  StateRebuilt,
  StrayAck,
  UplinkQuarantined,
  UplinksStored,
  UplinkTaken,
} from './lock-events.js';
import type {
  Acknowledged,
  Audited,
  ClockStateChanged,
  CommitMade,
  Degraded,
  DescriptorsChanged,
  FilesMended,
  NoticesWritten,
  NotifyUrlChanged,
  Recovered,
  RequestAnswered,
  StatementClosed,
  StoreBroken,
  StoreCatchingUp,
  StoreFailed,
  StoreWarning,
  Swept,
  TileFailed,
} from './operation-events.js';
import type {
  BacklogChanged,
  CannotRecord,
  CannotSend,
  CircuitChanged,
  DeliveryAttempted,
  EventDamaged,
  UrlChanged,
  UrlDisabled,
} from './webhook-events.js';

export interface GatewayEventMap {
  connected: [LockConnected];
  disconnected: [LockDisconnected];
  refused: [Refused];
  budget: [BudgetChanged];
  judging: [JudgingTurned];
  uplink: [UplinkTaken];
  finding: [FindingMade];
  presence: [PresenceChanged];
  quarantined: [UplinkQuarantined];
  delivery: [DeliveryAttempted];
  'event-damaged': [EventDamaged];
  'url-disabled': [UrlDisabled];
  'url-changed': [UrlChanged];
  circuit: [CircuitChanged];
  backlog: [BacklogChanged];
  'cannot-send': [CannotSend];
  'cannot-record': [CannotRecord];
  swept: [Swept];
  command: [CommandChanged];
  'stray-ack': [StrayAck];
  'store-failed': [StoreFailed];
  'store-broken': [StoreBroken];
  degraded: [Degraded];
  recovered: [Recovered];
  clock: [ClockStateChanged];
  /* The merchants' bills of a month are final. */
  'statement-closed': [StatementClosed];
  /* The process has few free file descriptors, or enough again. */
  descriptors: [DescriptorsChanged];
  /* Messages for operators, such as an e-mail, were stored. */
  notices: [NoticesWritten];
  'notify-url': [NotifyUrlChanged];
  'catching-up': [StoreCatchingUp];
  'files-mended': [FilesMended];
  'store-warning': [StoreWarning];
  audited: [Audited];
  'state-rebuilt': [StateRebuilt];
  /* For the log only: a part of the console's street map could not be fetched. */
  'tile-failed': [TileFailed];
  /* For metrics and the log: too many for streams. */
  stored: [UplinksStored];
  commit: [CommitMade];
  acknowledged: [Acknowledged];
  request: [RequestAnswered];
  /* For notices only. `tail` has the finding and the audited call that say the same. */
  'boot-back': [BootBack];
  reflashed: [LockReflashed];
  /* For streams of locks only (gateway/live/). */
  'locks-changed': [LocksChanged];
  'locks-added': [LocksAdded];
  'lock-departed': [LockDeparted];
}

/**
 * The events that `tail` does not contain: those marked above as being for something else, and those of a start, which
 * come before anybody can follow `tail`.
 */
export type UnstreamedEventName =
  | 'stored'
  | 'commit'
  | 'acknowledged'
  | 'request'
  | 'catching-up'
  | 'files-mended'
  | 'store-warning'
  | 'tile-failed'
  | 'boot-back'
  | 'reflashed'
  | 'locks-changed'
  | 'locks-added'
  | 'lock-departed';

/** Node warns of a leak beyond this number of listeners: some parts of the gateway, and one for each `tail`. */
const MAX_EXPECTED_LISTENERS = 64;

export class GatewayEvents extends EventEmitter<GatewayEventMap> {
  constructor() {
    super();
    this.setMaxListeners(MAX_EXPECTED_LISTENERS);
  }
}
