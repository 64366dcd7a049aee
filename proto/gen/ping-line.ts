// Generated from proto/wire/ping-fields.ts by `npm run gen`. Change the table and run it again; don’t edit this.

/**
 * Reads the members of a ping from a trace line in the canonical spelling, in the order of gen/ping-json.ts. Each
 * `TO_…` is the text before a value.
 */
import { type LineCursor, bytePattern, tokensOf } from '../trace/line-cursor.js';
import type { CellularPing, CloseConnectionPing, GpsPing, LockState, Ping, TetherState } from './ping-types.js';

type Writable<Ping> = { -readonly [Member in keyof Ping]: Ping[Member] };

const TO_REASON = bytePattern(',"reason":"');
const TO_LOCK_STATE = bytePattern(',"lock_state":"');
const TO_BATTERY_PERCENT = bytePattern(',"battery_percent":');
const TO_FIRMWARE_VERSION = bytePattern(',"firmware_version":"');
const TO_EBIKE_VOLTAGE = bytePattern(',"ebike_voltage":');
const TO_TETHER_STATE = bytePattern(',"tether_state":"');
const TO_LATITUDE = bytePattern(',"latitude":');
const TO_LONGITUDE = bytePattern(',"longitude":');
const TO_SPEED = bytePattern(',"speed":');
const TO_DIRECTION = bytePattern(',"direction":');
const TO_UNCERTAINTY = bytePattern(',"uncertainty":');

const PING_TYPES = tokensOf<Ping['kind']>('gps', 'cellular', 'close_connection');
const LOCK_STATE_WORDS = tokensOf<LockState>('locked', 'unlocked', 'unknown');
const TETHER_STATE_WORDS = tokensOf<TetherState>('attached', 'detached', 'unknown');

/** Reads a ping, starting at the value of `ping_type`; undefined if that value is not canonical. */
export function readPingLine(line: LineCursor): Ping | undefined {
  const kind = line.word(PING_TYPES);
  if (kind === 'cellular') return readCellular(line);
  if (kind === 'gps') return readGps(line);
  if (kind === 'close_connection') return readCloseConnection(line);
  return undefined;
}

function readCellular(line: LineCursor): CellularPing {
  line.pass(TO_REASON);
  const reason = line.reason();
  line.pass(TO_LOCK_STATE);
  const lockState = line.word(LOCK_STATE_WORDS) ?? 'unknown';
  line.pass(TO_BATTERY_PERCENT);
  const batteryPercent = line.count();
  line.pass(TO_FIRMWARE_VERSION);
  const firmwareVersion = line.text();
  line.pass(TO_EBIKE_VOLTAGE);
  const ebikeVolts = line.isNull() ? null : line.number();
  line.pass(TO_TETHER_STATE);
  const tetherState = line.word(TETHER_STATE_WORDS) ?? 'unknown';
  const ping: Writable<CellularPing> = {
    kind: 'cellular',
    reason,
    lockState,
    batteryPercent,
    firmwareVersion,
    ebikeVolts,
    tetherState,
    position: null,
  };
  if (line.skip(TO_LATITUDE)) {
    const latitudeDegrees = line.number();
    line.pass(TO_LONGITUDE);
    const longitudeDegrees = line.number();
    line.pass(TO_UNCERTAINTY);
    const uncertaintyMeters = line.number();
    ping.position = { latitudeDegrees, longitudeDegrees, uncertaintyMeters };
  }
  return ping;
}

function readGps(line: LineCursor): GpsPing {
  line.pass(TO_REASON);
  const reason = line.reason();
  line.pass(TO_LOCK_STATE);
  const lockState = line.word(LOCK_STATE_WORDS) ?? 'unknown';
  line.pass(TO_BATTERY_PERCENT);
  const batteryPercent = line.count();
  line.pass(TO_EBIKE_VOLTAGE);
  const ebikeVolts = line.isNull() ? null : line.number();
  line.pass(TO_TETHER_STATE);
  const tetherState = line.word(TETHER_STATE_WORDS) ?? 'unknown';
  line.pass(TO_LATITUDE);
  const latitudeDegrees = line.number();
  line.pass(TO_LONGITUDE);
  const longitudeDegrees = line.number();
  line.pass(TO_SPEED);
  const speedMetersPerSecond = line.number();
  line.pass(TO_DIRECTION);
  const directionDegrees = line.number();
  line.pass(TO_UNCERTAINTY);
  const uncertaintyMeters = line.number();
  return {
    kind: 'gps',
    reason,
    lockState,
    batteryPercent,
    ebikeVolts,
    tetherState,
    position: { latitudeDegrees, longitudeDegrees, uncertaintyMeters },
    speedMetersPerSecond,
    directionDegrees,
  };
}

function readCloseConnection(line: LineCursor): CloseConnectionPing {
  line.pass(TO_REASON);
  line.only('REASON_CLOSE_CONNECTION', line.reason());
  line.pass(TO_LOCK_STATE);
  const lockState = line.word(LOCK_STATE_WORDS) ?? 'unknown';
  line.pass(TO_BATTERY_PERCENT);
  const batteryPercent = line.count();
  return {
    kind: 'close_connection',
    reason: 'REASON_CLOSE_CONNECTION',
    lockState,
    batteryPercent,
  };
}
