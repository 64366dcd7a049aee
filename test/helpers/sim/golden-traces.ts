/**
 * The SHA-256 of the traces of a few small virtual runs: the same seed and options give the same bytes on every machine
 * and with every version of Node (interfaces.md §4), so the hashes can be in a file. A change of the simulated world or
 * of the power model on purpose renews them:
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

/** One run, by the options of `lockgate sim run`, and its result. */
export interface GoldenTrace {
  readonly seed: string;
  readonly locks: number;
  readonly days: number;
  readonly start: string;
  readonly pace: 'everyday' | 'lively';
  readonly world: boolean;
  readonly mix: string | null;
  readonly bugs: readonly string[];
  readonly faults: readonly string[];
  /** Lines of the trace, the header included, to show whether a difference is large. */
  readonly lines: number;
  readonly sha256: string;
}

const FILE = join(root, 'test/vectors/virtual-traces.json');

/** The runs of test/vectors/virtual-traces.json. */
export function readGoldenTraces(): GoldenTrace[] {
  return JSON.parse(readFileSync(FILE, 'utf8')) as GoldenTrace[];
}

/** Repeats the run. */
export function retrace(golden: GoldenTrace): Pick<GoldenTrace, 'lines' | 'sha256'> {
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
      world,
      note: '',
      bugs: bugs.map(parseBugAssignment),
      faults: faults.flatMap(parseFaults),
      ...(mix !== null && { mix: parseMix(mix) }),
    },
    (line) => {
      lines += 1;
      hash.update(`${line}\n`);
    },
  );
  trace.advance(trace.endMs);
  return { lines, sha256: hash.digest('hex') };
}

if (process.argv[1] === import.meta.filename && process.argv[2] === '--write') {
  const renewed = readGoldenTraces().map((golden) => ({ ...golden, ...retrace(golden) }));
  writeFileSync(FILE, `${JSON.stringify(renewed, null, 2)}\n`);
  print(`Renewed ${FILE}.`);
}
