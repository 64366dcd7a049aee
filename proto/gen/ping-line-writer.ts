// Generated from proto/wire/ping-fields.ts by `npm run gen`. Change the table and run it again; don’t edit this.

/**
 * Writes the members of a ping into a trace line: the same bytes as JSON.stringify of gen/ping-json.ts. Each
 * `TO_…` is the text before a value.
 */
import { type LineBuilder, linePart } from '../trace/line-builder.js';
import type { CellularPing, CloseConnectionPing, GpsPing, Ping } from './ping-types.js';

const TO_REASON = linePart(',"reason":');
const TO_LOCK_STATE = linePart(',"lock_state":');
const TO_BATTERY_PERCENT = linePart(',"battery_percent":');
const TO_FIRMWARE_VERSION = linePart(',"firmware_version":');
const TO_EBIKE_VOLTAGE = linePart(',"ebike_voltage":');
const TO_TETHER_STATE = linePart(',"tether_state":');
const TO_LATITUDE = linePart(',"latitude":');
const TO_LONGITUDE = linePart(',"longitude":');
const TO_SPEED = linePart(',"speed":');
const TO_DIRECTION = linePart(',"direction":');
const TO_UNCERTAINTY = linePart(',"uncertainty":');
const TYPE_CELLULAR = linePart('"cellular"');
const TYPE_GPS = linePart('"gps"');
const TYPE_CLOSE_CONNECTION = linePart('"close_connection"');

/** Writes a ping, starting with the value of `ping_type`. */
export function writePingLine(line: LineBuilder, ping: Ping): void {
  if (ping.kind === 'cellular') writeCellular(line, ping);
  else if (ping.kind === 'gps') writeGps(line, ping);
  else writeCloseConnection(line, ping);
}

function writeCellular(line: LineBuilder, ping: CellularPing): void {
  line.part(TYPE_CELLULAR);
  line.part(TO_REASON);
  line.text(ping.reason);
  line.part(TO_LOCK_STATE);
  line.text(ping.lockState);
  line.part(TO_BATTERY_PERCENT);
  line.number(ping.batteryPercent);
  line.part(TO_FIRMWARE_VERSION);
  line.text(ping.firmwareVersion);
  line.part(TO_EBIKE_VOLTAGE);
  if (ping.ebikeVolts === null) line.nothing();
  else line.number(ping.ebikeVolts);
  line.part(TO_TETHER_STATE);
  line.text(ping.tetherState);
  if (ping.position !== null) {
    line.part(TO_LATITUDE);
    line.number(ping.position.latitudeDegrees);
    line.part(TO_LONGITUDE);
    line.number(ping.position.longitudeDegrees);
    line.part(TO_UNCERTAINTY);
    line.number(ping.position.uncertaintyMeters);
  }
}

function writeGps(line: LineBuilder, ping: GpsPing): void {
  line.part(TYPE_GPS);
  line.part(TO_REASON);
  line.text(ping.reason);
  line.part(TO_LOCK_STATE);
  line.text(ping.lockState);
  line.part(TO_BATTERY_PERCENT);
  line.number(ping.batteryPercent);
  line.part(TO_EBIKE_VOLTAGE);
  if (ping.ebikeVolts === null) line.nothing();
  else line.number(ping.ebikeVolts);
  line.part(TO_TETHER_STATE);
  line.text(ping.tetherState);
  line.part(TO_LATITUDE);
  line.number(ping.position.latitudeDegrees);
  line.part(TO_LONGITUDE);
  line.number(ping.position.longitudeDegrees);
  line.part(TO_SPEED);
  line.number(ping.speedMetersPerSecond);
  line.part(TO_DIRECTION);
  line.number(ping.directionDegrees);
  line.part(TO_UNCERTAINTY);
  line.number(ping.position.uncertaintyMeters);
}

function writeCloseConnection(line: LineBuilder, ping: CloseConnectionPing): void {
  line.part(TYPE_CLOSE_CONNECTION);
  line.part(TO_REASON);
  line.text(ping.reason);
  line.part(TO_LOCK_STATE);
  line.text(ping.lockState);
  line.part(TO_BATTERY_PERCENT);
  line.number(ping.batteryPercent);
}
