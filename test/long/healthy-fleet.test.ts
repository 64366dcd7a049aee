// The long version of test/firmware-sim/healthy-fleet.test.ts: the judge finds nothing wrong with healthy simulated
// locks, and finds each bug by its own rule only. HEALTHY_SEED and HEALTHY_DAYS choose another seed and another length.
import t from 'tap';
import { BUGS, rulesOf } from '../../firmware-sim/faults/bugs.js';
import { Minutes } from '../../proto/clock.js';
import { type HealthyRun, healthyRun, rulesUnexplained } from '../helpers/sim/healthy-run.js';

const SEED = process.env.HEALTHY_SEED ?? 'year';
const DAYS = Number(process.env.HEALTHY_DAYS ?? 365);

t.setTimeout(Minutes(30));

function summary({ uplinks, connections, commands, explained }: HealthyRun): string {
  const counts = `${uplinks} uplinks over ${connections} connections, ${commands} commands`;
  return `${counts}, warnings explained: ${JSON.stringify([...explained])}`;
}

t.test('a year of a hundred mixed locks has no violation', async (t) => {
  t.setTimeout(Minutes(30));
  const run = healthyRun({ seed: SEED, locks: 100, days: DAYS, pace: 'everyday', commandsPerDay: 1 });
  t.same(run.violations, [], `seed ${SEED}`);
  t.same(run.unexplained, [], `seed ${SEED}`);
  t.comment(summary(run));
});

t.test('a month of thirty lively locks has no violation', async (t) => {
  const run = healthyRun({ seed: SEED, locks: 30, days: 30, pace: 'lively', commandsPerDay: 4 });
  t.same(run.violations, [], `seed ${SEED}`);
  t.same(run.unexplained, [], `seed ${SEED}`);
  t.comment(summary(run));
});

t.test('each bug breaks only its own rules, at both paces', async (t) => {
  for (const bug of BUGS) {
    for (const pace of ['everyday', 'lively'] as const) {
      const run = healthyRun({ seed: SEED, locks: 40, days: pace === 'lively' ? 4 : 15, pace, commandsPerDay: 1, bug });
      const found = rulesUnexplained(run);
      // This bug shows only in a theft, and a fortnight at the everyday pace may have none.
      const isWithoutTheft = bug.name === 'ride-while-locked' && pace === 'everyday' && found.length === 0;
      const others = found.filter((rule) => !rulesOf(bug).includes(rule));
      t.same(others, [], `${bug.name}, ${pace}, seed ${SEED}`);
      if (!isWithoutTheft) t.ok(found.includes(bug.rule), `${bug.name}, ${pace}, seed ${SEED}: ${bug.rule}`);
    }
  }
});
