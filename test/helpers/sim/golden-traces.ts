/**
 * Repeats a few small virtual runs and computes the SHA-256 of their traces (the recorded events of the locks, one JSON
 * line each). The same seed and options give the same bytes on every machine and with every version of Node
 * (interfaces.md §4), so a file contains the expected hashes. After an intended change of the simulated world or the
 * power model, renew them:
 *
 * npm run build && node dist/test/helpers/sim/golden-traces.js --write
 */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { print } from '../../../cli/terminal/output.js';
import { parseBugAssignment } from '../../../firmware-sim/faults/bugs.js';
import { parseFaults } from '../../../firmware-sim/faults/faults.js';
import { parseMix } from '../../../firmware-sim/fleet/mix.js';
import { VirtualTrace } from '../../../firmware-sim/fleet/virtual-trace.js';
import { root } from '../house/our-files.js';
import { eachLine } from './each-line.js';

/** One run: the options of `lockgate sim run`, and the expected result. */
export interface GoldenTrace {
  readonly seed: string;
  readonly locks: number;
  readonly days: number;
  readonly start: string;
  /** How much happens to the locks. */
  readonly pace: 'everyday' | 'lively';
  /** Whether the trace has `world` events, which say what truly happened. */
  readonly world: boolean;
  /** The shares of the locks' settings, such as `mid=30,high=15`; null for the default. */
  readonly mix: string | null;
  /** Errors of the locks' firmware. */
  readonly bugs: readonly string[];
  /** Faults of the network. */
  readonly faults: readonly string[];
  /** The number of lines of the trace including the header, which shows the size of a difference. */
  readonly lines: number;
  readonly sha256: string;
}

const FILE = join(root, 'test/vectors/virtual-traces.json');

/** The runs of test/vectors/virtual-traces.json. */
export function readGoldenTraces(): GoldenTrace[] {
  return JSON.parse(readFileSync(FILE, 'utf8')) as GoldenTrace[];
}

/** Repeats the run and returns its result. */
export function repeatRun(golden: GoldenTrace): Pick<GoldenTrace, 'lines' | 'sha256'> {
  const { seed, locks, days, start, pace, world, mix, bugs, faults } = golden;
  const hash = createHash('sha256');
  let lines = 0;
  const trace = new VirtualTrace(
    {
      seed,
      locks,
      days,
      startMs: Date.parse(start),
      pace,
      hasWorldEvents: world,
      note: '',
      bugs: bugs.map(parseBugAssignment),
      faults: faults.flatMap(parseFaults),
      ...(mix !== null && { mix: parseMix(mix) }),
    },
    eachLine((line) => {
      lines += 1;
      hash.update(`${line}\n`);
    }),
  );
  trace.advance(trace.endMs);
  return { lines, sha256: hash.digest('hex') };
}

// Runs only if this file is the program, and not if a test imports it.
if (process.argv[1] === import.meta.filename && process.argv[2] === '--write') {
  const renewed = readGoldenTraces().map((golden) => ({ ...golden, ...repeatRun(golden) }));
  writeFileSync(FILE, `${JSON.stringify(renewed, null, 2)}\n`);
  print(`Renewed ${FILE}.`);
}
