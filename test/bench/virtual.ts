/**
 * Simulation without a gateway: locks × days a second of one core, the trace discarded (quality.md §1). A core's second
 * is one of this process's, so that what else runs on the machine counts less.
 */
import { runVirtual } from '../../firmware-sim/virtual.js';
import { cpuSeconds, type Row, takeTurns } from './measure.js';

const LOCKS = 100;
const DAYS = 30;

/** Measures it. */
export async function benchVirtual(): Promise<Row> {
  let seed = 0;
  const run = (): number => {
    seed += 1;
    runVirtual({ seed, locks: LOCKS, days: DAYS, startMs: Date.UTC(2026, 10, 20) });
    return LOCKS * DAYS;
  };
  const [rates] = await takeTurns([run], cpuSeconds);
  if (rates === undefined) throw new Error('nothing was measured');
  return {
    name: 'simulation',
    unit: 'locks × days/s of one core',
    rates,
    peer: null,
    ratio: null,
    floor: '10,000',
    aim: '≥ 200,000',
  };
}
