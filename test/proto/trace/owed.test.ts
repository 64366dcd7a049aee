// The rule `owed` (protocol.md §3) compares a lock's pings with what truly happened to the lock, the `world` events of
// a trace: a lock owes each ping that it should have sent then. Healthy fleets do not break the rule, whether or not
// the network has faults. Firmware that lacks a function is found even if the judge, which sees only messages, can't
// notice it; the finding names the right event of the world. The hand-written traces test/traces/owed.* are checked
// with those of the other rules.
import t from 'tap';
import { FAULTS } from '../../../firmware-sim/faults/faults.js';
import { parseMix } from '../../../firmware-sim/fleet/mix.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { TraceCheck } from '../../../proto/trace/check.js';
import { OwedCheck, type OwedFinding, type OwedOptions } from '../../../proto/trace/owed/owed-check.js';
import { TraceReader } from '../../../proto/trace/reader.js';
import type { TraceWorld } from '../../../proto/trace/trace.js';
import { quickOrLong } from '../../helpers/house/test-length.js';
import { healthyRun } from '../../helpers/sim/healthy-run.js';
import { traceOf } from '../../helpers/sim/judged-run.js';
import { type Mutation, mutantOf } from '../../helpers/sim/mutant-trace.js';

const ALL_FAULTS = FAULTS.map(({ name }) => name);
t.setTimeout(120_000);

/** The findings of the rule `owed` about a trace, and of the judge. */
interface Compared {
  readonly owed: readonly OwedFinding[];
  /** The names of the rules that the judge finds broken. */
  readonly judged: ReadonlySet<string>;
}

/** Judges a trace, and compares it with its own events of the world. */
function compare(lines: readonly string[], options: Partial<OwedOptions> = {}): Compared {
  const reader = new TraceReader();
  let check: TraceCheck | undefined;
  let owed: OwedCheck | undefined;
  for (const line of lines) {
    const event = reader.read(line);
    if (!event.ok) throw new Error(`line ${event.error.line}: ${event.error.message}`);
    const { header } = reader;
    if (header === null) continue;
    check ??= new TraceCheck(POWER_MODEL, header);
    // The truth is in the trace itself, so it has no file name of its own.
    owed ??= new OwedCheck({ model: POWER_MODEL, header, truthName: null, ...options });
    if (event.value === null) continue;
    if (event.value.event === 'world') owed.world(event.value, reader.line);
    owed.event(event.value, reader.line);
    check.judge(event.value, reader.line);
  }
  const violations = (check?.findings() ?? []).filter(({ severity }) => severity === 'violation');
  return { owed: owed?.findings() ?? [], judged: new Set(violations.map(({ rule }) => rule)) };
}

/** The fleet of the first test, and how many positions must at least be compared. */
const [EVERYDAY, LIVELY, POSITIONS] = quickOrLong(
  [{ locks: 12, days: 3 }, { locks: 6, days: 0.5 }, 300],
  [{ locks: 15, days: 7 }, { locks: 6, days: 1 }, 1000],
);

t.test('a healthy fleet owes nothing, with and without faults', async (t) => {
  for (const faults of [[], ALL_FAULTS]) {
    const everyday = healthyRun({ seed: 'owed', ...EVERYDAY, pace: 'everyday', commandsPerDay: 1, faults });
    const lively = healthyRun({ seed: 'owed', ...LIVELY, pace: 'lively', commandsPerDay: 6, faults });
    for (const run of [everyday, lively]) {
      t.same(run.owed, []);
      t.ok(run.comparedPositions > POSITIONS, `${run.comparedPositions} positions were compared`);
    }
  }
});

const HEALTHY = traceOf({
  ...{ seed: 'owed', locks: 10, days: 1, pace: 'lively', hasWorldEvents: true },
  mix: parseMix('mid=60,mid+ride=40'),
});

t.test('the fleet of the mutants is healthy', async (t) => {
  const { owed, judged } = compare(HEALTHY);
  t.same(owed, []);
  t.same([...judged], []);
  t.same(
    mutantOf(HEALTHY, (ping) => ping).map((line) => line.length > 0),
    HEALTHY.map(() => true),
    'a mutation that changes nothing omits no line',
  );
});

