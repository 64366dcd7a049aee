// The judge accepts everything that `step` does: in each case (state and input) until after the next Period Ping, and
// on 10,000 random walks of 30 days. The long version of test/proto/power/pair-check.test.ts. PAIR_FROM (first seed)
// and PAIR_WALKS (number) choose other walks.
import t from 'tap';
import { Hours, Minutes } from '../../proto/clock.js';
import { caseEvents, cases } from '../helpers/pair/cases.js';
import { mistakesInCase, mistakesOnWalk, PairStatistics } from '../helpers/pair/report.js';

const FROM = Number(process.env.PAIR_FROM ?? 1);
const WALKS = Number(process.env.PAIR_WALKS ?? 10_000);
const REPORT_EVERY_WALKS = 1000;

t.setTimeout(Minutes(15));

t.test('the judge accepts every input in every state and connection stage, for 26 hours', async (t) => {
  const seen = new PairStatistics();
  for (const [index, one] of cases().entries()) {
    for (const [number, happening] of caseEvents().entries()) {
      const wrong = mistakesInCase(`${index}/${number}`, one, happening, Hours(26), seen);
      if (wrong === null) break;
      if (wrong.length > 0) t.same(wrong, []);
    }
  }
  t.ok(seen.runs > 20_000, `${seen.runs} cases, ${seen.uplinks} uplinks judged`);
});

t.test('the judge accepts every random walk', async (t) => {
  const seen = new PairStatistics();
  for (let seed = FROM; seed < FROM + WALKS; seed++) {
    const wrong = mistakesOnWalk(seed, seen);
    if (wrong.length > 0) t.same(wrong, [], `seed ${seed}`);
    if (seen.runs % REPORT_EVERY_WALKS === 0) t.comment(`${seen.runs} walks, ${seen.uplinks} uplinks judged`);
  }
  t.equal(seen.runs, WALKS, `${seen.steps} steps, ${seen.uplinks} uplinks: ${JSON.stringify([...seen.explained])}`);
});
