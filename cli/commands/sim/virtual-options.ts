/** The options of a virtual run that the flags of `sim run` give. */
import type { VirtualTraceOptions } from '../../../firmware-sim/fleet/virtual-trace.js';
import type { FleetPlan, SimFlags } from './flags.js';
import { DEFAULT_DAYS, DEFAULT_LOCKS, repeatCommand } from './summary.js';

/** The options of the run. @param startMs when it starts, ms since the epoch */
export function virtualOptions(flags: SimFlags, plan: FleetPlan, startMs: number): VirtualTraceOptions {
  const includeOut = false;
  return {
    seed: flags.seed,
    locks: flags.locks ?? DEFAULT_LOCKS,
    days: flags.days ?? DEFAULT_DAYS,
    startMs,
    pace: flags.pace,
    note: repeatCommand(flags, includeOut),
    hasWorldEvents: flags.world ?? false,
    bugs: plan.bugs,
    faults: plan.faults,
    ...(plan.mix && { mix: plan.mix }),
    ...(plan.city && { city: plan.city }),
    ...(plan.path && { path: plan.path }),
  };
}
