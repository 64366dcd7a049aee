/** `lockgate sim run`: parses the flags, and runs the fleet with or without a gateway. */
import { LockgateError } from '../../../proto/errors.js';
import type { Interruption } from '../../terminal/interrupt.js';
import type { FleetPlan, SimFlags } from './flags.js';
import { readFleetPlan } from './fleet-plan.js';
import { runTracedLive, runTracedVirtually } from './from-trace.js';
import { runLive } from './live.js';
import { runVirtually } from './virtual.js';

/** Runs the fleet and prints the result. @throws LockgateError `input-…` for a flag, or the gateway's error */
export async function runSim(flags: SimFlags, interrupted: Interruption): Promise<void> {
  const { fromTrace } = flags;
  if (fromTrace !== undefined) return await runTraced({ ...flags, fromTrace }, interrupted);
  if (flags.scenario !== undefined) {
    // Loaded on demand: a process with few file descriptors can't load the scenario schema's many modules.
    const { runScenario } = await import('./scenario/run.js');
    return await runScenario(flags, flags.scenario, interrupted);
  }
  const plan = await readFleetPlan(flags);
  if (flags.virtual) return await runVirtually(flags, plan, interrupted);
  refuseVirtualOnly(flags, plan);
  await runLive(flags, plan, interrupted);
}

/** `--from-trace`. */
async function runTraced(flags: SimFlags & { readonly fromTrace: string }, interrupted: Interruption): Promise<void> {
  if (flags.virtual) return await runTracedVirtually(flags, interrupted);
  refuseVirtualOnly(flags, { mix: undefined, bugs: [], faults: [] });
  await runTracedLive(flags, interrupted);
}

/** @throws LockgateError `input-sim` if a live run has a flag or bug that only virtual runs support */
function refuseVirtualOnly(flags: SimFlags, { bugs }: FleetPlan): void {
  const refuse = (flag: string, instead: string): LockgateError => {
    return new LockgateError('input-sim', `${flag} is for --virtual runs only: ${instead}`);
  };
  if (flags.out !== undefined) throw refuse('--out', '"lockgate trace record" writes a trace of a live run');
  if (flags.start !== undefined) throw refuse('--start', 'a live run starts now, by the gateway’s clock');
  if (flags.jobs !== undefined) throw refuse('--jobs', 'a live run has one thread');
  if (flags.world) throw refuse('--world', 'a live run writes no trace');
  const bug = bugs.find((assignment) => assignment.bug.wrapVirtualLink !== undefined)?.bug.name;
  if (bug !== undefined) throw refuse(`--bug ${bug}`, 'it is impossible over a real MQTT connection');
}
