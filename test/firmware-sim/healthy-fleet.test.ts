// A healthy fleet of every kind of lock, with commands, breaks no rule of the judge, which checks the locks' messages
// against the specification. An event of the simulated world, such as lost coverage, explains each warning. The
// findings are compared with what truly happened, which the judge never reads. Fleets with a firmware bug are in
// fleet-bugs.slow.test.ts. `npm run test:long` runs these tests with the larger sizes below, and tests of a whole year
// (test/long/healthy-fleet.test.ts).
import t from 'tap';
import { Hours, Minutes } from '../../proto/clock.js';
import { UNNAMED_LOCK } from '../../proto/trace/trace.js';
import { DEFAULT_POWER } from '../../proto/wire/ping.js';
import { testMac } from '../helpers/gateway/test-gateway.js';
import { quickOrLong } from '../helpers/house/test-length.js';
import { healthyRun } from '../helpers/sim/healthy-run.js';
import { RUN_STARTS_MS } from '../helpers/sim/judged-run.js';
import { WorldTruth } from '../helpers/sim/world-truth.js';

/**
 * The fleet of the first test, and how many connections must at least be cut in it. `quickOrLong` picks the first value
 * in `npm test` and the second in `npm run test:long`.
 */
const [HEALTHY, MIN_CUTS] = quickOrLong(
  [{ locks: 16, days: 8, commandsPerDay: 2 }, 15],
  [{ locks: 30, days: 10, commandsPerDay: 1 }, 50],
);

t.setTimeout(120_000);

t.test(
  'a fleet in its everyday use, and twelve lively locks in two days, cause no violation and no unexplained warning',
  async (t) => {
    const everyday = healthyRun({ seed: 'a', ...HEALTHY, pace: 'everyday' });
    const lively = healthyRun({ seed: 'lively', locks: 12, days: 2, pace: 'lively', commandsPerDay: 6 });
    for (const run of [everyday, lively]) {
      t.same(run.violations, []);
      t.same(run.unexplained, []);
      t.ok(run.acks > 100, `${run.acks} of ${run.commands} commands acknowledged`);
      t.ok(
        (run.explained.get('not-closed: its connection was cut') ?? 0) > MIN_CUTS,
        JSON.stringify([...run.explained]),
      );
    }
    const rules = new Set([...everyday.explained.keys()].map((explanation) => explanation.split(':')[0]));
    for (const rule of ['window-offline', 'recovery-offline', 'period-overdue']) t.ok(rules.has(rule), rule);
  },
);

t.test('ground truth explains a warning only for the right lock, rule and time', async (t) => {
  const [mac, otherMac] = [testMac(1), testMac(2)];
  const header = {
    note: '',
    locks: new Map([mac, otherMac].map((candidate) => [candidate, { ...UNNAMED_LOCK, power: DEFAULT_POWER }])),
  };
  const truth = new WorldTruth(header, RUN_STARTS_MS);
  const addWorldEvent = (atMs: number, members: Record<string, string | number | boolean>): void => {
    truth.add({ event: 'world', mac, atMs, members });
  };
  const outageMs = RUN_STARTS_MS + Hours(5);
  const outageEndMs = outageMs + Minutes(30);
  addWorldEvent(outageMs, { coverage: false });
  addWorldEvent(outageEndMs, { coverage: true });
  t.ok(truth.explain(mac, 'not-closed', outageMs));
  t.notOk(truth.explain(mac, 'not-closed', outageEndMs + Minutes(1)));
  t.notOk(truth.explain(otherMac, 'not-closed', outageMs), 'the outage of another lock explains nothing');
  for (const rule of ['window-offline', 'recovery-offline'] as const) {
    t.notOk(truth.explain(mac, rule, outageMs - 1), rule);
    t.ok(truth.explain(mac, rule, outageMs + Minutes(10)), rule);
    // The rule's 10 min, and the 7 min that a lock may take to reconnect, are over.
    t.notOk(truth.explain(mac, rule, outageEndMs + Minutes(18)), `${rule}: the lock has had time to reconnect`);
  }
  t.notOk(truth.explain(mac, 'period-overdue', outageEndMs + Hours(2)));
  for (const rule of ['sequence-gap', 'clock-ahead', 'period-too-soon'] as const)
    t.notOk(truth.explain(mac, rule, outageMs), `no event of the world explains ${rule}`);
});
