/**
 * The messages of the protocol as the rest of the code sees them: units in the names, enums as words, nothing of the
 * wire. The types of pings are generated from ping-fields.ts, which follows the specification's Ping table; protocol.md
 * §1 adds the envelope.
 */
import type { Ping } from '../gen/ping-types.js';
import { PING_FIELDS, type PingProperty } from './ping-fields.js';

export type {
  CellularPing,
  CloseConnectionPing,
  GpsPing,
  LockState,
  Ping,
  Position,
  TetherState,
} from '../gen/ping-types.js';

export type PowerMode = 'MID' | 'HIGH';

/** The mode and the switches, as a lock has them. */
export interface PowerSettings {
  readonly mode: PowerMode;
  readonly rideTracking: boolean;
  readonly airplane: boolean;
  readonly recovery: boolean;
}

/** MID with every switch off: what a lock is in until it says otherwise (protocol.md §4). */
export const DEFAULT_POWER: PowerSettings = Object.freeze({
  mode: 'MID',
  rideTracking: false,
  airplane: false,
  recovery: false,
});

/**
 * When HIGH keeps the connection, in minutes of the day at a UTC offset. `from` equal to `to` is the whole day; a
 * window may run over midnight (protocol.md §2).
 */
export interface HighWindow {
  readonly fromMinute: number;
  readonly toMinute: number;
  readonly utcOffsetMinutes: number;
}

/**
 * A field of a ping by its member in our types; undefined where the ping does not carry it or the lock left it out.
 * For what runs rarely: what runs for each ping is generated (ping-fields.ts).
 */
export function fieldValue(ping: Ping, property: PingProperty): unknown {
  if (PING_FIELDS[property].presence !== 'position') return (ping as Partial<Record<PingProperty, unknown>>)[property];
  const position = ping.kind === 'close_connection' ? null : ping.position;
  return (position as Partial<Record<PingProperty, unknown>> | null)?.[property];
}

export type CommandResult = 'ok' | 'rejected' | 'failed';

export interface CommandAck {
  readonly kind: 'ack';
  readonly commandId: number;
  readonly result: CommandResult;
  /** A short word on why, for people; empty where there is none. */
  readonly detail: string;
  /** After set-power: the high window now in force. */
  readonly highWindow: HighWindow | null;
}

/** One uplink: the envelope and what it carries (protocol.md §1). */
export interface Uplink<Body extends Ping | CommandAck = Ping | CommandAck> {
  /** Counts the lock's boots; 0…2³²−1. */
  readonly boot: number;
  /** 1, 2, 3 … since boot; 0…2³²−1. */
  readonly sequence: number;
  /** When the lock made it, by its own clock, ms since the epoch. It may be any integer: clocks fail. */
  readonly timeMs: number;
  readonly power: PowerSettings;
  /** How many uplinks made earlier still wait in the lock. */
  readonly kept: number;
  /** How many uplinks the lock has discarded since boot. */
  readonly dropped: number;
  readonly body: Body;
}

/** An uplink that carries a ping rather than an acknowledgement. */
export type PingUplink = Uplink<Ping>;

/** Whether the uplink carries a ping, which is what merchants get to see. */
export function isPingUplink(uplink: Uplink): uplink is PingUplink {
  return uplink.body.kind !== 'ack';
}

/** What the gateway asks of a lock (protocol.md §1, `down`). */
export type Command =
  | { readonly type: 'unlock' }
  | { readonly type: 'lock' }
  | { readonly type: 'siren'; readonly seconds: number }
  | { readonly type: 'locate-gps' }
  | { readonly type: 'locate-cell' }
  | ({ readonly type: 'set-power' } & PowerChange)
  | { readonly type: 'reset' };

/** The part of the power settings that a set-power changes; what is absent stays as it is. */
export interface PowerChange {
  readonly mode?: PowerMode;
  readonly rideTracking?: boolean;
  readonly airplane?: boolean;
  readonly recovery?: boolean;
  readonly highWindow?: HighWindow;
}

export interface Downlink {
  readonly id: number;
  /** From then on the command must not be carried out, ms since the epoch. */
  readonly expiresMs: number;
  readonly command: Command;
}

/** Who sent an uplink. The credential decides it, never the content (protocol.md §1). */
export type Source = 'lock' | 'phone';
