/**
 * The columns of Traccar's CSV export of positions (Reports → Route → CSV; `GET /api/positions/csv`). Its attributes
 * are columns too, if a position of the export has them. A user's map changes single members.
 */
import type { ColumnMap, ColumnRule } from './column-map.js';

const METERS_PER_SECOND_OF_KNOT = 1852 / 3600;

/** Traccar's alarms of a vehicle that is moved without its rider. */
const THEFT_ALARMS = ['movement', 'tampering', 'tow', 'vibration', 'removing'] as const;

function required(column: string): ColumnRule {
  return { column, values: null, fallback: null, scale: 1, isOptional: false };
}

function optional(column: string, fallback: string | null = null): ColumnRule {
  return { column, values: null, fallback, scale: 1, isOptional: true };
}

function fixed(value: string): ColumnRule {
  return { column: null, values: null, fallback: value, scale: 1, isOptional: true };
}

/** See the head of this file. */
export const TRACCAR_MAP: ColumnMap = Object.freeze({
  delimiter: ',',
  row: {
    time: required('serverTime'),
    mac: required('deviceId'),
    // A position without a fix is an old one.
    only: { ...required('valid'), values: new Map([['true', 'true']]), fallback: 'false' },
  },
  ping: {
    ping_type: fixed('gps'),
    reason: {
      ...optional('alarm', 'REASON_UNLOCKED_PING'),
      values: new Map(THEFT_ALARMS.map((alarm) => [alarm, 'REASON_THEFT'])),
    },
    // Positions of a tracker are those of a ride with ride tracking on.
    ride_tracking: fixed('true'),
    date: optional('deviceTime'),
    latitude: required('latitude'),
    longitude: required('longitude'),
    speed: { ...optional('speed'), scale: METERS_PER_SECOND_OF_KNOT },
    direction: optional('course'),
    uncertainty: optional('accuracy'),
    battery_percent: optional('batteryLevel'),
    ebike_voltage: optional('power'),
  },
  devices: new Map(),
  unquotedColumn: 'address',
  inventsMacs: true,
});
