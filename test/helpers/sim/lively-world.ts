/** Worlds in which much happens to the lock, for tests that run a fleet for half an hour of simulated time. */

import { Prng } from '../../../firmware-sim/prng.js';
import { DEMO_SCRIPTS } from '../../../firmware-sim/world/demo-script.js';
import { LIVELY } from '../../../firmware-sim/world/pace.js';
import { PlannedWorld } from '../../../firmware-sim/world/planned-world.js';
import { AMSTERDAM } from '../../../firmware-sim/world/routes/city.js';
import type { World } from '../../../firmware-sim/world/world.js';
import { DEFAULT_POWER } from '../../../proto/wire/ping.js';

/**
 * A world with one of the demo's scripts, which fix the lock's first settings and events. Locks with an odd index are
 * in recovery with ride tracking, so that they send more uplinks.
 */
export function livelyWorld(index: number, startMs: number, seed: number): World {
  const script = DEMO_SCRIPTS[index % DEMO_SCRIPTS.length];
  const recoveryPower = { ...DEFAULT_POWER, recovery: true, rideTracking: true };
  return new PlannedWorld({
    prng: new Prng(seed).fork(index),
    city: AMSTERDAM,
    startMs,
    pace: LIVELY,
    ...(script && { script: index % 2 === 0 ? script : { ...script, power: recoveryPower } }),
  });
}
