// The long version of test/firmware-sim/healthy-fleet.test.ts: the judge finds nothing wrong with healthy simulated
// locks, and finds each bug by its own rule only. HEALTHY_SEED and HEALTHY_DAYS choose another seed and another length.
import t from 'tap';
import { rulesOf } from '../../firmware-sim/faults/bug.js';
import { BUGS } from '../../firmware-sim/faults/bugs.js';
import { FAULTS } from '../../firmware-sim/faults/faults.js';
import { Minutes } from '../../proto/clock.js';
import type { RuleName } from '../../proto/power/rules.js';
import { type HealthyRun, healthyRun, rulesUnexplained } from '../helpers/sim/healthy-run.js';

const SEED = process.env.HEALTHY_SEED ?? 'year';
const DAYS = Number(process.env.HEALTHY_DAYS ?? 365);

t.setTimeout(Minutes(120));

/** The counts of a run, in words. */
function summary({ uplinkCount, connections, commands, explained }: HealthyRun): string {
  const counts = `${uplinkCount} uplinks over ${connections} connections, ${commands} commands`;
  return `${counts}, warnings explained: ${JSON.stringify([...explained])}`;
}

// The pace says how eventful the simulated days of a lock are: `everyday` has ordinary days, `lively` a fast demo.

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

t.test('a bad network and many commands do not make healthy lively locks look wrong', async (t) => {
  for (const seed of [SEED, '2', '4', '8', '9', '10', '11', '13']) {
    const faults = FAULTS.map(({ name }) => name);
    const run = healthyRun({ seed, locks: 12, days: 3, pace: 'lively', commandsPerDay: 40, faults });
    t.same(run.violations, [], `seed ${seed}`);
    // What locks should have sent, and did not (the rule `owed`).
    t.same(run.owed, [], `seed ${seed}`);
  }
});

t.test('each bug breaks its rule, and no other than those that its row in BUGS names', async (t) => {
  t.setTimeout(Minutes(60));
  for (const bug of BUGS) {
    const found = new Set<RuleName>();
    for (const pace of ['everyday', 'lively'] as const) {
      const run = healthyRun({ seed: SEED, locks: 40, days: pace === 'lively' ? 4 : 15, pace, commandsPerDay: 1, bug });
      for (const rule of rulesUnexplained(run)) found.add(rule);
    }
    if (bug.rule !== null) t.ok(found.has(bug.rule), `${bug.name} breaks ${bug.rule}, seed ${SEED}`);
    const others = [...found].filter((rule) => !rulesOf(bug).includes(rule));
    t.same(others, [], `${bug.name} breaks no other rule, seed ${SEED}`);
  }
});
