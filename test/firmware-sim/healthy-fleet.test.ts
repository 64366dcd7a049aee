// A healthy fleet of every kind of lock, with commands, breaks no rule of the judge, which checks the locks' messages
// against the specification. An event of the simulated world, such as lost coverage, explains each warning. With a
// firmware bug the fleet breaks the rule of that bug, and no other. The findings are compared with what truly happened,
// which the judge never reads. `npm run test:long` runs these tests with the larger sizes below, and tests of a whole
// year (test/long/healthy-fleet.test.ts).
import t, { type Test } from 'tap';
import { type Bug, rulesOf } from '../../firmware-sim/faults/bug.js';
import { BUGS } from '../../firmware-sim/faults/bugs.js';
import { Hours, Minutes } from '../../proto/clock.js';
import { UNNAMED_LOCK } from '../../proto/trace/trace.js';
import { DEFAULT_POWER } from '../../proto/wire/ping.js';
import { testMac } from '../helpers/gateway/test-gateway.js';
import { byLength } from '../helpers/house/test-length.js';
import { type HealthyRun, healthyRun, rulesUnexplained } from '../helpers/sim/healthy-run.js';
import { RUN_STARTS_MS } from '../helpers/sim/judged-run.js';
import { WorldTruth } from '../helpers/sim/world-truth.js';

/**
 * A small fleet in which most bugs show. Here and below, `byLength` picks the first value in `npm test` and the second
 * in `npm run test:long`.
 */
const EVERYDAY = { ...byLength({ locks: 10, days: 2.2 }, { locks: 25, days: 3 }), pace: 'everyday' } as const;
/** For bugs that need a lock in a rare state, airplane mode or low battery: the smallest fleet with enough of them. */
const WITH_RARE_STATES = { locks: 25, days: 3, pace: 'everyday' } as const;
const NEEDS_RARE_STATES: readonly string[] = ['talks-in-airplane', 'talks-on-empty'];
const WITH_THEFTS = { locks: 12, days: 1, pace: 'lively' } as const;

/** The fleet of the first test, and how many connections must at least be cut in it. */
const [HEALTHY, MIN_CUTS] = byLength(
  [{ locks: 16, days: 8, commandsPerDay: 2 }, 15],
  [{ locks: 30, days: 10, commandsPerDay: 1 }, 50],
);
/** The fleet with a missing function. It needs a restart of a modem, which not every seed has in a few days. */
const OMITTING = byLength({ seed: '1', locks: 6, days: 4 }, { seed: 'week', locks: 9, days: 7 });

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

/** Bugs by which a function of the specification is missing or wrong, each with the rule that finds it, or null. */
const OMITTED_FUNCTIONS: Readonly<Record<string, string | null>> = {
  'no-theft-pings': null,
  'no-state-pings': 'change-untold',
  'no-theft-gps': null,
  'no-period-gps': 'gps-missing',
  'no-ride-gps': null,
  'no-network-pings': 'network-ping-missing',
  'no-close-pings': 'close-missing',
  'no-movement-pings': 'refresh-missing',
  'no-reset-ping': null,
  'swapped-coordinates': null,
  'frozen-position': 'motion-unlikely',
  'clock-2h-behind': 'clock-behind',
};

/** Checks that the run breaks the rule of the bug, if there is one, and only rules that the bug's table row names. */
function breaksOnlyItsRules(t: Test, bug: Bug, run: HealthyRun): void {
  const broken = rulesUnexplained(run);
  if (bug.rule !== null) t.ok(broken.includes(bug.rule), `${bug.name} breaks ${bug.rule}`);
  const others = broken.filter((rule) => !rulesOf(bug).includes(rule));
  t.same(others, [], `${bug.name} breaks no other rule`);
}

t.test('in a mixed fleet with commands only the rules of a bug find the bug', async (t) => {
  for (const bug of BUGS.filter(({ name }) => !(name in OMITTED_FUNCTIONS))) {
    const withoutThefts = NEEDS_RARE_STATES.includes(bug.name) ? WITH_RARE_STATES : EVERYDAY;
    const run = healthyRun({
      ...(bug.needs?.includes('thefts') ? WITH_THEFTS : withoutThefts),
      ...{ seed: 1, commandsPerDay: 1, bug },
    });
    breaksOnlyItsRules(t, bug, run);
  }
});

t.test('some days of a fleet with a missing function differ from healthy days as docs/protocol.md says', async (t) => {
  const days = { ...OMITTING, pace: 'everyday', commandsPerDay: 1 } as const;
  const healthy = healthyRun(days);
  t.same([healthy.violations, healthy.unexplained], [[], []], 'the healthy fleet breaks no rule');
  for (const [name, rule] of Object.entries(OMITTED_FUNCTIONS)) {
    const bug = BUGS.find((candidate) => candidate.name === name);
    t.equal(bug?.rule, rule, `${name}: ${rule ?? 'no rule can find it'}`);
    if (bug === undefined) continue;
    const run = healthyRun({ ...days, bug });
    breaksOnlyItsRules(t, bug, run);
    // The days may have no theft, and two bugs change only positions, not the number of uplinks.
    if (bug.needs?.includes('thefts') || name === 'swapped-coordinates' || name === 'frozen-position') continue;
    t.not(run.uplinkCount, healthy.uplinkCount, `${name}: the locks made more or fewer uplinks`);
  }
});

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
