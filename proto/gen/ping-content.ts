// Generated from proto/wire/ping-fields.ts by `npm run gen`. Change the table and run it again; don’t edit this.

/**
 * Functions over all fields of a ping: its fingerprint, and whether its values are plausible.
 */
import { mix, mixNumber, mixText } from '../wire/mixer.js';
import { reasonNumber } from '../wire/reasons.js';
import type { LockState, Ping, Position, TetherState } from './ping-types.js';

const LOCK_STATE_WORDS: readonly LockState[] = ['unknown', 'locked', 'unlocked'];
const TETHER_STATE_WORDS: readonly TetherState[] = ['unknown', 'attached', 'detached'];

/** Mixes all fields of a ping into the fingerprint. An optional field also adds whether it is present. */
export function mixPing(ping: Ping): void {
  switch (ping.kind) {
    case 'cellular':
      mix(0);
      mix(reasonNumber(ping.reason) ?? 0);
      mix(LOCK_STATE_WORDS.indexOf(ping.lockState));
      mix(ping.batteryPercent);
      mixText(ping.firmwareVersion);
      if (ping.ebikeVolts !== null) {
        mix(1);
        mixNumber(ping.ebikeVolts);
      } else mix(0);
      mix(TETHER_STATE_WORDS.indexOf(ping.tetherState));
      if (ping.position !== null) {
        mix(1);
        mixNumber(ping.position.latitudeDegrees);
        mixNumber(ping.position.longitudeDegrees);
        mixNumber(ping.position.uncertaintyMeters);
      } else mix(0);
      break;
    case 'gps':
      mix(1);
      mix(reasonNumber(ping.reason) ?? 0);
      mix(LOCK_STATE_WORDS.indexOf(ping.lockState));
      mix(ping.batteryPercent);
      if (ping.ebikeVolts !== null) {
        mix(1);
        mixNumber(ping.ebikeVolts);
      } else mix(0);
      mix(TETHER_STATE_WORDS.indexOf(ping.tetherState));
      mixNumber(ping.position.latitudeDegrees);
      mixNumber(ping.position.longitudeDegrees);
      mixNumber(ping.position.uncertaintyMeters);
      mixNumber(ping.speedMetersPerSecond);
      mixNumber(ping.directionDegrees);
      break;
    case 'close_connection':
      mix(2);
      mix(LOCK_STATE_WORDS.indexOf(ping.lockState));
      mix(ping.batteryPercent);
      break;
  }
}

/** Whether the position is plausible: on the globe, with a plausible uncertainty. */
export function isPlausiblePosition(position: Position): boolean {
  return position.latitudeDegrees >= -90 && position.latitudeDegrees <= 90 && position.longitudeDegrees >= -180 && position.longitudeDegrees <= 180 && position.uncertaintyMeters >= 0;
}

/** Whether each value of the ping is in its plausible range. */
export function isPlausiblePing(ping: Ping): boolean {
  if (!(ping.batteryPercent >= 0 && ping.batteryPercent <= 100)) return false;
  if (ping.kind === 'close_connection') return true;
  if (ping.position !== null && !isPlausiblePosition(ping.position)) return false;
  if (ping.kind === 'gps') {
    if (!(ping.speedMetersPerSecond >= 0)) return false;
    if (!(ping.directionDegrees >= 0 && ping.directionDegrees < 360)) return false;
  }
  return true;
}
