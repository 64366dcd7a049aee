// The judge, which checks a lock's messages, accepts everything that `step`, which simulates a lock, does: in each case
// (state and input) until after the next Period Ping, and on 10,000 random walks of 30 days. The long version of
// test/proto/power/pair-check.slow.test.ts. PAIR_FROM (first seed) and PAIR_WALKS (number) choose other walks.
import t from 'tap';
import { Hours, Minutes } from '../../proto/clock.js';
import { caseEvents, cases } from '../helpers/pair/cases.js';
import { mistakesInCase, mistakesOnWalk, PairStatistics } from '../helpers/pair/report.js';

const FROM = Number(process.env.PAIR_FROM ?? 1);
const WALKS = Number(process.env.PAIR_WALKS ?? 10_000);
const REPORT_EVERY_WALKS = 1000;

t.setTimeout(Minutes(15));

t.test('the judge accepts every input in every state and connection stage, for 26 hours', async (t) => {
  const statistics = new PairStatistics();
  for (const [index, initialCase] of cases().entries()) {
    for (const [number, input] of caseEvents().entries()) {
      const mistakes = mistakesInCase(`${index}/${number}`, initialCase, input, Hours(26), statistics);
      // The case is impossible, whatever its input.
      if (mistakes === null) break;
      if (mistakes.length > 0) t.same(mistakes, []);
    }
  }
  t.ok(statistics.runs > 20_000, `${statistics.runs} cases, ${statistics.uplinks} uplinks judged`);
});

t.test('the judge accepts every random walk', async (t) => {
  const statistics = new PairStatistics();
  for (let seed = FROM; seed < FROM + WALKS; seed++) {
    const mistakes = mistakesOnWalk(seed, statistics);
    if (mistakes.length > 0) t.same(mistakes, [], `seed ${seed}`);
    if (statistics.runs % REPORT_EVERY_WALKS === 0)
      t.comment(`${statistics.runs} walks, ${statistics.uplinks} uplinks judged`);
  }
  t.equal(
    statistics.runs,
    WALKS,
    `${statistics.steps} steps, ${statistics.uplinks} uplinks: ${JSON.stringify([...statistics.explained])}`,
  );
});
