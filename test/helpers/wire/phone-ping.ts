/** The ping that a phone sends for its lock in tests. */
import type { CellularPing } from '../../../proto/wire/ping.js';

export const PHONE_PING: CellularPing = {
  kind: 'cellular',
  reason: 'PHONE',
  lockState: 'unlocked',
  batteryPercent: 5,
  firmwareVersion: 'sdk',
  ebikeVolts: null,
  tetherState: 'unknown',
  position: { latitudeDegrees: 48.85, longitudeDegrees: 2.35, uncertaintyMeters: 12 },
};
