/**
 * The bench's row `virtual`: simulation without a gateway, in locks × days per second of CPU time (quality.md §1), for
 * fleets of three sizes, since a large fleet does not fit into the processor's cache; with the trace discarded, and
 * with the trace written to a file. CPU time, not elapsed time, so that other programs on the machine matter less.
 */
import path from 'node:path';
import { LineSink } from '../../../cli/terminal/line-sink.js';
import { VirtualTrace } from '../../../firmware-sim/fleet/virtual-trace.js';
import { cpuSeconds, measureRates, roundCount, type Work } from '../measure.js';
import { withResources } from '../resources.js';
import { atLeast, type BenchOptions, type BenchRow, withoutPeer } from '../row.js';

const SIZES = [100, 1000, 5000];
/** Locks × days of a round, the same for each size. A written day of a lock is 14 KB. */
const LOCK_DAYS = { discarded: 15_000, written: 5000 } as const;
const UNIT = 'locks × days/s of one core';
const TARGETS = {
  discarded: { floor: atLeast(20_000, 'a second'), aim: atLeast(60_000, 'a second') },
  written: { floor: atLeast(4000, 'a second'), aim: atLeast(7000, 'a second') },
} as const;

/** One of the row's measurements. */
interface Case {
  readonly locks: number;
  readonly output: keyof typeof LOCK_DAYS;
}

/** The row `virtual`. */
export function benchVirtual({ quick }: BenchOptions): Promise<BenchRow> {
  return withResources(async (resources) => {
    const file = path.join(resources.makeFolder(), 'virtual.jsonl');
    const cases = SIZES.flatMap((locks): Case[] => [
      { locks, output: 'discarded' },
      { locks, output: 'written' },
    ]);
    const allRates = await measureRates(
      cases.map((item) => workOf(item, file)),
      cpuSeconds,
      roundCount(quick),
    );
    const [rates] = allRates;
    if (rates === undefined) throw new Error('nothing was measured');
    const against = cases.map(({ locks, output }, index) => {
      const name = `${locks.toLocaleString('en')} locks${output === 'written' ? ', the trace written to a file' : ''}`;
      return withoutPeer(allRates[index]?.median ?? 0, 'a second', TARGETS[output], name);
    });
    return { name: 'virtual', title: 'simulation without a gateway', unit: UNIT, rates, against, details: [] };
  });
}

/** Simulates another seed at each call. */
function workOf({ locks, output }: Case, file: string): Work {
  let seed = 0;
  return () => {
    seed += 1;
    const sink = output === 'written' ? new LineSink(file) : null;
    const days = LOCK_DAYS[output] / locks;
    const options = { seed, locks, days, startMs: Date.UTC(2026, 10, 20), note: '', hasWorldEvents: false };
    const trace = new VirtualTrace(options, sink && ((lines) => sink.writeBytes(lines)));
    trace.advance(trace.endMs);
    sink?.end();
    return LOCK_DAYS[output];
  };
}
