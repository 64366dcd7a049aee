/**
 * The columns of Traccar's CSV export of positions (Reports → Route → CSV; `GET /api/positions/csv`). Attributes
 * of a position are columns too, if at least one position of the export has them. A user's map can override members.
 */
import type { ColumnMap, ColumnRule } from './column-map.js';

const METERS_PER_SECOND_PER_KNOT = 1852 / 3600;

/** Traccar's alarms that mean that a vehicle is moved without its rider. */
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

/** The built-in map for Traccar's export. */
export const TRACCAR_MAP: ColumnMap = Object.freeze({
  delimiter: ',',
  row: {
    time: required('serverTime'),
    mac: required('deviceId'),
    // A position without a GPS fix repeats an earlier position.
    only: { ...required('valid'), values: new Map([['true', 'true']]), fallback: 'false' },
  },
  ping: {
    ping_type: fixed('gps'),
    reason: {
      ...optional('alarm', 'REASON_UNLOCKED_PING'),
      values: new Map(THEFT_ALARMS.map((alarm) => [alarm, 'REASON_THEFT'])),
    },
    // A tracker reports its position all the time, as a lock does in a ride with ride tracking on.
    ride_tracking: fixed('true'),
    date: optional('deviceTime'),
    latitude: required('latitude'),
    longitude: required('longitude'),
    speed: { ...optional('speed'), scale: METERS_PER_SECOND_PER_KNOT },
    direction: optional('course'),
    uncertainty: optional('accuracy'),
    battery_percent: optional('batteryLevel'),
    ebike_voltage: optional('power'),
  },
  devices: new Map(),
  // Traccar writes addresses, which contain commas, without quotes.
  unquotedColumn: 'address',
  inventsMacs: true,
});
