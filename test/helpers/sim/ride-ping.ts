/**
 * A ping of a ride that causes no findings at any rate, so that a gateway only stores it in its log of uplinks. The
 * ping is cellular, since the specification fixes the interval of GPS pings.
 */
import type { Ping, PowerSettings } from '../../../proto/wire/ping.js';

/** The settings of the ping's lock: ride tracking is on. */
export const RIDE_POWER: PowerSettings = { mode: 'MID', rideTracking: true, airplane: false, recovery: false };

/** The ping: the bicycle is unlocked and moves. */
export const RIDE_PING: Ping = {
  kind: 'cellular',
  reason: 'REASON_UNLOCKED_MOVEMENT',
  lockState: 'unlocked',
  batteryPercent: 81,
  ebikeVolts: null,
  tetherState: 'detached',
  firmwareVersion: '2.4.1',
  position: null,
};
