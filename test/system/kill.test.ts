/**
 * Durability: the gateway is killed under load, and every acknowledged ping arrives at the merchant (quality.md §2).
 * sabotage/kill.slow.test.ts shows that the same check can fail. Long version: test/long/kill.test.ts.
 */
import t from 'tap';
import { summarize } from '../helpers/durability/delivery-check.js';
import { KillRun, type KillRunOptions } from '../helpers/durability/kill-run.js';
import { testKilledStarts } from '../helpers/durability/killed-starts.js';
import { chooseSeed } from '../helpers/pair/seeded-chance.js';

const seed = chooseSeed();
const repeat = `LOCKGATE_SEED=${seed} npm test -- dist/test/system/kill.test.js`;

const options: KillRunOptions = {
  seed,
  locks: 50,
  maxUnacked: 3,
  kills: 2,
  // Diary lines (sent, acknowledged or arrived) from a start to the next kill; at most twice as many.
  minLinesPerKill: 150,
  // Locks pause while the merchant lacks this many acknowledged pings.
  maxBacklog: 300,
  minAcked: 600,
  // The merchant fails at one webhook in a hundred, and answers the others within some ms.
  webhookFailureShare: 0.01,
  maxAnswerMs: 3,
};

t.setTimeout(170_000);
t.comment(`seed ${seed}, options ${JSON.stringify(options)}; repeat: ${repeat}`);

t.test('kill -9 under load loses nothing that was acknowledged', async (t) => {
  t.setTimeout(170_000);
  const result = await KillRun.run(t, options);
  t.comment(`${result.acked} acknowledged, ${result.arrivals} webhooks, ${options.kills} kills`);
  t.same(result.findings, [], `${summarize(result.findings)}\nrepeat: ${repeat}`);
  t.same(result.invalid, [], 'every webhook verifies');
  t.same(result.integrity, ['ok', 'ok'], 'the file is intact after a kill and after a stop');
  t.same(result.errorLines, [], 'the gateway logged no complaint');
  t.same(result.exitCodes, [0], 'the gateway stops normally');
});

// The starts are killed in one new data folder; the long version takes more.
const folders = 1;
testKilledStarts(t, folders, seed, repeat);
