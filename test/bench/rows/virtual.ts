/**
 * Simulation without a gateway: locks × days a second of one core, the trace discarded (quality.md §1). A core's second
 * is one of this process's, so that what else runs on the machine counts less.
 */
import { runVirtual } from '../../../firmware-sim/fleet/virtual-run.js';
import { cpuSeconds, roundsOf, takeTurns } from '../measure.js';
import { atLeast, type BenchOptions, fixedBar, type Row } from '../row.js';

const LOCKS = 100;
const DAYS = 30;

/** Measures it. */
export async function benchVirtual({ quick }: BenchOptions): Promise<Row> {
  let seed = 0;
  const run = (): number => {
    seed += 1;
    runVirtual({ seed, locks: LOCKS, days: DAYS, startMs: Date.UTC(2026, 10, 20) });
    return LOCKS * DAYS;
  };
  const [rates] = await takeTurns([run], cpuSeconds, roundsOf(quick));
  if (rates === undefined) throw new Error('nothing was measured');
  const unit = 'locks × days/s of one core';
  const against = [fixedBar(rates.median, 'a second', atLeast(10_000, 'a second'), atLeast(200_000, 'a second'))];
  return { name: 'virtual', title: 'simulation without a gateway', unit, rates, against, details: [] };
}
