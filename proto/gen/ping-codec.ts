// Generated from proto/wire/ping-fields.ts by `npm run gen`. Change the table and run it again; don’t edit this.

/**
 * The part of wire/codec.ts that is about pings. It converts units; no other code does.
 */
import type { lockgate } from '#lock-pb';
import { reasonFromNumber } from '../wire/reasons.js';
import {
  checkInteger,
  checkUnicode,
  toAngle,
  toReasonNumber,
  toSigned32,
  toUnsigned32,
} from '../wire/wire-values.js';
import type {
  CellularPing,
  GpsPing,
  CloseConnectionPing,
  LockState,
  TetherState,
} from './ping-types.js';

const LOCK_STATE_WORDS: readonly LockState[] = ['unknown', 'locked', 'unlocked'];
const TETHER_STATE_WORDS: readonly TetherState[] = ['unknown', 'attached', 'detached'];

/** Reads a cellular ping from its message. */
export function readCellular(message: lockgate.v1.CellularPing): CellularPing {
  return {
    kind: 'cellular',
    reason: reasonFromNumber(message.reason),
    lockState: LOCK_STATE_WORDS[message.lockState] ?? 'unknown',
    batteryPercent: message.batteryPercent,
    firmwareVersion: message.firmwareVersion,
    ebikeVolts: message.ebikeMillivolts !== null && message.ebikeMillivolts !== undefined ? message.ebikeMillivolts / 1000 : null,
    tetherState: TETHER_STATE_WORDS[message.tetherState] ?? 'unknown',
    position: message.latitudeE7 !== null && message.latitudeE7 !== undefined && message.longitudeE7 !== null && message.longitudeE7 !== undefined ? { latitudeDegrees: message.latitudeE7 / 10000000, longitudeDegrees: message.longitudeE7 / 10000000, uncertaintyMeters: (message.uncertaintyM ?? 0) } : null,
  };
}

/** Reads a gps ping from its message. */
export function readGps(message: lockgate.v1.GpsPing): GpsPing {
  return {
    kind: 'gps',
    reason: reasonFromNumber(message.reason),
    lockState: LOCK_STATE_WORDS[message.lockState] ?? 'unknown',
    batteryPercent: message.batteryPercent,
    ebikeVolts: message.ebikeMillivolts !== null && message.ebikeMillivolts !== undefined ? message.ebikeMillivolts / 1000 : null,
    tetherState: TETHER_STATE_WORDS[message.tetherState] ?? 'unknown',
    position: { latitudeDegrees: message.latitudeE7 / 10000000, longitudeDegrees: message.longitudeE7 / 10000000, uncertaintyMeters: message.uncertaintyM },
    speedMetersPerSecond: message.speedCmPerS / 100,
    directionDegrees: message.directionCentidegrees / 100,
  };
}

/** Reads a close_connection ping from its message. */
export function readCloseConnection(message: lockgate.v1.CloseConnectionPing): CloseConnectionPing {
  return {
    kind: 'close_connection',
    reason: 'REASON_CLOSE_CONNECTION',
    lockState: LOCK_STATE_WORDS[message.lockState] ?? 'unknown',
    batteryPercent: message.batteryPercent,
  };
}

/** Writes a cellular ping as its message. @throws LockgateError `unencodable` where a value does not fit */
export function writeCellular(ping: CellularPing): lockgate.v1.CellularPing.$Properties {
  const message: lockgate.v1.CellularPing.$Properties = {
    reason: toReasonNumber(ping.reason),
    lockState: LOCK_STATE_WORDS.indexOf(ping.lockState),
    batteryPercent: checkInteger('battery', ping.batteryPercent, 0, 0xffffffff),
    firmwareVersion: checkUnicode('firmware version', ping.firmwareVersion),
    tetherState: TETHER_STATE_WORDS.indexOf(ping.tetherState),
  };
  if (ping.ebikeVolts !== null) message.ebikeMillivolts = toUnsigned32('e-bike voltage', ping.ebikeVolts, 1000);
  if (ping.position !== null) {
    message.latitudeE7 = toSigned32('latitude', ping.position.latitudeDegrees, 10000000);
    message.longitudeE7 = toSigned32('longitude', ping.position.longitudeDegrees, 10000000);
    message.uncertaintyM = toSigned32('uncertainty', ping.position.uncertaintyMeters, 1);
  }
  return message;
}

/** Writes a gps ping as its message. @throws LockgateError `unencodable` where a value does not fit */
export function writeGps(ping: GpsPing): lockgate.v1.GpsPing.$Properties {
  const message: lockgate.v1.GpsPing.$Properties = {
    reason: toReasonNumber(ping.reason),
    lockState: LOCK_STATE_WORDS.indexOf(ping.lockState),
    batteryPercent: checkInteger('battery', ping.batteryPercent, 0, 0xffffffff),
    tetherState: TETHER_STATE_WORDS.indexOf(ping.tetherState),
    latitudeE7: toSigned32('latitude', ping.position.latitudeDegrees, 10000000),
    longitudeE7: toSigned32('longitude', ping.position.longitudeDegrees, 10000000),
    uncertaintyM: toSigned32('uncertainty', ping.position.uncertaintyMeters, 1),
    speedCmPerS: toSigned32('speed', ping.speedMetersPerSecond, 100),
    directionCentidegrees: toAngle('direction', ping.directionDegrees, 100, 360),
  };
  if (ping.ebikeVolts !== null) message.ebikeMillivolts = toUnsigned32('e-bike voltage', ping.ebikeVolts, 1000);
  return message;
}

/** Writes a close_connection ping as its message. @throws LockgateError `unencodable` where a value does not fit */
export function writeCloseConnection(ping: CloseConnectionPing): lockgate.v1.CloseConnectionPing.$Properties {
  return {
    lockState: LOCK_STATE_WORDS.indexOf(ping.lockState),
    batteryPercent: checkInteger('battery', ping.batteryPercent, 0, 0xffffffff),
  };
}
