// The long form of test/proto/power/pair-check.test.ts: 10,000 walks of 30 days, and each case watched until after its
// next Period Ping. PAIR_FROM and PAIR_WALKS choose other walks.
import t from 'tap';
import { Hours, Minutes } from '../../proto/clock.js';
import { cases, happenings } from '../helpers/pair/cases.js';
import { PairSeen, wrongInCase, wrongOnWalk } from '../helpers/pair/report.js';

const FROM = Number(process.env.PAIR_FROM ?? 1);
const WALKS = Number(process.env.PAIR_WALKS ?? 10_000);
const TOLD_EVERY = 1000;

t.setTimeout(Minutes(15));

t.test('in every state, at every stage of a connection, for every input, until the day after', async (t) => {
  const seen = new PairSeen();
  for (const [index, one] of cases().entries()) {
    for (const [number, happening] of happenings().entries()) {
      const wrong = wrongInCase(`${index}/${number}`, one, happening, Hours(26), seen);
      if (wrong === null) break;
      if (wrong.length > 0) t.same(wrong, []);
    }
  }
  t.ok(seen.runs > 20_000, `${seen.runs} cases, ${seen.uplinks} uplinks judged`);
});

t.test('on every walk', async (t) => {
  const seen = new PairSeen();
  for (let seed = FROM; seed < FROM + WALKS; seed++) {
    const wrong = wrongOnWalk(seed, seen);
    if (wrong.length > 0) t.same(wrong, [], `seed ${seed}`);
    if (seen.runs % TOLD_EVERY === 0) t.comment(`${seen.runs} walks, ${seen.uplinks} uplinks judged`);
  }
  t.equal(seen.runs, WALKS, `${seen.steps} steps, ${seen.uplinks} uplinks: ${JSON.stringify([...seen.explained])}`);
});
