/**
 * Traces (protocol.md §4): what locks and the gateway did, as JSON Lines that a person can read, cut and write. The
 * first line is a header, each further line an event. trace/reader.ts reads lines, writer.ts writes them; where
 * the lines come from is for others to know.
 */
import type { JsonObject } from '../json-reader.js';
import type { DisconnectCause } from '../power/judge/event.js';
import type { Mac } from '../wire/mac.js';
import {
  type Command,
  type CommandAck,
  DEFAULT_POWER,
  type HighWindow,
  type LockState,
  type PingUplink,
  type PowerSettings,
  type Source,
  type Uplink,
} from '../wire/ping.js';

export const TRACE_NAME = 'lockgate';
export const TRACE_VERSION = 1;

/** What is known of a lock before the first event. */
export interface TraceLock {
  readonly power: PowerSettings;
  /** Null where the header leaves it to the model. */
  readonly highWindow: HighWindow | null;
  readonly lockState: LockState;
  readonly connected: boolean;
  /** When the last period sequence began, ms since the epoch; null where that isn't known. */
  readonly lastPeriodMs: number | null;
  /** The marks that part its uplinks into lives (uplink-life.ts), ms since the epoch; absent where there is none. */
  readonly reflashed?: readonly number[] | undefined;
}

/** A lock that the header does not name, or of which it says nothing. */
export const UNNAMED_LOCK: TraceLock = Object.freeze({
  power: DEFAULT_POWER,
  highWindow: null,
  lockState: 'unknown',
  connected: false,
  lastPeriodMs: null,
});

export interface TraceHeader {
  /** Empty where there is none. */
  readonly note: string;
  readonly locks: ReadonlyMap<Mac, TraceLock>;
}

interface Timed {
  /** Of receipt, or of whatever happened, ms since the epoch; it never goes back from one line to the next. */
  readonly atMs: number;
}

interface OfLock extends Timed {
  readonly mac: Mac;
}

export interface TraceConnect extends OfLock {
  readonly event: 'connect';
  readonly source: Source;
}

export interface TraceDisconnect extends OfLock {
  readonly event: 'disconnect';
  readonly source: Source;
  readonly cause: DisconnectCause;
}

export interface TracePing extends OfLock {
  readonly event: 'ping';
  readonly source: Source;
  readonly uplink: PingUplink;
}

export interface TraceAck extends OfLock {
  readonly event: 'ack';
  readonly source: Source;
  readonly uplink: Uplink<CommandAck>;
}

export interface TraceCommand extends OfLock {
  readonly event: 'command';
  readonly id: number;
  readonly command: Command;
  /** Ms since the epoch; absent where the line does not say. */
  readonly expiresMs?: number | undefined;
}

/** Time passed, nothing came. */
export interface TraceTick extends Timed {
  readonly event: 'tick';
}

/** Listening began or ended. */
export interface TraceGateway extends Timed {
  readonly event: 'gateway';
  readonly state: 'start' | 'stop';
}

/** What truly happened around a simulated lock. `judge` never reads it, so its members are nobody's business here. */
export interface TraceWorld extends Timed {
  readonly event: 'world';
  /** Null where it is about no lock. */
  readonly mac: Mac | null;
  /** The line as it was, `at`, `mac` and `event` included. */
  readonly members: JsonObject;
}

export type TraceEvent =
  | TraceConnect
  | TraceDisconnect
  | TracePing
  | TraceAck
  | TraceCommand
  | TraceTick
  | TraceGateway
  | TraceWorld;
