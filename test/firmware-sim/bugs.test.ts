// Firmware bugs (firmware-sim/faults/bugs.ts): a run of simulated locks with a bug breaks the rule that the table of
// bugs names for it, and none but that one and those that the table says may follow from it (`rulesOf`). A bug without
// a rule is one that the judge can't see. The same run without the bug breaks no rule. A rule is a check of the judge,
// which compares the locks' messages with the specification.
import t from 'tap';
import { type Bug, rulesOf } from '../../firmware-sim/faults/bug.js';
import { assignBugs, BUGS, parseBugAssignment } from '../../firmware-sim/faults/bugs.js';
import { assignMix, parseMix } from '../../firmware-sim/fleet/mix.js';
import { ScriptedWorld, type World, type WorldEvent } from '../../firmware-sim/world/world.js';
import { Days, Hours, Minutes, Seconds } from '../../proto/clock.js';
import { RULES } from '../../proto/power/rules.js';
import { DEFAULT_POWER, type PowerSettings } from '../../proto/wire/ping.js';
import { quickOrLong } from '../helpers/house/test-length.js';
import { findingsIn, RUN_STARTS_MS, rulesBroken, traceOf } from '../helpers/sim/judged-run.js';

/** One lock of each kind: in MID with ride tracking, in HIGH, in recovery. */
const KINDS: readonly PowerSettings[] = [
  { ...DEFAULT_POWER, rideTracking: true },
  { ...DEFAULT_POWER, mode: 'HIGH' },
  { ...DEFAULT_POWER, recovery: true },
];
/** On the first day the locks are silent for hours. On the later days only a bug can prevent a daily ping. */
const DAYS = 3;

/**
 * Every situation that a bug affects: each day a ride and a theft, on the first day also a low battery and airplane
 * mode.
 */
function eventsOfDay(dayMs: number): WorldEvent[] {
  const at = (span: number, change: WorldEvent['change']): WorldEvent => ({ atMs: dayMs + span, change });
  const unlockAndLock = (hour: number): WorldEvent[] => [
    at(Hours(hour) + Minutes(10), { type: 'lock-state', lockState: 'unlocked' }),
    at(Hours(hour) + Minutes(20), { type: 'lock-state', lockState: 'locked' }),
  ];
  const everyDay = [
    at(Hours(8), { type: 'lock-state', lockState: 'unlocked' }),
    at(Hours(8) + Minutes(3), { type: 'motion', moving: true }),
    at(Hours(8) + Minutes(15), { type: 'motion', moving: false }),
    at(Hours(8) + Minutes(15) + Seconds(20), { type: 'lock-state', lockState: 'locked' }),
    at(Hours(12), { type: 'motion', moving: true }),
    at(Hours(12) + Minutes(4), { type: 'motion', moving: false }),
  ];
  if (dayMs !== RUN_STARTS_MS) return everyDay;
  // On the first day also an hour with a low battery and an hour in airplane mode, with a state change in each.
  return [
    ...everyDay,
    at(Hours(14), { type: 'battery', percent: 9 }),
    ...unlockAndLock(14),
    at(Hours(15), { type: 'battery', percent: 80 }),
    at(Hours(21), { type: 'settings', change: { airplane: true } }),
    ...unlockAndLock(21),
    at(Hours(22), { type: 'settings', change: { airplane: false } }),
  ];
}

function scriptedWorld(power: PowerSettings): World {
  const events = Array.from({ length: DAYS }, (_, day) => eventsOfDay(RUN_STARTS_MS + Days(day))).flat();
  const position = { latitudeDegrees: 52.1, longitudeDegrees: 4.5, uncertaintyMeters: 6 };
  const initialState = {
    lockState: 'locked',
    batteryPercent: 70,
    power,
    ebikeVolts: null,
    tetherState: 'detached',
    covered: true,
    skyOpen: true,
  } as const;
  // The lock stays at one position, so its speed is below the 1 m/s from which motion-unlikely expects other positions.
  return new ScriptedWorld(initialState, events, { position, speedMetersPerSecond: 0.5, directionDegrees: 0 });
}

/**
 * How many locks of each kind the scripted fleet has, and how many locks the fleet in a generated world: the first pair
 * in `npm test`, the second in `npm run test:long`.
 */
const [LOCKS_OF_KIND, GENERATED_LOCKS] = quickOrLong([1, 6], [2, 9]);

/** The rules that the scripted fleet breaks if all its locks have these bugs. */
function brokenByScript(...bugs: Bug[]): string[] {
  const worldOf = (_mac: string, index: number): World => scriptedWorld(KINDS[index % KINDS.length] ?? DEFAULT_POWER);
  const assignments = bugs.map((bug) => ({ bug, locks: null }));
  return rulesBroken(
    findingsIn(traceOf({ seed: 1, locks: LOCKS_OF_KIND * KINDS.length, days: DAYS, worldOf, bugs: assignments })),
  );
}

