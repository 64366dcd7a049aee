/** A ping of a ride in which `judge` has nothing to find, so that only the log has it. */
import type { Ping, PowerSettings } from '../../../proto/wire/ping.js';

/** The settings that it goes with: ride tracking is on. */
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
