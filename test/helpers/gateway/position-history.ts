/** Pings with positions and the history that `device show` lists, for tests that move or erase locks. */
import type { GpsPing, Uplink } from '../../../proto/wire/ping.js';
import { testBytes } from './test-gateway.js';

/** The lock's position: numbers that occur nowhere else in a store, so that its files can be searched for them. */
export const SECRET_POSITION = { latitudeDegrees: 12.3456789, longitudeDegrees: -98.7654321, uncertaintyMeters: 7 };
/** The position of another lock, or after the erasure. */
export const OTHER_POSITION = { latitudeDegrees: 31.4159265, longitudeDegrees: 27.1828182, uncertaintyMeters: 9 };

/** A GPS ping of a theft at a position. */
export function gpsBytes(sequence: number, position: GpsPing['position'], members: Partial<Uplink> = {}): Buffer {
  const body: GpsPing = {
    kind: 'gps',
    reason: 'REASON_THEFT',
    lockState: 'locked',
    batteryPercent: 80,
    ebikeVolts: null,
    tetherState: 'detached',
    position,
    speedMetersPerSecond: 3,
    directionDegrees: 90,
  };
  return testBytes(sequence, { body, ...members });
}

/** {@link historyOf} of a lock without a history. */
export const NO_HISTORY = { uplinks: [], phone_uplinks: [], findings: [], quarantine: [] };

/** What `device show` lists of a lock. */
export function historyOf({ uplinks, phone_uplinks, findings, quarantine }: Record<string, unknown>) {
  return { uplinks, phone_uplinks, findings, quarantine };
}
