/**
 * The types of the protocol's messages, for all code: units in the names, enums as words, no details of the wire. The
 * types of pings are generated from ping-fields.ts, which follows the specification's Ping table. The envelope is
 * defined in protocol.md §1.
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

/** In MID a lock connects only to send. In HIGH it also keeps its connection during a part of the day. */
export type PowerMode = 'MID' | 'HIGH';

/** The power mode and switches of a lock. */
export interface PowerSettings {
  readonly mode: PowerMode;
  readonly rideTracking: boolean;
  readonly airplane: boolean;
  readonly recovery: boolean;
}

/** MID with every switch off: what is assumed of a lock until it reports its settings (protocol.md §4). */
export const DEFAULT_POWER: PowerSettings = Object.freeze({
  mode: 'MID',
  rideTracking: false,
  airplane: false,
  recovery: false,
});

/**
 * The part of each day in which a lock in mode HIGH keeps its connection, in minutes of the day at a UTC offset. With
 * equal minutes it is the entire day; a window may run over midnight (protocol.md §2).
 */
export interface HighWindow {
  readonly fromMinute: number;
  readonly toMinute: number;
  readonly utcOffsetMinutes: number;
}

/**
 * The value of a ping's field, given the field's name; undefined if the ping does not have it. It is slow, so code that
 * runs for each ping uses generated functions instead (ping-fields.ts).
 */
export function fieldValue(ping: Ping, property: PingProperty): unknown {
  if (PING_FIELDS[property].presence !== 'position') return (ping as Partial<Record<PingProperty, unknown>>)[property];
  const position = ping.kind === 'close_connection' ? null : ping.position;
  return (position as Partial<Record<PingProperty, unknown>> | null)?.[property];
}

/** The lock carried the command out, did not try (it was invalid or had expired), or tried without success. */
export type CommandResult = 'ok' | 'rejected' | 'failed';

/** A lock's acknowledgement of a command. */
export interface CommandAck {
  readonly kind: 'ack';
  readonly commandId: number;
  readonly result: CommandResult;
  /** A short reason for users; may be empty. */
  readonly detail: string;
  /** In the acknowledgement of a set-power: the high window now in force. Otherwise null. */
  readonly highWindow: HighWindow | null;
}

/** One uplink: the envelope and its body (protocol.md §1). */
export interface Uplink<Body extends Ping | CommandAck = Ping | CommandAck> {
  /** Counts the lock's boots; 0…2³²−1. */
  readonly boot: number;
  /** Counts the uplinks of the boot: 1, 2, 3 … The wire carries 0…2³²−1. */
  readonly sequence: number;
  /** When the lock made the uplink, by its own clock, ms since the epoch. Any integer: the clock may be wrong. */
  readonly timeMs: number;
  readonly power: PowerSettings;
  /** How many uplinks made earlier still wait in the lock. */
  readonly kept: number;
  /** How many uplinks the lock has discarded since boot because its buffer was full. */
  readonly dropped: number;
  readonly body: Body;
}

/** An uplink that carries a ping rather than an acknowledgement. */
export type PingUplink = Uplink<Ping>;

/** Whether the uplink carries a ping. Merchants receive pings only. */
export function isPingUplink(uplink: Uplink): uplink is PingUplink {
  return uplink.body.kind !== 'ack';
}

/** A command from the gateway to a lock (protocol.md §1, topic `down`). */
export type Command =
  | { readonly type: 'unlock' }
  | { readonly type: 'lock' }
  | { readonly type: 'siren'; readonly seconds: number }
  | { readonly type: 'locate-gps' }
  | { readonly type: 'locate-cell' }
  | ({ readonly type: 'set-power' } & PowerChange)
  | { readonly type: 'reset' };

/** The power settings that a set-power changes; absent members stay unchanged. */
export interface PowerChange {
  readonly mode?: PowerMode;
  readonly rideTracking?: boolean;
  readonly airplane?: boolean;
  readonly recovery?: boolean;
  readonly highWindow?: HighWindow;
}

/** A command as it is sent to a lock. */
export interface Downlink {
  readonly id: number;
  /** From this time on, the lock must not carry out the command; ms since the epoch. */
  readonly expiresMs: number;
  readonly command: Command;
}

/** Who sent an uplink: the lock, or a phone that acts for it. The credential determines it (protocol.md §1). */
export type Source = 'lock' | 'phone';