t.test('each rule has a bug that breaks it, and each bug has a name and a description', async (t) => {
  // What rests on the world, that is, on what truly happened around the lock, the judge never finds.
  t.same(
    BUGS.flatMap(({ rule }) => rule ?? []),
    RULES.filter(({ restsOn }) => restsOn !== 'world').map(({ rule }) => rule),
    'one for each rule that the judge can find broken, in the order of the rules',
  );
  t.equal(new Set(BUGS.map(({ name }) => name)).size, BUGS.length);
  for (const { name, sentence, shows, wrapStep, wrapVirtualLink } of BUGS) {
    t.match(name, /^[a-z0-9]+(-[a-z0-9]+)+$/);
    t.match(sentence, /^[A-Z].*\.$/);
    t.not(shows, '');
    t.not(wrapStep === undefined, wrapVirtualLink === undefined, `${name} wraps either the step or the link`);
  }
});

/** Bugs that have no effect in a run without commands, or with locks that stay at one place. */
const UNSHOWN: readonly string[] = ['acknowledges-untruly', 'ignores-commands', 'frozen-position'];

t.test('a healthy fleet breaks no rule; a fleet with a bug breaks the rules of that bug only', async (t) => {
  t.same(brokenByScript(), []);
  for (const bug of BUGS) {
    const broken = brokenByScript(bug);
    t.same(
      broken.filter((rule) => !(rulesOf(bug) as string[]).includes(rule)),
      [],
      `${bug.name} breaks no other rule`,
    );
    if (bug.rule !== null && !UNSHOWN.includes(bug.name)) t.ok(broken.includes(bug.rule), `${bug.name}: ${bug.rule}`);
  }
});

/** The mix of the run for bugs that need one, as their table rows say. */
const SHOWN_BY: Readonly<Record<string, string>> = { 'talks-in-airplane': 'airplane', 'talks-on-empty': 'low-battery' };

t.test('in a generated world each bug adds only findings of the rules that belong to the bug', async (t) => {
  const run = (mix: string | undefined, days: number, bug?: Bug): string[] => {
    const parts = mix === undefined ? {} : { mix: parseMix(mix) };
    const bugs = bug === undefined ? [] : [{ bug, locks: null }];
    return rulesBroken(findingsIn(traceOf({ seed: 3, locks: GENERATED_LOCKS, days, pace: 'lively', ...parts, bugs })));
  };
  const healthy = new Map<string, string[]>();
  for (const bug of BUGS) {
    const mix = SHOWN_BY[bug.name];
    // A missing daily ping is noticed after 25 h; 1.25 days are 30 h.
    const days = bug.needs?.includes('a-day') ? 1.25 : 0.5;
    const healthyRules = healthy.get(`${mix} ${days}`) ?? run(mix, days);
    healthy.set(`${mix} ${days}`, healthyRules);
    const added = run(mix, days, bug).filter((rule) => !healthyRules.includes(rule));
    t.same(
      added.filter((rule) => !(rulesOf(bug) as string[]).includes(rule)),
      [],
      `${bug.name} breaks no other rule`,
    );
    // The healthy fleet breaks not-closed too: its locks lose connections in this world.
    if (bug.rule === null || bug.rule === 'not-closed' || UNSHOWN.includes(bug.name)) continue;
    t.ok(added.includes(bug.rule), `${bug.name}: ${bug.rule}`);
  }
});

t.test('a bug can be assigned to some of the locks; different bugs get different locks', async (t) => {
  const assignments = ['clock-ahead:2', 'forgets-period:1', 'poses-as-phone'].map(parseBugAssignment);
  t.same(
    assignBugs(assignments, 4).map((bugs) => bugs.map(({ name }) => name)),
    [
      ['clock-ahead', 'poses-as-phone'],
      ['clock-ahead', 'poses-as-phone'],
      ['forgets-period', 'poses-as-phone'],
      ['poses-as-phone'],
    ],
  );
  t.same(assignBugs([parseBugAssignment('clock-ahead:9')], 2).flat().length, 2, 'no more assignments than locks');
  const lines = traceOf({ seed: 5, locks: 6, days: 1, bugs: [parseBugAssignment('clock-ahead:2')] });
  const findings = findingsIn(lines).filter(({ rule }) => rule === 'clock-ahead');
  t.equal(new Set(findings.map(({ mac }) => mac)).size, 2);
  for (const text of ['clock', 'clock-ahead:0', 'clock-ahead:x', 'clock-ahead:1:2', ''])
    t.throws(() => parseBugAssignment(text), { code: 'input-bug' }, text);
});

t.test('a mix assigns each part its share, spread over the fleet', async (t) => {
  const mix = parseMix('mid=60,high+ride=30,recovery+low-battery=10');
  const names = assignMix(mix, 100).map(({ name }) => name);
  const count = (name: string): number => names.filter((partName) => partName === name).length;
  t.same(
    mix.map(({ name }) => count(name)),
    [60, 30, 10],
  );
  t.equal(new Set(names.slice(0, 10)).size, 3, 'the first ten locks have all three parts');
  t.match(mix[1]?.initial, { power: { mode: 'HIGH', rideTracking: true, airplane: false, recovery: false } });
  t.match(mix[2]?.initial, { power: { mode: 'MID', recovery: true }, batteryPercent: 7 });
  t.same(
    assignMix(parseMix('high'), 2).map(({ name }) => name),
    ['high', 'high'],
  );
  for (const text of ['', 'mid=', 'mid=-1', 'mid=0', 'low', 'mid=1=2', 'mid++high', 'toString=1'])
    t.throws(() => parseMix(text), { code: 'input-mix', message: /expected parts such as/ }, text);
});
