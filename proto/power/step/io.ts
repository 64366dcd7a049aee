/**
 * What goes into `step` and what comes out of it: two closed unions (protocol.md §2).
 *
 * The host of a lock (firmware-sim/lock/lock.ts) owes `step` four things. It gives a tick at `wakeAtMs`, before any
 * input of a later time. It answers `connect` with connected or connect-failed, and `disconnect` with disconnected; a
 * drop needs no answer. It says nothing more of a connection that has ended. It reports an uplink as acknowledged when
 * the other side has it for good.
 */
import type { CommandResult, Downlink, Position, PowerChange, TetherState, Uplink } from '../../wire/ping.js';

/** What the GPS receiver reads: where the lock is and how it moves, at this moment. */
export interface GpsFix {
  readonly position: Position;
  /** Metres per second, 0 or more. */
  readonly speedMetersPerSecond: number;
  /** Clockwise from north, [0, 360). */
  readonly directionDegrees: number;
}

/** What happens to a lock. */
export type StepInput =
  /** Power came, or the firmware restarted. Everything but the flash is lost; the boot counter goes up. */
  | { readonly type: 'boot' }
  /**
   * Time passed. `fix` is what GPS reads now (see `needsFix`), `cellPosition` what the network says of the lock's place
   * (see `needsCellPosition`); null where there is none or none is needed.
   */
  | { readonly type: 'tick'; readonly fix: GpsFix | null; readonly cellPosition: Position | null }
  | { readonly type: 'motion'; readonly moving: boolean }
  /** The shackle was moved, by hand or by the phone. */
  | { readonly type: 'lock-state'; readonly lockState: 'locked' | 'unlocked' }
  /** The cellular network reaches the lock, or no longer. */
  | { readonly type: 'coverage'; readonly covered: boolean }
  /** GPS can be received here, or not. */
  | { readonly type: 'sky'; readonly open: boolean }
  | { readonly type: 'battery'; readonly percent: number }
  /** Volts of the e-bike's battery; null when none is connected. */
  | { readonly type: 'ebike'; readonly volts: number | null }
  | { readonly type: 'tether'; readonly tetherState: TetherState }
  /**
   * The power settings were changed by hand: the only way out of airplane mode. The high window is none of them, since
   * the other side learns of it by the acknowledgement of a set-power alone.
   */
  | { readonly type: 'settings'; readonly change: Omit<PowerChange, 'highWindow'> }
  /** The modem restarted by itself. This is no boot. */
  | { readonly type: 'modem-reset' }
  | { readonly type: 'connected' }
  | { readonly type: 'connect-failed' }
  /** The connection ended, as asked or by itself. */
  | { readonly type: 'disconnected' }
  /** The uplink of this name is stored on the other side (PUBACK). */
  | { readonly type: 'acknowledged'; readonly boot: number; readonly sequence: number }
  | { readonly type: 'command'; readonly downlink: Downlink };

/** What a lock does. */
export type StepEffect =
  | { readonly type: 'connect' }
  /** End the connection in good order. */
  | { readonly type: 'disconnect' }
  /** The connection is gone without a word: no coverage, or the modem restarted. */
  | { readonly type: 'drop' }
  /** Send this uplink, and report when it is acknowledged. After a lost connection it comes again, the same. */
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
  /** For the diary: an uplink was made; it will be published when its turn comes. */
  | { readonly type: 'made'; readonly uplink: Uplink }
  /** For the diary: an uplink was discarded because the buffer was full. */
  | { readonly type: 'discarded'; readonly uplink: Uplink }
  /** For the diary: a command is done with, for the first time. */
  | { readonly type: 'finished'; readonly commandId: number; readonly result: CommandResult; readonly detail: string };
