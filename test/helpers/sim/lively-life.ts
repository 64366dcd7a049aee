/** A life with much to tell, for tests in which a fleet is watched for half an hour of its time. */

import { Prng } from '../../../firmware-sim/prng.js';
import { OPENINGS } from '../../../firmware-sim/world/opening.js';
import { LIVELY } from '../../../firmware-sim/world/pace.js';
import { PlannedWorld } from '../../../firmware-sim/world/planned-world.js';
import { AMSTERDAM } from '../../../firmware-sim/world/routes/city.js';
import type { World } from '../../../firmware-sim/world/world.js';
import { DEFAULT_POWER } from '../../../proto/wire/ping.js';

/** Each opening of the demo, every other lock in recovery with ride tracking, so that there is much to tell. */
export function livelyLife(index: number, startMs: number, seed: number): World {
  const opening = OPENINGS[index % OPENINGS.length];
  const recovering = { ...DEFAULT_POWER, recovery: true, rideTracking: true };
  return new PlannedWorld({
    prng: new Prng(seed).fork(index),
    city: AMSTERDAM,
    startMs,
    pace: LIVELY,
    ...(opening && { opening: index % 2 === 0 ? opening : { ...opening, power: recovering } }),
  });
}
