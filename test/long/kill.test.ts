/**
 * The long form of system/kill.test.ts: 200 kills and a million acknowledged pings (quality.md §2). LOCKGATE_KILLS and
 * LOCKGATE_ACKED make it smaller, to try it.
 */
import t from 'tap';
import { summarize } from '../helpers/durability/delivery-check.js';
import { KillRun, type KillRunOptions } from '../helpers/durability/kill-run.js';
import { chooseSeed } from '../helpers/pair/seeded-chance.js';

const seed = chooseSeed();
const kills = Number(process.env.LOCKGATE_KILLS ?? 200);
const floor = Number(process.env.LOCKGATE_ACKED ?? 1_000_000);
const sizes = `LOCKGATE_KILLS=${kills} LOCKGATE_ACKED=${floor}`;
const repeat = `LOCKGATE_SEED=${seed} ${sizes} npm test -- dist/test/long/kill.test.js`;

const options: KillRunOptions = {
  seed,
  locks: 50,
  inFlight: 8,
  kills,
  // Half as much again on average, and what is acknowledged after the last kill makes up the rest.
  linesPerLife: Math.ceil(floor / kills / 2),
  backlog: 5000,
  floor,
  // Each failure waits five seconds for its retry and so outlives some of the kills.
  faultShare: 0.001,
  slowestMs: 0,
};

t.setTimeout(7_200_000);
t.comment(`seed ${seed}, options ${JSON.stringify(options)}; repeat: ${repeat}`);

t.test('kill -9 under load loses nothing that was acknowledged', async (t) => {
  t.setTimeout(7_200_000);
  const result = await KillRun.run(t, options);
  t.comment(`${result.acked} acknowledged, ${result.arrivals} webhooks, ${options.kills} kills`);
  t.same(result.findings, [], `${summarize(result.findings)}\nrepeat: ${repeat}`);
  t.same(result.refused, [], 'every webhook verifies');
  t.same(result.integrity, ['ok', 'ok'], 'the file is whole after a kill and after a stop');
  t.same(result.complaints, [], 'the gateway had nothing to complain about');
  t.same(result.exitCodes, [0], 'and ends by itself when it is asked to');
});
