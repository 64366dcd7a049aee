/**
 * The long version of test/system/kill.test.ts: 200 kills under load lose none of a million acknowledged pings
 * (quality.md §2). LOCKGATE_KILLS and LOCKGATE_ACKED set other numbers.
 */
import t from 'tap';
import { summarize } from '../helpers/durability/delivery-check.js';
import { KillRun, type KillRunOptions } from '../helpers/durability/kill-run.js';
import { testKilledStarts } from '../helpers/durability/killed-starts.js';
import { chooseSeed } from '../helpers/pair/seeded-chance.js';

const seed = chooseSeed();
const kills = Number(process.env.LOCKGATE_KILLS ?? 200);
const minAcked = Number(process.env.LOCKGATE_ACKED ?? 1_000_000);
const sizes = `LOCKGATE_KILLS=${kills} LOCKGATE_ACKED=${minAcked}`;
const repeat = `LOCKGATE_SEED=${seed} ${sizes} npm test -- dist/test/long/kill.test.js`;

const options: KillRunOptions = {
  seed,
  locks: 50,
  // Uplinks of a lock that are sent and not acknowledged yet.
  maxUnacked: 8,
  kills,
  // Diary lines (sent, acknowledged or arrived) from a start to the next kill. On average there are 1.5 times as many;
  // after the last kill the locks send until `minAcked`.
  minLinesPerKill: Math.ceil(minAcked / kills / 2),
  // Locks pause while the merchant lacks this many acknowledged pings.
  maxBacklog: 5000,
  minAcked,
  // The retry of a failed delivery comes after five seconds, so some retries are interrupted by kills.
  webhookFailureShare: 0.001,
  // The merchant answers at once.
  maxAnswerMs: 0,
};

t.setTimeout(7_200_000);
t.comment(`seed ${seed}, options ${JSON.stringify(options)}; repeat: ${repeat}`);

t.test('kill -9 under load loses no acknowledged ping', async (t) => {
  t.setTimeout(7_200_000);
  const result = await KillRun.run(t, options);
  t.comment(`${result.acked} acknowledged, ${result.arrivals} webhooks, ${options.kills} kills`);
  t.same(result.findings, [], `${summarize(result.findings)}\nrepeat: ${repeat}`);
  t.same(result.invalid, [], 'every webhook verifies');
  t.same(result.integrity, ['ok', 'ok'], 'the file is intact after a kill and after a stop');
  t.same(result.errorLines, [], 'the gateway logged no complaint');
  t.same(result.exitCodes, [0], 'the gateway stops normally');
});

const folders = 10;
testKilledStarts(t, folders, seed, repeat);
