// The long form of test/firmware-sim/healthy-fleet.test.ts: a year of a hundred mixed locks, a month of lively ones,
// and each bug in more of both. HEALTHY_SEED chooses another year, HEALTHY_DAYS a shorter one.
import t from 'tap';
import { BUGS } from '../../firmware-sim/faults/bugs.js';
import { Minutes } from '../../proto/clock.js';
import { type HealthyRun, healthyRun, rulesUnexplained } from '../helpers/sim/healthy-run.js';

const SEED = process.env.HEALTHY_SEED ?? 'year';
const DAYS = Number(process.env.HEALTHY_DAYS ?? 365);

t.setTimeout(Minutes(30));

function told({ uplinks, connections, commands, explained }: HealthyRun): string {
  const counts = `${uplinks} uplinks over ${connections} connections, ${commands} commands`;
  return `${counts}, warnings explained: ${JSON.stringify([...explained])}`;
}

t.test('a year of a hundred mixed locks', async (t) => {
  t.setTimeout(Minutes(30));
  const run = healthyRun({ seed: SEED, locks: 100, days: DAYS, pace: 'everyday', commandsPerDay: 1 });
  t.same(run.violations, [], `seed ${SEED}`);
  t.same(run.unexplained, [], `seed ${SEED}`);
  t.comment(told(run));
});

t.test('a month of thirty lively ones', async (t) => {
  const run = healthyRun({ seed: SEED, locks: 30, days: 30, pace: 'lively', commandsPerDay: 4 });
  t.same(run.violations, [], `seed ${SEED}`);
  t.same(run.unexplained, [], `seed ${SEED}`);
  t.comment(told(run));
});

t.test('each bug is named by its own rule alone, in both paces', async (t) => {
  for (const bug of BUGS) {
    for (const pace of ['everyday', 'lively'] as const) {
      const run = healthyRun({ seed: SEED, locks: 40, days: pace === 'lively' ? 4 : 15, pace, commandsPerDay: 1, bug });
      const found = rulesUnexplained(run);
      // In an everyday fortnight there may be no thief for it.
      const isThiefless = bug.name === 'ride-while-locked' && pace === 'everyday' && found.length === 0;
      if (!isThiefless) t.same(found, [bug.rule], `${bug.name}, ${pace}, seed ${SEED}`);
    }
  }
});
