/** The flags of `lockgate sim run` and `lockgate sim plan`, as commander parses them. */
import type { BugAssignment } from '../../../firmware-sim/faults/bugs.js';
import type { FaultName } from '../../../firmware-sim/faults/faults.js';
import type { MixPart } from '../../../firmware-sim/fleet/mix.js';
import type { ConnectionFlags } from '../../client.js';
import type { SimPlace } from './place.js';

/** The flags of `lockgate sim run`. */
export interface SimFlags extends ConnectionFlags {
  readonly virtual?: boolean;
  readonly locks?: number;
  readonly days?: number;
  readonly seed: string;
  /** Whether --seed was given; otherwise a scenario uses its own seed. */
  readonly isSeedGiven?: boolean;
  /** The name of a built-in scenario, or a file. */
  readonly scenario?: string;
  readonly pace: 'everyday' | 'lively';
  readonly mix?: string;
  readonly route?: string;
  readonly around?: string;
  readonly bug: readonly string[];
  readonly fault: readonly string[];
  readonly out?: string;
  readonly start?: string;
  readonly world?: boolean;
  readonly speed: number;
  readonly secrets?: string;
  readonly merchant?: string;
  readonly ca?: string;
  readonly fromTrace?: string;
  readonly listBugs?: boolean;
  readonly json?: boolean;
}

/** The flags that describe the locks and their surroundings, parsed. */
export interface FleetPlan extends SimPlace {
  readonly mix: readonly MixPart[] | undefined;
  readonly bugs: readonly BugAssignment[];
  readonly faults: readonly FaultName[];
}

/** The flags of `lockgate sim plan`. */
export interface PlanFlags {
  readonly locks: number;
  readonly days: number;
  readonly seed: string;
  readonly pace: 'everyday' | 'lively';
  readonly mix: string;
  readonly sample: number;
  readonly commands: number;
  readonly tls?: boolean;
  readonly chain?: number;
  readonly perMb?: string;
  readonly perSim?: string;
  readonly currency?: string;
  readonly svg?: string;
  readonly json?: boolean;
}
