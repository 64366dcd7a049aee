/** A life with much to tell, for tests in which a fleet is watched for half an hour of its time. */
import { AMSTERDAM } from '../../firmware-sim/city.js';
import { OPENINGS } from '../../firmware-sim/opening.js';
import { LIVELY } from '../../firmware-sim/pace.js';
import { PlannedWorld } from '../../firmware-sim/planned-world.js';
import { Prng } from '../../firmware-sim/prng.js';
import type { World } from '../../firmware-sim/world.js';
import { DEFAULT_POWER } from '../../proto/ping.js';

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