/** Firmware that lacks a function. */
interface Mutant {
  readonly name: string;
  readonly mutate: Mutation;
  /** The event of the world that each finding names. */
  readonly event: RegExp;
  readonly message: RegExp;
}

const omitPings =
  (isOmitted: (ping: Parameters<Mutation>[0]) => boolean): Mutation =>
  (ping) =>
    isOmitted(ping) ? null : ping;
const isGps = ({ ping_type }: Parameters<Mutation>[0]): boolean => ping_type === 'gps';
const isTracked = ({ reason }: Parameters<Mutation>[0]): boolean =>
  reason === 'REASON_THEFT' || reason === 'REASON_UNLOCKED_PING';

/** The missing functions that, by protocol.md §3, can't be noticed without knowing what truly happened. */
const INVISIBLE: readonly Mutant[] = [
  {
    name: 'no theft pings at all',
    mutate: omitPings(({ reason }) => reason === 'REASON_THEFT'),
    event: /^(moving true|lock_state locked|sky true)/,
    message: /The lock moved while it was locked.*no (cellular|GPS) REASON_THEFT/,
  },
  {
    name: 'no GPS in thefts and rides',
    mutate: omitPings((ping) => isGps(ping) && isTracked(ping)),
    event: /^(moving true|lock_state (un)?locked|sky true|power|battery|coverage)/,
    message: /under an open sky.*no GPS REASON_(THEFT|UNLOCKED_PING)/,
  },
  {
    name: 'no reset ping',
    mutate: omitPings(({ reason }) => reason === 'REASON_RESET'),
    event: /^modem_reset true$/,
    message: /The modem restarted, and no cellular REASON_RESET was made /,
  },
  {
    name: 'swapped coordinates',
    mutate: (ping) => (isGps(ping) ? { ...ping, latitude: ping.longitude, longitude: ping.latitude } : ping),
    event: /^fix /,
    message: /GPS ping REASON_\w+ is [\d,]+ m from the true one/,
  },
  {
    name: 'no movement pings',
    mutate: omitPings(({ reason }) => reason === 'REASON_UNLOCKED_MOVEMENT'),
    event: /^(moving true|lock_state unlocked|battery_percent|boot)/,
    message: /The lock moved while it was unlocked.*no cellular REASON_UNLOCKED_MOVEMENT/,
  },
];

/** How many findings of each mutant are checked. */
const MAX_CHECKED_FINDINGS = quickOrLong(50, 10_000);

for (const { name, mutate, event, message } of INVISIBLE) {
  t.test(`${name}: owed finds it, and names the world event`, async (t) => {
    const lines = mutantOf(HEALTHY, mutate);
    const { owed } = compare(lines);
    t.ok(owed.length >= 3, `${owed.length} findings`);
    for (const finding of owed.slice(0, MAX_CHECKED_FINDINGS)) {
      t.match(finding, { rule: 'owed', severity: 'violation', message });
      t.match(finding.world.event, event);
      const cause = JSON.parse(lines[finding.world.line - 1] ?? '') as TraceWorld & { at: string; mac: string };
      t.same([cause.event, cause.at, cause.mac], ['world', finding.world.at, finding.mac]);
      t.match(finding.message, `(line ${finding.world.line})`);
    }
  });
}

t.test('owed also finds a missing state ping, period ping, ride ping, and all missing GPS pings', async (t) => {
  const reasons = ['REASON_STATE_PING', 'REASON_PERIOD_TRACKING', 'REASON_UNLOCKED_PING'];
  const fourDays = traceOf({ seed: 'week', locks: 4, days: 4, hasWorldEvents: true, mix: parseMix('mid+ride=100') });
  t.same(compare(fourDays).owed, []);
  for (const omittedReason of reasons) {
    const findings = compare(
      mutantOf(
        fourDays,
        omitPings(({ reason }) => reason === omittedReason),
      ),
    ).owed;
    t.ok(findings.length > 0, omittedReason);
    for (const { message } of findings) t.match(message, omittedReason);
  }
  const withoutGps = compare(mutantOf(fourDays, omitPings(isGps))).owed;
  for (const reason of reasons)
    t.ok(
      withoutGps.some(({ message }) => message.includes(`no GPS ${reason}`)),
      reason,
    );
});
