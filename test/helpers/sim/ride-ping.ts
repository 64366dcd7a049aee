/** A ping of a ride that causes no findings, so that a gateway only stores it in the log. */
import type { Ping, PowerSettings } from '../../../proto/wire/ping.js';

/** The settings of the ping's lock: ride tracking is on. */
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
