// A healthy fleet of every kind of lock, with commands, breaks no rule, and an event of the world explains each
// warning.
// With a firmware bug the fleet breaks the rule of that bug, and no other. The oracle is the ground truth, which the
// judge never reads. test/long/healthy-fleet.test.ts is the long version.
import t, { type Test } from 'tap';
import { type Bug, rulesOf } from '../../firmware-sim/faults/bug.js';
import { BUGS } from '../../firmware-sim/faults/bugs.js';
import { Hours, Minutes } from '../../proto/clock.js';
import { UNNAMED_LOCK } from '../../proto/trace/trace.js';
import { DEFAULT_POWER } from '../../proto/wire/ping.js';
import { testMac } from '../helpers/gateway/test-gateway.js';
import { type HealthyRun, healthyRun, rulesUnexplained } from '../helpers/sim/healthy-run.js';
import { RUN_STARTS_MS } from '../helpers/sim/judged-run.js';
import { WorldTruth } from '../helpers/sim/world-truth.js';

/** The smallest fleet in which every bug shows, except in thefts, which are too rare. */
const EVERYDAY = { locks: 25, days: 3, pace: 'everyday' } as const;
const WITH_THEFTS = { locks: 12, days: 1, pace: 'lively' } as const;

t.setTimeout(120_000);

t.test(
  'thirty locks in ten days, and twelve lively locks in two days, cause no violation and no unexplained warning',
  async (t) => {
    const everyday = healthyRun({ seed: 'a', locks: 30, days: 10, pace: 'everyday', commandsPerDay: 1 });
    const lively = healthyRun({ seed: 'lively', locks: 12, days: 2, pace: 'lively', commandsPerDay: 6 });
    for (const run of [everyday, lively]) {
      t.same(run.violations, []);
      t.same(run.unexplained, []);
      t.ok(run.acks > 100, `${run.acks} of ${run.commands} commands acknowledged`);
      t.ok((run.explained.get('not-closed: its connection was cut') ?? 0) > 50, JSON.stringify([...run.explained]));
    }
    const rules = new Set([...everyday.explained.keys()].map((why) => why.split(':')[0]));
    for (const rule of ['window-offline', 'recovery-offline', 'period-overdue']) t.ok(rules.has(rule), rule);
  },
);

/** Each function of the specification, left out or wrong: the bug, and the rule that sees it, or null. */
const FUNCTIONS_LEFT_OUT: Readonly<Record<string, string | null>> = {
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

/** The rule of the bug is broken, where it has one, and no rule but those of its row. */
function breaksOnlyItsRules(t: Test, bug: Bug, run: HealthyRun): void {
  const broken = rulesUnexplained(run);
  if (bug.rule !== null) t.ok(broken.includes(bug.rule), `${bug.name} breaks ${bug.rule}`);
  const others = broken.filter((rule) => !rulesOf(bug).includes(rule));
  t.same(others, [], `${bug.name} breaks no other rule`);
}

t.test('in a mixed fleet with commands only the rules of a bug find the bug', async (t) => {
  for (const bug of BUGS.filter(({ name }) => !(name in FUNCTIONS_LEFT_OUT))) {
    const isOfThieves = bug.needs?.includes('thefts') ?? false;
    const run = healthyRun({ seed: 1, commandsPerDay: 1, ...(isOfThieves ? WITH_THEFTS : EVERYDAY), bug });
    breaksOnlyItsRules(t, bug, run);
  }
});

t.test('a fleet-week with a function left out differs from the healthy week as protocol.md §3 says', async (t) => {
  const week = { seed: 'week', locks: 9, days: 7, pace: 'everyday', commandsPerDay: 1 } as const;
  const healthy = healthyRun(week);
  t.same([healthy.violations, healthy.unexplained], [[], []], 'the healthy week breaks no rule');
  for (const [name, rule] of Object.entries(FUNCTIONS_LEFT_OUT)) {
    const bug = BUGS.find((one) => one.name === name);
    t.equal(bug?.rule, rule, `${name}: ${rule ?? 'only a world or a certificate shows it'}`);
    if (bug === undefined) continue;
    const run = healthyRun({ ...week, bug });
    breaksOnlyItsRules(t, bug, run);
    // A week may have no theft, and two bugs change only positions.
    if (bug.needs?.includes('thefts') || name === 'swapped-coordinates' || name === 'frozen-position') continue;
    t.not(run.uplinks, healthy.uplinks, `${name}: the lock made other uplinks`);
  }
});

t.test('ground truth explains a warning only for the right lock, rule and time', async (t) => {
  const [mac, other] = [testMac(1), testMac(2)];
  const header = {
    note: '',
    locks: new Map([mac, other].map((one) => [one, { ...UNNAMED_LOCK, power: DEFAULT_POWER }])),
  };
  const truth = new WorldTruth(header, RUN_STARTS_MS);
  const tell = (atMs: number, members: Record<string, string | number | boolean>): void => {
    truth.add({ event: 'world', mac, atMs, members });
  };
  const outMs = RUN_STARTS_MS + Hours(5);
  const backMs = outMs + Minutes(30);
  tell(outMs, { coverage: false });
  tell(backMs, { coverage: true });
  t.ok(truth.explain(mac, 'not-closed', outMs));
  t.notOk(truth.explain(mac, 'not-closed', backMs + Minutes(1)));
  t.notOk(truth.explain(other, 'not-closed', outMs), 'the outage of another lock explains nothing');
  for (const rule of ['window-offline', 'recovery-offline'] as const) {
    t.notOk(truth.explain(mac, rule, outMs - 1), rule);
    t.ok(truth.explain(mac, rule, outMs + Minutes(10)), rule);
    t.notOk(truth.explain(mac, rule, backMs + Minutes(18)), `${rule}: it should be back by now`);
  }
  t.notOk(truth.explain(mac, 'period-overdue', backMs + Hours(2)));
  for (const rule of ['sequence-gap', 'clock-ahead', 'period-too-soon'] as const)
    t.notOk(truth.explain(mac, rule, outMs), `nothing of the world explains ${rule}`);
});
