/**
 * The checks of a chaos run find gateways that break what they rest on: each run here takes one thing away, and must
 * find something. Sound gateways under the same faults are not found. `npm run test:chaos` does all faults for long.
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
  ...{ withStandby: false, crowdApart: false, faultShare: 0 },
};
/** A sabotage is a matter of chance in some runs; it must be found in one of so many. */
const MAX_RUNS = 4;

/** The fault that shows each sabotage. */
const SABOTAGED: Readonly<Partial<Record<SabotageName, FaultName>>> = {
  'no-fence': 'long-pause',
  'unfenced-uplinks': 'long-pause',
  'scalar-cursor': 'cut',
  'ack-first': 'kill',
};

t.setTimeout(2_400_000);
t.comment(`repeat: LOCKGATE_SEED=${seed} npm run test:long test/long/postgres/chaos-sabotage.test.ts`);

for (const fault of new Set(Object.values(SABOTAGED)))
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

for (const [sabotage, fault] of Object.entries(SABOTAGED) as [SabotageName, FaultName][])
  t.test(`gateways with the sabotage ${sabotage} are found out`, { skip: postgresMissing ?? false }, async (t) => {
    let found: string | undefined;
    for (let run = 0; run < MAX_RUNS && found === undefined; run += 1) {
      const changed = { only: [fault], sabotage, seed: seed + run };
      found = (await ChaosRun.run(t, { ...options, ...changed })).broken[0];
    }
    t.ok(found !== undefined, found ?? 'nothing was found');
  });
