/**
 * The quick form of `npm run test:chaos`: two gateways share a database, one is killed, and what locks and merchant
 * wrote down is compared with the log, the commands and the bills.
 */
import t from 'tap';
import { type ChaosOptions, ChaosRun } from '../../helpers/chaos/chaos-run.js';
import { chooseSeed } from '../../helpers/pair/seeded-chance.js';
import { postgresMissing } from '../../helpers/store/postgres/server.js';

const seed = chooseSeed();
const options: ChaosOptions = {
  ...{ seed, gateways: 2, locks: 12, pingEveryMs: 300, faultEveryMs: 1500, faults: 1, only: ['kill'] },
  ...{ withStandby: false, locksInOwnProcess: false, webhookFailureShare: 0.01 },
};

t.setTimeout(170_000);

t.test('two gateways, one of which is killed', { skip: postgresMissing ?? false }, async (t) => {
  t.comment(`repeat: LOCKGATE_SEED=${seed} npm test test/system/postgres/chaos.test.ts`);
  const { broken, acked, delivered, exits } = await ChaosRun.run(t, options);
  t.comment(`${acked} acknowledged, ${delivered} delivered`);
  t.same(
    broken,
    [],
    'nothing acknowledged is lost or doubled, each lock’s events are in order, no month is billed twice',
  );
  t.same(exits, [null], 'only the killed gateway ended');
});
