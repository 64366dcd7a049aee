// In a fleet with a firmware bug, the judge finds the rule of that bug broken, and no other. The findings are compared
// with what truly happened, which the judge never reads; healthy-fleet.test.ts shows that a fleet without a bug breaks
// no rule. bugs.test.ts does the same with single locks, in `npm test`.
import t, { type Test } from 'tap';
import { type Bug, rulesOf } from '../../firmware-sim/faults/bug.js';
import { BUGS } from '../../firmware-sim/faults/bugs.js';
import { quickOrLong } from '../helpers/house/test-length.js';
import { type HealthyRun, healthyRun, rulesUnexplained } from '../helpers/sim/healthy-run.js';

/**
 * A small fleet in which most bugs show. Here and below, `quickOrLong` picks the first value in `npm run test:slow` and
 * the second in `npm run test:long`.
 */
const EVERYDAY = { ...quickOrLong({ locks: 10, days: 2.2 }, { locks: 25, days: 3 }), pace: 'everyday' } as const;
/** For bugs that need a lock in a rare state, airplane mode or low battery: the smallest fleet with enough of them. */
const WITH_RARE_STATES = { locks: 25, days: 3, pace: 'everyday' } as const;
const NEEDS_RARE_STATES: readonly string[] = ['talks-in-airplane', 'talks-on-empty'];
const WITH_THEFTS = { locks: 12, days: 1, pace: 'lively' } as const;

/** The fleet with a missing function. It needs a restart of a modem, which not every seed has in a few days. */
const OMITTING = quickOrLong({ seed: '1', locks: 6, days: 4 }, { seed: 'week', locks: 9, days: 7 });

t.setTimeout(120_000);

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
