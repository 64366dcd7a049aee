/**
 * The gateway on a real PostgreSQL: what it acknowledged outlives kill -9 and is delivered, and the same check finds a
 * gateway that acknowledges first. kill.test.ts has the same for SQLite. A run's findings are what was lost, repeated
 * or out of order.
 */
import t, { type Test } from 'tap';
import { type Finding, summarize } from '../../helpers/durability/delivery-check.js';
import { KillRun, type KillRunOptions } from '../../helpers/durability/kill-run.js';
import { chooseSeed } from '../../helpers/pair/seeded-chance.js';
import { readLogFaults } from '../../helpers/store/postgres/log-faults.js';
import { type PostgresServer, postgresMissing, startPostgres } from '../../helpers/store/postgres/server.js';

const seed = chooseSeed();
const repeat = `LOCKGATE_SEED=${seed} npm test -- dist/test/system/postgres/kill.slow.test.js`;
const skip = { skip: postgresMissing ?? false };

const options: KillRunOptions = {
  seed,
  locks: 20,
  maxUnacked: 3,
  kills: 2,
  // Diary lines (sent, acknowledged or arrived) from a start to the next kill; at most twice as many.
  minLinesPerKill: 60,
  maxBacklog: 300,
  minAcked: 240,
  webhookFailureShare: 0.01,
  maxAnswerMs: 3,
  checksFile: false,
};

t.setTimeout(170_000);
t.comment(`seed ${seed}, options ${JSON.stringify(options)}; repeat: ${repeat}`);

/** A run on a database of its own. Returns what it found, in the diaries and in the log. */
async function runOn(t: Test, server: PostgresServer, changed: Partial<KillRunOptions>) {
  const store = await server.createDatabase();
  const result = await KillRun.run(t, { ...options, ...changed, store });
  return { result, logFaults: await readLogFaults(server, new URL(store).pathname.slice(1)) };
}

function textOf(findings: readonly Finding[]): string {
  return `${summarize(findings)}\nrepeat: ${repeat}`;
}

t.test('a gateway on PostgreSQL', skip, async (t) => {
  const server = await startPostgres(t);
  await t.test('loses nothing acknowledged by kill -9', async (t) => {
    const { result, logFaults } = await runOn(t, server, {});
    t.same(result.findings, [], textOf(result.findings));
    t.same(result.invalid, [], 'every webhook verifies');
    t.same(logFaults, [], 'each uplink is in the database’s log once, in order');
    t.same(result.errorLines, [], 'the gateway logged no complaint');
  });

  await t.test('is found out if it acknowledges first', async (t) => {
    const few = { locks: 10, kills: 1, minAcked: 120, webhookFailureShare: 0, maxBacklog: 5000, maxAnswerMs: 25 };
    const { result } = await runOn(t, server, { ...few, sabotage: 'ack-first' });
    t.ok(
      result.findings.some(({ broken }) => broken === 'missing'),
      textOf(result.findings),
    );
  });
});
