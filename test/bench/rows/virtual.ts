/**
 * The bench's row `virtual`: simulation without a gateway, in locks × days per second of CPU time, with the trace
 * discarded (quality.md §1). CPU time, not elapsed time, so that other programs on the machine matter less.
 */
import { runVirtual } from '../../../firmware-sim/fleet/virtual-run.js';
import { cpuSeconds, measureRates, roundCount } from '../measure.js';
import { atLeast, type BenchOptions, type BenchRow, withoutPeer } from '../row.js';

const LOCKS = 100;
const DAYS = 30;

/** The row `virtual`. */
export async function benchVirtual({ quick }: BenchOptions): Promise<BenchRow> {
  let seed = 0;
  const run = (): number => {
    seed += 1;
    runVirtual({ seed, locks: LOCKS, days: DAYS, startMs: Date.UTC(2026, 10, 20), anyOrder: true });
    return LOCKS * DAYS;
  };
  const [rates] = await measureRates([run], cpuSeconds, roundCount(quick));
  if (rates === undefined) throw new Error('nothing was measured');
  const unit = 'locks × days/s of one core';
  const against = [
    withoutPeer(rates.median, 'a second', { floor: atLeast(10_000, 'a second'), aim: atLeast(200_000, 'a second') }),
  ];
  return { name: 'virtual', title: 'simulation without a gateway', unit, rates, against, details: [] };
}
