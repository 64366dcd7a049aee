/** The flags of `lockgate sim run` and `lockgate sim plan`, as commander parses them. */
import type { BugAssignment } from '../../../firmware-sim/faults/bugs.js';
import type { FaultName } from '../../../firmware-sim/faults/faults.js';
import type { MixPart } from '../../../firmware-sim/fleet/mix.js';
import type { ConnectionFlags } from '../../client.js';
import type { SimPlace } from './place.js';

/** The flags of `lockgate sim run`. */
export interface SimFlags extends ConnectionFlags {
  /** Without a gateway and without waiting. A run without this flag is live, against a gateway. */
  readonly virtual?: boolean;
  readonly locks?: number;
  /** Simulated days. */
  readonly days?: number;
  /** Decides all random choices of the run. */
  readonly seed: string;
  /** Whether --seed was given; otherwise a scenario uses its own seed. */
  readonly isSeedGiven?: boolean;
  /** The name of a built-in scenario, or a file. */
  readonly scenario?: string;
  /** How eventful the simulated days are. */
  readonly pace: 'everyday' | 'lively';
  /** Shares of the locks' first settings, such as `mid=60,high+ride=20`. */
  readonly mix?: string;
  /** A file with the route of all rides. */
  readonly route?: string;
  /** The centre of the city, `LAT,LON`. */
  readonly around?: string;
  /** Firmware bugs: `NAME` for all locks, `NAME:LOCKS` for that many. */
  readonly bug: readonly string[];
  /** Network faults. */
  readonly fault: readonly string[];
  /** The trace file to write; `-` is the standard output. */
  readonly out?: string;
  /** The start of a virtual run, RFC 3339. */
  readonly start?: string;
  /** Whether the trace also says what really happened to the locks. */
  readonly world?: boolean;
  /** The number of threads of a virtual run. */
  readonly jobs?: number;
  /** How many times faster than real time a live run is. */
  readonly speed: number;
  /** A file with lines of `MAC,SECRET`. */
  readonly secrets?: string;
  readonly merchant?: string;
  /** A file with the certificates that a live run trusts. */
  readonly ca?: string;
  /** A trace whose locks are simulated. */
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
  /** The days that are measured. */
  readonly days: number;
  readonly seed: string;
  readonly pace: 'everyday' | 'lively';
  readonly mix: string;
  /** The maximum number of locks to simulate; a larger fleet is estimated from them. */
  readonly sample: number;
  /** Commands per lock and month. */
  readonly commands: number;
  readonly tls?: boolean;
  /** With `tls`: the bytes of the certificates that the gateway sends besides its own. */
  readonly chain?: number;
  /** Prices as decimal text: of a megabyte, and of an active SIM and month. */
  readonly perMb?: string;
  readonly perSim?: string;
  readonly currency?: string;
  /** A file for a chart. */
  readonly svg?: string;
  readonly json?: boolean;
}
