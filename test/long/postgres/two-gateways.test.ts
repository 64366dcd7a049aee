/**
 * Two gateways share a database: locks move between them, and one is killed. Nothing acknowledged is lost or stored
 * twice, each event is delivered, and each lock's events in its order. With a gateway that takes locks without asking,
 * the same check finds what breaks.
 *
 * A long test: a run takes some ten seconds of CPU time.
 */
import t from 'tap';
import { summarize } from '../../helpers/durability/delivery-check.js';
import { TwoGateways, type TwoGatewaysOptions } from '../../helpers/durability/two-gateways.js';
import { chooseSeed } from '../../helpers/pair/seeded-chance.js';
import { postgresMissing, startPostgres } from '../../helpers/store/postgres/server.js';

const seed = chooseSeed();
const repeat = `LOCKGATE_SEED=${seed} npm run test:long test/long/postgres/two-gateways.test.ts`;
const options: TwoGatewaysOptions = { seed, locks: 10, moves: 4, ackedPerMove: 40 };

t.setTimeout(170_000);
t.comment(`seed ${seed}, options ${JSON.stringify(options)}; repeat: ${repeat}`);

t.test('two gateways on one database', { skip: postgresMissing ?? false }, async (t) => {
  const server = await startPostgres(t);
  await t.test('lose nothing and double nothing while locks move and one is killed', async (t) => {
    const result = await TwoGateways.run(t, server, options);
    t.same(result.findings, [], `${summarize(result.findings)}\nrepeat: ${repeat}`);
    t.same(result.logFaults, [], 'each name is in the log once, in order');
    t.same(result.invalid, [], 'every webhook verifies');
    t.same(result.errorLines, [], 'the other gateway logged no complaint');
  });

  await t.test('are found out if they take locks without asking', async (t) => {
    const run = TwoGateways.run(t, server, { ...options, moves: 8, sabotage: 'steal-locks' });
    const found = await run.then(
      ({ logFaults, findings }) => [...logFaults, ...findings.map(({ message }) => message)],
      // The locks also stop when the merchant lacks too many of their pings, which then are lost.
      ({ message }: Error) => [message],
    );
    t.ok(found.length > 0, `${found.length} faults, such as ${found[0]}\nrepeat: ${repeat}`);
  });
});
