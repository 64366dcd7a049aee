/**
 * The types of a trace (protocol.md §4): a record of what locks and the gateway did, in JSON Lines that people can read
 * and edit. The first line is a header, each further line an event. reader.ts reads lines, writer.ts writes them.
 */
import type { JsonObject } from '../json-reader.js';
import type { EarlierCommand } from '../power/judge/belief.js';
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

/** Both are in each header: by them a reader refuses other files and later formats. */
export const TRACE_NAME = 'lockgate';
export const TRACE_VERSION = 1;

/** The number of a lock's or phone's oldest credential in a trace, and of its only one if the lines name none. */
export const FIRST_CREDENTIAL = 1;
/** The greatest number of a credential. */
export const MAX_CREDENTIAL = 65_535;

/** What is known of a lock before the first event. */
export interface TraceLock {
  readonly power: PowerSettings;
  /** Null if the header has none; then the model's window applies. */
  readonly highWindow: HighWindow | null;
  readonly lockState: LockState;
  readonly connected: boolean;
  /** When the last period sequence (the pings of one day's report) started, ms since the epoch; null if unknown. */
  readonly lastPeriodMs: number | null;
  /** When the lock was reflashed, ms since the epoch (uplink-life.ts); absent if it never was. */
  readonly reflashed?: readonly number[] | undefined;
  /** The commands that it was sent before and that still matter; absent if the header does not list them. */
  readonly commands?: readonly EarlierCommand[] | undefined;
}

/** What is assumed of a lock that the header does not name. */
export const UNNAMED_LOCK: TraceLock = Object.freeze({
  power: DEFAULT_POWER,
  highWindow: null,
  lockState: 'unknown',
  connected: false,
  lastPeriodMs: null,
});

export interface TraceHeader {
  /** Empty if there is none. */
  readonly note: string;
  readonly locks: ReadonlyMap<Mac, TraceLock>;
}

interface Timed {
  /** When the event happened or an uplink was received, ms since the epoch. It never goes back from line to line. */
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

/** An uplink of a lock, or of a phone that acts for it. */
interface OfCredential extends OfLock {
  readonly source: Source;
  /** Which of the source's credentials sent it, by age from {@link FIRST_CREDENTIAL}; absent if it has only one. */
  readonly credential?: number | undefined;
}

export interface TracePing extends OfCredential {
  readonly event: 'ping';
  readonly uplink: PingUplink;
}

export interface TraceAck extends OfCredential {
  readonly event: 'ack';
  readonly uplink: Uplink<CommandAck>;
}

export interface TraceCommand extends OfLock {
  readonly event: 'command';
  readonly id: number;
  readonly command: Command;
  /** When the command expires, ms since the epoch; absent if the line does not say. */
  readonly expiresMs?: number | undefined;
}

/** Time passed and nothing was received. */
export interface TraceTick extends Timed {
  readonly event: 'tick';
}

/** The gateway started or stopped listening. */
export interface TraceGateway extends Timed {
  readonly event: 'gateway';
  readonly state: 'start' | 'stop';
}

/** What truly happened around a lock. The judge must not see it, so its members are not interpreted here. */
export interface TraceWorld extends Timed {
  readonly event: 'world';
  /** Null if the event is not about a lock. */
  readonly mac: Mac | null;
  /** All members of the line, including `at`, `mac` and `event`. */
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
