/** A ping of a ride that has no findings, so that it is only stored in the log. */
import type { Ping, PowerSettings } from '../../../proto/wire/ping.js';

/** Its settings: ride tracking is on. */
export const RIDE_POWER: PowerSettings = { mode: 'MID', rideTracking: true, airplane: false, recovery: false };

export const RIDE_PING: Ping = {
  kind: 'gps',
  reason: 'REASON_UNLOCKED_PING',
  lockState: 'unlocked',
  batteryPercent: 81,
  ebikeVolts: null,
  tetherState: 'detached',
  position: { latitudeDegrees: 52.37, longitudeDegrees: 4.89, uncertaintyMeters: 8 },
  speedMetersPerSecond: 3,
  directionDegrees: 90,
};
