/**
 * The long version of test/system/unplugged.slow.test.ts: a larger fleet at 60 × speed; stopping the gateway six times
 * for ten minutes loses nothing.
 */
import t from 'tap';
import { Minutes } from '../../proto/clock.js';
import { summarize } from '../helpers/durability/delivery-check.js';
import { type Outage, OutageRun } from '../helpers/durability/unplug-run.js';
import { chooseSeed } from '../helpers/pair/seeded-chance.js';
import { livelyWorld } from '../helpers/sim/lively-world.js';

const seed = chooseSeed();
const repeat = `LOCKGATE_SEED=${seed} npm test -- dist/test/long/unplugged.test.js`;
const outages = Array.from({ length: 6 }, (_, index): Outage => {
  const signal = index % 2 === 0 ? 'SIGTERM' : 'SIGKILL';
  return { afterMs: Minutes(5 + 20 * index), durationMs: Minutes(10), signal };
});

t.setTimeout(900_000);

t.test('a gateway that is stopped again and again loses nothing', async (t) => {
  t.setTimeout(900_000);
  // The last outage ends after 115 min. From this time on, nothing new happens to the locks.
  const calmAfterMs = Minutes(130);
  const result = await OutageRun.run(t, { seed, locks: 60, speed: 60, outages, calmAfterMs, worldOf: livelyWorld });
  const unacked = result.unackedAtRestart.join(', ');
  t.comment(`${result.diary.created} made, ${result.arrivals} webhooks, unacknowledged at restarts ${unacked}`);
  t.same(result.findings, [], `${summarize(result.findings)}\nrepeat: ${repeat}`);
  t.same(result.diary.violations, []);
  t.same(result.disagreements, []);
  t.same(result.errorLines, []);
});
