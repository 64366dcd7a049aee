/**
 * A chaos run (several gateways on one PostgreSQL, with a fault every few seconds) finds gateways that lack a
 * safeguard: a sabotage takes one away, and the run must find a broken promise. With sound gateways and the same faults
 * it finds none. `npm run test:chaos` runs all faults for longer.
 */
import t from 'tap';
import { type ChaosOptions, ChaosRun } from '../../helpers/chaos/chaos-run.js';
import type { FaultName } from '../../helpers/chaos/faults.js';
import type { SabotageName } from '../../helpers/durability/sabotage.js';
import { chooseSeed } from '../../helpers/pair/seeded-chance.js';
import { postgresMissing } from '../../helpers/store/postgres/server.js';

const seed = chooseSeed();
const options: ChaosOptions = {
  ...{ seed, gateways: 2, locks: 30, pingEveryMs: 200, faultEveryMs: 12_000, faults: 2 },
  ...{ withStandby: false, locksInOwnProcess: false, webhookFailureShare: 0 },
};
/** Whether a run shows a sabotage is partly a matter of chance, so one of this many runs must find it. */
const MAX_RUNS = 4;

/** The sabotages, each with a fault that shows it. */
const SABOTAGED: readonly (readonly [SabotageName, FaultName])[] = [
  ['no-fence', 'long-pause'],
  ['unfenced-uplinks', 'long-pause'],
  ['scalar-cursor', 'cut'],
  ['ack-first', 'kill'],
  ['ack-first', 'full-disk'],
  ['counted-epochs', 'restore'],
];

t.setTimeout(2_400_000);
t.comment(`repeat: LOCKGATE_SEED=${seed} npm run test:long test/long/postgres/chaos-sabotage.test.ts`);

for (const fault of new Set(SABOTAGED.map(([, fault]) => fault)))
  t.test(
    `sound gateways keep their promises with the fault ${fault}`,
    { skip: postgresMissing ?? false },
    async (t) => {
      const { broken } = await ChaosRun.run(t, {
        ...options,
        only: [fault],
      });
      t.same(broken.slice(0, 5), []);
    },
  );

for (const [sabotage, fault] of SABOTAGED)
  t.test(
    `gateways with the sabotage ${sabotage} are found out by the fault ${fault}`,
    { skip: postgresMissing ?? false },
    async (t) => {
      let found: string | undefined;
      for (let run = 0; run < MAX_RUNS && found === undefined; run += 1) {
        const changed = { only: [fault], sabotage, seed: seed + run };
        found = (await ChaosRun.run(t, { ...options, ...changed })).broken[0];
      }
      t.ok(found !== undefined, found ?? 'nothing was found');
    },
  );
