// Generated from proto/wire/ping-fields.ts by `npm run gen`. Change the table and run it again; don’t edit this.

/**
 * Pings to JSON and back. wire/ping-json.ts and wire/ping-from-json.ts add the envelope.
 */
import type { JsonObject, JsonReader } from '../json-reader.js';
import { readReason } from '../wire/reasons.js';
import type {
  CellularPing,
  GpsPing,
  CloseConnectionPing,
  CellularPingJson,
  GpsPingJson,
  CloseConnectionPingJson,
  LockState,
  TetherState,
  Ping,
  PingJson,
} from './ping-types.js';

const PING_TYPES: readonly Ping['kind'][] = ['cellular', 'gps', 'close_connection'];
const LOCK_STATE_WORDS: readonly LockState[] = ['locked', 'unlocked', 'unknown'];
const TETHER_STATE_WORDS: readonly TetherState[] = ['attached', 'detached', 'unknown'];

/** The ping's own members. */
export function pingToJson(ping: Ping): PingJson {
  if (ping.kind === 'cellular') return cellularToJson(ping);
  if (ping.kind === 'gps') return gpsToJson(ping);
  return closeConnectionToJson(ping);
}

function cellularToJson(ping: CellularPing): CellularPingJson {
  const json: CellularPingJson = {
    ping_type: ping.kind,
    reason: ping.reason,
    lock_state: ping.lockState,
    battery_percent: ping.batteryPercent,
    firmware_version: ping.firmwareVersion,
    ebike_voltage: ping.ebikeVolts,
    tether_state: ping.tetherState,
  };
  if (ping.position !== null) {
    json.latitude = ping.position.latitudeDegrees;
    json.longitude = ping.position.longitudeDegrees;
    json.uncertainty = ping.position.uncertaintyMeters;
  }
  return json;
}

function gpsToJson(ping: GpsPing): GpsPingJson {
  return {
    ping_type: ping.kind,
    reason: ping.reason,
    lock_state: ping.lockState,
    battery_percent: ping.batteryPercent,
    ebike_voltage: ping.ebikeVolts,
    tether_state: ping.tetherState,
    latitude: ping.position.latitudeDegrees,
    longitude: ping.position.longitudeDegrees,
    speed: ping.speedMetersPerSecond,
    direction: ping.directionDegrees,
    uncertainty: ping.position.uncertaintyMeters,
  };
}

function closeConnectionToJson(ping: CloseConnectionPing): CloseConnectionPingJson {
  return {
    ping_type: ping.kind,
    reason: ping.reason,
    lock_state: ping.lockState,
    battery_percent: ping.batteryPercent,
  };
}

/** Reads a ping without its envelope. Leaves an error in `reader`. Ignores unknown members. */
export function readPing(reader: JsonReader, json: JsonObject, name: string): Ping {
  const kind = reader.word(json.ping_type, name, 'ping_type', PING_TYPES);
  const lockState = reader.word(json.lock_state, name, 'lock_state', LOCK_STATE_WORDS);
  const batteryPercent = reader.count(json.battery_percent, name, 'battery_percent');
  if (kind === 'close_connection') {
    if (json.reason !== undefined) reader.word(json.reason, name, 'reason', ['REASON_CLOSE_CONNECTION']);
    return { kind, reason: 'REASON_CLOSE_CONNECTION', lockState, batteryPercent };
  }
  const common = { lockState, batteryPercent };
  return kind === 'gps' ? readGps(reader, json, name, common) : readCellular(reader, json, name, common);
}

type Common = Pick<CloseConnectionPing, 'lockState' | 'batteryPercent'>;

function readCellular(reader: JsonReader, json: JsonObject, name: string, common: Common): CellularPing {
  return {
    kind: 'cellular',
    reason: readReason(reader, json.reason, name),
    lockState: common.lockState,
    batteryPercent: common.batteryPercent,
    firmwareVersion: json.firmware_version === undefined ? '' : reader.text(json.firmware_version, name, 'firmware_version'),
    ebikeVolts: json.ebike_voltage === undefined || json.ebike_voltage === null ? null : reader.number(json.ebike_voltage, name, 'ebike_voltage'),
    tetherState: json.tether_state === undefined ? 'unknown' : reader.word(json.tether_state, name, 'tether_state', TETHER_STATE_WORDS),
    position: json.latitude !== undefined || json.longitude !== undefined ? {
      latitudeDegrees: reader.number(json.latitude, name, 'latitude'),
      longitudeDegrees: reader.number(json.longitude, name, 'longitude'),
      uncertaintyMeters: reader.number(json.uncertainty ?? 0, name, 'uncertainty'),
    } : null,
  };
}

function readGps(reader: JsonReader, json: JsonObject, name: string, common: Common): GpsPing {
  return {
    kind: 'gps',
    reason: readReason(reader, json.reason, name),
    lockState: common.lockState,
    batteryPercent: common.batteryPercent,
    ebikeVolts: json.ebike_voltage === undefined || json.ebike_voltage === null ? null : reader.number(json.ebike_voltage, name, 'ebike_voltage'),
    tetherState: json.tether_state === undefined ? 'unknown' : reader.word(json.tether_state, name, 'tether_state', TETHER_STATE_WORDS),
    position: {
      latitudeDegrees: reader.number(json.latitude, name, 'latitude'),
      longitudeDegrees: reader.number(json.longitude, name, 'longitude'),
      uncertaintyMeters: reader.number(json.uncertainty, name, 'uncertainty'),
    },
    speedMetersPerSecond: reader.number(json.speed, name, 'speed'),
    directionDegrees: reader.number(json.direction, name, 'direction'),
  };
}
