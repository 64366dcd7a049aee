/**
 * What happens in the gateway, as a typed event map. Log, `tail`, the demo and tests listen; nobody has to be called.
 * Times are by the run's clock, ms since the epoch.
 */
import { EventEmitter } from 'node:events';
import type { Mac } from '../proto/mac.js';
import type { Uplink } from '../proto/ping.js';
import type { DisconnectCause, Finding } from '../proto/power-judge-event.js';
import type { Presence } from '../proto/power-judge-presence.js';

export interface LockConnected {
  readonly atMs: number;
  readonly mac: Mac;
  readonly simulated: boolean;
}

export interface LockDisconnected {
  readonly atMs: number;
  readonly mac: Mac;
  readonly cause: DisconnectCause;
}

/** A CONNECT, PUBLISH or SUBSCRIBE that was refused. */
export interface Refused {
  readonly atMs: number;
  readonly what: 'connect' | 'publish' | 'subscribe';
  /** The client id as given, at most 64 characters. */
  readonly clientId: string;
  readonly address: string;
  /** A sentence for operators; the client itself is told no more than the MQTT code. */
  readonly why: string;
}

export interface UplinkTaken {
  readonly atMs: number;
  readonly mac: Mac;
  readonly eventId: string;
  readonly uplink: Uplink;
  /** As they came. */
  readonly bytes: Buffer;
  readonly buffered: boolean;
  /** It was in the log already, with the same bytes. */
  readonly repeated: boolean;
  readonly simulated: boolean;
  /** What judging it brought; some may be about an earlier uplink. */
  readonly findings: readonly Finding[];
}

/** A finding that no uplink brought: of a connection, or of time that passed. */
export interface FindingMade {
  readonly atMs: number;
  readonly mac: Mac;
  readonly finding: Finding;
}

/** What a lock's silence or connection means now, where that changed (protocol.md §3). */
export interface PresenceChanged {
  readonly atMs: number;
  readonly mac: Mac;
  readonly presence: Presence;
}

export interface UplinkQuarantined {
  readonly atMs: number;
  readonly mac: Mac;
  readonly code: string;
  readonly message: string;
  readonly bytes: Buffer;
}

export interface DeliveryAttempted {
  readonly atMs: number;
  readonly urlId: number;
  readonly mac: Mac;
  readonly eventId: string;
  /** 1 for the first. */
  readonly number: number;
  readonly status: number | null;
  readonly durationMs: number;
  readonly error: string | null;
  readonly outcome: 'delivered' | 'pending' | 'dead';
  /** By the wall's clock; null where none follows. */
  readonly nextAttemptAtMs: number | null;
}

export interface UrlDisabled {
  readonly atMs: number;
  readonly urlId: number;
  readonly why: string;
}

export interface StoreFailed {
  readonly atMs: number;
  readonly why: string;
}

/** What was stored of a lock's state could not be read at the start, and was made anew. */
export interface StateRebuilt {
  readonly atMs: number;
  readonly mac: Mac;
  /** What was wrong with it, for people. */
  readonly why: string;
  /** `log`: from all that is stored of the lock. `nothing`: that could not be read either, so it is as a new lock's. */
  readonly from: 'log' | 'nothing';
}

export interface GatewayEventMap {
  connected: [LockConnected];
  disconnected: [LockDisconnected];
  refused: [Refused];
  uplink: [UplinkTaken];
  finding: [FindingMade];
  presence: [PresenceChanged];
  quarantined: [UplinkQuarantined];
  delivery: [DeliveryAttempted];
  'url-disabled': [UrlDisabled];
  'store-failed': [StoreFailed];
  'state-rebuilt': [StateRebuilt];
}

/** How many listeners there may be before Node warns of a leak: some parts of ours, and one for each `tail`. */
const EXPECTED_LISTENERS = 64;

export class GatewayEvents extends EventEmitter<GatewayEventMap> {
  constructor() {
    super();
    this.setMaxListeners(EXPECTED_LISTENERS);
  }
}
