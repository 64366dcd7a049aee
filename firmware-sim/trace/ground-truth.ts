/**
 * The ground truth: what truly happened around a simulated lock, as the members of a trace's `world` events
 * (protocol.md §4). This file makes them from the diary, the lock's own log; proto/trace/ground-truth.ts reads them
 * back. A member has the same name as the member of a ping with that meaning. The judge never reads these events. Pure.
 */
import { formatMac, type Mac } from '../../proto/wire/mac.js';
import type { PowerChange } from '../../proto/wire/ping.js';
import { formatDate } from '../../proto/wire/ping-json.js';
import type { DiaryEntry } from '../lock/diary.js';
import type { WorldChange } from '../world/world.js';

/** The members of a `world` event; undefined for an entry that is not about the world. */
export function worldMembers(mac: Mac, atMs: number, entry: DiaryEntry): Record<string, unknown> | undefined {
  const changed = membersOfEntry(entry);
  return changed && { at: formatDate(atMs), mac: formatMac(mac), event: 'world', ...changed };
}

/** An entry's members besides `at`, `mac` and `event`. */
function membersOfEntry(entry: DiaryEntry): Record<string, unknown> | undefined {
  if (entry.type === 'world') return membersOf(entry.change);
  if (entry.type === 'booted') {
    const { boot, covered, skyOpen, batteryPercent } = entry;
    return { boot, coverage: covered, sky: skyOpen, battery_percent: batteryPercent };
  }
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

function membersOf(change: WorldChange): Record<string, unknown> | undefined {
  switch (change.type) {
    // The diary's `booted` entry follows and has the boot number.
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
