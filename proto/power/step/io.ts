/**
 * What goes into `step` and what comes out of it: two closed unions (protocol.md §2).
 *
 * The host is the program that calls `step` for a lock (firmware-sim/lock/lock.ts). A *tick* is an input that says only
 * that time has passed. The host must obey four rules:
 *
 * - It gives a tick at the time `wakeAtMs` that the last step returned, before any input of a later time.
 * - It answers `connect` with `connected` or `connect-failed`, and `disconnect` with `disconnected`. `drop` needs no
 *   answer.
 * - It gives no further input about a connection that has ended.
 * - It gives `acknowledged` only when the gateway has stored the uplink.
 */
import type { CommandResult, Downlink, Position, PowerChange, TetherState, Uplink } from '../../wire/ping.js';

/** What the GPS receiver measures: where the lock is and how it moves, at this moment. */
export interface GpsFix {
  readonly position: Position;
  /** Metres per second, 0 or more. */
  readonly speedMetersPerSecond: number;
  /** Clockwise from north, [0, 360). */
  readonly directionDegrees: number;
}

/** Something that happens to a lock. */
export type StepInput =
  /** The lock got power, or the firmware restarted. Everything but the flash is lost; the boot counter goes up. */
  | { readonly type: 'boot' }
  /**
   * Time passed. `fix` is the GPS measurement at this moment (see `needsFix`), `cellPosition` the lock's position
   * according to the cellular network (see `needsCellPosition`). Each is null if it is unavailable or not needed.
   */
  | { readonly type: 'tick'; readonly fix: GpsFix | null; readonly cellPosition: Position | null }
  | { readonly type: 'motion'; readonly moving: boolean }
  /** The user moved the shackle, directly or by phone. */
  | { readonly type: 'lock-state'; readonly lockState: 'locked' | 'unlocked' }
  /** The lock enters or leaves the coverage of the cellular network. */
  | { readonly type: 'coverage'; readonly covered: boolean }
  /** GPS can be received here, or not. */
  | { readonly type: 'sky'; readonly open: boolean }
  | { readonly type: 'battery'; readonly percent: number }
  /** The voltage of the e-bike's battery; null when none is connected. */
  | { readonly type: 'ebike'; readonly volts: number | null }
  | { readonly type: 'tether'; readonly tetherState: TetherState }
  /**
   * The user changed power settings at the lock: the only way out of airplane mode. The high window can't be changed
   * like this, because only the acknowledgement of a set-power reports it to the gateway.
   */
  | { readonly type: 'settings'; readonly change: Omit<PowerChange, 'highWindow'> }
  /** The modem restarted without a command. The lock itself does not reboot. */
  | { readonly type: 'modem-reset' }
  | { readonly type: 'connected' }
  | { readonly type: 'connect-failed' }
  /** The connection ended, because the lock closed it or because it broke. */
  | { readonly type: 'disconnected' }
  /** The gateway has stored the uplink with this key (PUBACK). */
  | { readonly type: 'acknowledged'; readonly boot: number; readonly sequence: number }
  | { readonly type: 'command'; readonly downlink: Downlink };

/** Something that a lock does. The host carries it out. */
export type StepEffect =
  | { readonly type: 'connect' }
  /** The lock closes the connection with an MQTT DISCONNECT. */
  | { readonly type: 'disconnect' }
  /** The connection breaks without an MQTT DISCONNECT: no coverage, or the modem restarted. */
  | { readonly type: 'drop' }
  /** The lock sends this uplink. If the connection breaks first, the lock sends the same uplink again later. */
  | { readonly type: 'publish'; readonly uplink: Uplink }
  | { readonly type: 'gps-on' }
  | { readonly type: 'gps-off' }
  /** The motor opens the shackle. */
  | { readonly type: 'unlock' }
  /** The motor closes the shackle. */
  | { readonly type: 'lock' }
  /** The tone that warns before the lock closes. */
  | { readonly type: 'tone'; readonly durationMs: number }
  | { readonly type: 'siren'; readonly durationMs: number }
  /** For the log only: the lock made an uplink. It publishes the uplinks in its buffer one by one. */
  | { readonly type: 'made'; readonly uplink: Uplink }
  /** For the log only: the lock discarded an uplink because the buffer was full. */
  | { readonly type: 'discarded'; readonly uplink: Uplink }
  /** For the log only: the lock finished a command. Repeats of the command don't count. */
  | { readonly type: 'finished'; readonly commandId: number; readonly result: CommandResult; readonly detail: string };
