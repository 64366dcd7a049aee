/**
 * What truly happened around a lock as the members of a `world` event (protocol.md §4). The names are those of pings
 * where a ping has them.
 */
import type { PowerChange } from '../../proto/wire/ping.js';
import type { DiaryEntry } from '../lock/diary.js';
import type { WorldChange } from './world.js';

/** The members besides `at`, `mac` and `event`; undefined for an entry that tells nothing of the world. */
export function worldMembers(entry: DiaryEntry): Record<string, unknown> | undefined {
  if (entry.type === 'world') return membersOf(entry.change);
  if (entry.type === 'booted') return { boot: entry.boot };
  if (entry.type !== 'whereabouts') return undefined;
  const { position, speedMetersPerSecond, directionDegrees } = entry.fix;
  return {
    fix: {
      latitude: position.latitudeDegrees,
      longitude: position.longitudeDegrees,
      speed: speedMetersPerSecond,
      direction: directionDegrees,
    },
  };
}

/** A boot is told with its number, when it has one. */
function membersOf(change: WorldChange): Record<string, unknown> | undefined {
  switch (change.type) {
    case 'boot':
      return undefined;
    case 'motion':
      return { moving: change.moving };
    case 'lock-state':
      return { lock_state: change.lockState };
    case 'coverage':
      return { coverage: change.covered };
    case 'sky':
      return { sky: change.open };
    case 'battery':
      return { battery_percent: change.percent };
    case 'ebike':
      return { ebike_voltage: change.volts };
    case 'tether':
      return { tether_state: change.tetherState };
    case 'settings':
      return { power: powerMembers(change.change) };
    case 'modem-reset':
      return { modem_reset: true };
  }
}

function powerMembers({ mode, rideTracking, airplane, recovery }: PowerChange): Record<string, unknown> {
  return {
    ...(mode !== undefined && { mode }),
    ...(rideTracking !== undefined && { ride_tracking: rideTracking }),
    ...(airplane !== undefined && { airplane }),
    ...(recovery !== undefined && { recovery }),
  };
}
