// Generated from proto/wire/ping-fields.ts by `npm run gen`. Change the table and run it again; don’t edit this.

/**
 * Pings in our units, and their JSON. A value can be outside its plausible range: it is as the lock sent it.
 */
import type { Reason } from '../wire/reasons.js';

/** Whether the lock is locked; unknown if it doesn’t say. */
export type LockState = 'locked' | 'unlocked' | 'unknown';

/** Whether the tether is plugged into the lock; unknown if it doesn’t say. */
export type TetherState = 'attached' | 'detached' | 'unknown';

/** A place, as GPS or the cellular network reports it. */
export interface Position {
  /** Degrees north, −90 to 90 in a sane ping. */
  readonly latitudeDegrees: number;
  /** Degrees east, −180 to 180 in a sane ping. */
  readonly longitudeDegrees: number;
  /** Radius around the position, in whole metres. */
  readonly uncertaintyMeters: number;
}

/** A cellular ping. */
export interface CellularPing {
  readonly kind: 'cellular';
  /** Why it was sent. A reason that this version doesn’t know comes as REASON_UNRECOGNIZED_ and its number. */
  readonly reason: Reason;
  /** Whether the lock is locked; unknown if it doesn’t say. */
  readonly lockState: LockState;
  /** The lock’s battery, in percent; 0 to 100 in a sane lock. */
  readonly batteryPercent: number;
  /** The lock’s firmware version. Any text, also an empty one. */
  readonly firmwareVersion: string;
  /** Voltage of the e-bike’s battery, in volts; null if no e-bike is connected. */
  readonly ebikeVolts: number | null;
  /** Whether the tether is plugged into the lock; unknown if it doesn’t say. */
  readonly tetherState: TetherState;
  /** With REASON_CELL_PING, and from a phone. */
  readonly position: Position | null;
}

/** A GPS ping: the lock had a fix. */
export interface GpsPing {
  readonly kind: 'gps';
  /** Why it was sent. A reason that this version doesn’t know comes as REASON_UNRECOGNIZED_ and its number. */
  readonly reason: Reason;
  /** Whether the lock is locked; unknown if it doesn’t say. */
  readonly lockState: LockState;
  /** The lock’s battery, in percent; 0 to 100 in a sane lock. */
  readonly batteryPercent: number;
  /** Voltage of the e-bike’s battery, in volts; null if no e-bike is connected. */
  readonly ebikeVolts: number | null;
  /** Whether the tether is plugged into the lock; unknown if it doesn’t say. */
  readonly tetherState: TetherState;
  readonly position: Position;
  /** Metres per second. */
  readonly speedMetersPerSecond: number;
  /** Direction of the motion: degrees clockwise from north, [0, 360) in a sane ping. */
  readonly directionDegrees: number;
}

/** The lock leaves the network. Its reason follows from its type and is not on the wire. */
export interface CloseConnectionPing {
  readonly kind: 'close_connection';
  readonly reason: 'REASON_CLOSE_CONNECTION';
  /** Whether the lock is locked; unknown if it doesn’t say. */
  readonly lockState: LockState;
  /** The lock’s battery, in percent; 0 to 100 in a sane lock. */
  readonly batteryPercent: number;
}

export type Ping = CellularPing | GpsPing | CloseConnectionPing;

/** A cellular ping. */
export interface CellularPingJson {
  ping_type: 'cellular';
  /** Why it was sent. A reason that this version doesn’t know comes as REASON_UNRECOGNIZED_ and its number. */
  reason: Reason;
  /** Whether the lock is locked; unknown if it doesn’t say. */
  lock_state: LockState;
  /** The lock’s battery, in percent; 0 to 100 in a sane lock. */
  battery_percent: number;
  /** The lock’s firmware version. Any text, also an empty one. */
  firmware_version: string;
  /** Voltage of the e-bike’s battery, in volts; null if no e-bike is connected. */
  ebike_voltage: number | null;
  /** Whether the tether is plugged into the lock; unknown if it doesn’t say. */
  tether_state: TetherState;
  /** Degrees north, −90 to 90 in a sane ping. */
  latitude?: number;
  /** Degrees east, −180 to 180 in a sane ping. */
  longitude?: number;
  /** Radius around the position, in whole metres. */
  uncertainty?: number;
}

/** A GPS ping: the lock had a fix. */
export interface GpsPingJson {
  ping_type: 'gps';
  /** Why it was sent. A reason that this version doesn’t know comes as REASON_UNRECOGNIZED_ and its number. */
  reason: Reason;
  /** Whether the lock is locked; unknown if it doesn’t say. */
  lock_state: LockState;
  /** The lock’s battery, in percent; 0 to 100 in a sane lock. */
  battery_percent: number;
  /** Voltage of the e-bike’s battery, in volts; null if no e-bike is connected. */
  ebike_voltage: number | null;
  /** Whether the tether is plugged into the lock; unknown if it doesn’t say. */
  tether_state: TetherState;
  /** Degrees north, −90 to 90 in a sane ping. */
  latitude: number;
  /** Degrees east, −180 to 180 in a sane ping. */
  longitude: number;
  /** Metres per second. */
  speed: number;
  /** Direction of the motion: degrees clockwise from north, [0, 360) in a sane ping. */
  direction: number;
  /** Radius around the position, in whole metres. */
  uncertainty: number;
}

/** The lock leaves the network. Its reason follows from its type and is not on the wire. */
export interface CloseConnectionPingJson {
  ping_type: 'close_connection';
  reason: 'REASON_CLOSE_CONNECTION';
  /** Whether the lock is locked; unknown if it doesn’t say. */
  lock_state: LockState;
  /** The lock’s battery, in percent; 0 to 100 in a sane lock. */
  battery_percent: number;
}

/** The members of a ping itself in JSON, by its type. */
export type PingJson = CellularPingJson | GpsPingJson | CloseConnectionPingJson;
