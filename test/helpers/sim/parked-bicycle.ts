/** The default first state of a simulated lock in tests: a bicycle that is parked and locked. */
import { DEFAULT_POWER } from '../../../proto/wire/ping.js';

/** What the lock and its surroundings are at the start: with coverage, and with a free sky for GPS. */
export const PARKED = {
  lockState: 'locked',
  batteryPercent: 70,
  power: DEFAULT_POWER,
  ebikeVolts: null,
  tetherState: 'unknown',
  covered: true,
  skyOpen: true,
} as const;

/** The position of the parked bicycle. */
export const PARKED_AT = { latitudeDegrees: 52.1, longitudeDegrees: 4.5, uncertaintyMeters: 6 } as const;
