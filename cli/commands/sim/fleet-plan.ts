/** Reads the flags of `sim run` that describe the locks and their surroundings. */
import { parseBugAssignment } from '../../../firmware-sim/faults/bugs.js';
import { parseFaults } from '../../../firmware-sim/faults/faults.js';
import { parseMix } from '../../../firmware-sim/fleet/mix.js';
import type { FleetPlan, SimFlags } from './flags.js';
import { readPlace } from './place.js';

/** The flags, parsed. @throws LockgateError `input-…` for a wrong flag or file */
export async function readFleetPlan(flags: SimFlags): Promise<FleetPlan> {
  return {
    mix: flags.mix === undefined ? undefined : parseMix(flags.mix),
    bugs: flags.bug.map(parseBugAssignment),
    faults: [...new Set(flags.fault.flatMap(parseFaults))],
    ...(await readPlace(flags.route, flags.around)),
  };
}
