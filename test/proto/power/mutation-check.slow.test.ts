// The mutation check proves that the tests of lock and judge find faults. A mutant is a lock or a judge with one fault.
// Each row, reason, rank and number of the power model is changed only in the lock's model. Then either the judge,
// which has the true model, must find it, or a scenario from protocol.md must fail. The bounds are changed in the
// judge's model; then a hand-written trace must fail. A mutant survives if no test finds it. Only the mutants listed
// here may survive, since they behave like the true model.
import t from 'tap';
import { Days } from '../../../proto/clock.js';
import { POWER_MODEL, type PowerModel } from '../../../proto/power/model.js';
import type { Uplink } from '../../../proto/wire/ping.js';
import { PairJudge } from '../../helpers/pair/judge.js';
import { cellular, START_MS, uplink } from '../../helpers/pair/judged-uplinks.js';
import { boundMutants, mutants } from '../../helpers/pair/mutants.js';
import { type Alteration, playScenario } from '../../helpers/pair/scenario.js';
import { SCENARIOS } from '../../helpers/pair/scenarios.js';
import { pairWalk, WALK_DAYS } from '../../helpers/pair/walk.js';
import { expectedOf, findingsOf, traceNames } from '../../helpers/sim/hand-traces.js';

const NO_RIDE = 'ride tracking adds to a ride, and in this state a ride sends nothing';
const NO_RANK = 'protocol.md §2 gives these two no rank';
const NOT_MADE = 'the trigger makes no ping of that kind, so its reason is never used';

/** Mutants that behave like the true model, each with the reason. */
const EQUIVALENT: Readonly<Record<string, string>> = {
  'AIRPLANE: rideTracking on': NO_RIDE,
  'LOW_BATTERY: rideTracking on': NO_RIDE,
  'HIGH and MID change places': 'a lock has one mode, so the two rows never apply at once',
  'period and kept-connection change places': NO_RANK,
  'kept-connection and locate-gps change places': NO_RANK,
  'locate-gps and locate-cell change places': NO_RANK,
  'locate-cell and reset change places': NO_RANK,
  'kept-connection: gpsReason REASON_GPS_PING': NOT_MADE,
  'locate-gps: cellularReason REASON_GPS_PING': NOT_MADE,
  'locate-cell: gpsReason REASON_GPS_PING': NOT_MADE,
  'reset: gpsReason REASON_GPS_PING': NOT_MADE,
};

/**
 * The first scenario that finds the mutant, with the judge's rule or the unexpected behaviour; undefined if none does.
 */
function firstOutcome(alteration: Alteration): string | undefined {
  for (const scenario of SCENARIOS) {
    const outcome = playScenario(scenario, alteration);
    if (outcome !== undefined) return `${outcome.by}, in "${scenario.name}": ${outcome.symptom}`;
  }
  return undefined;
}

t.test('with the true model every scenario goes as protocol.md says', async (t) => {
  for (const scenario of SCENARIOS)
    t.equal(playScenario(scenario)?.symptom, undefined, `${scenario.name}: ${scenario.citation}`);
});

t.test('no mutant of the lock survives', async (t) => {
  const survivors: string[] = [];
  const countsByFinder = new Map<string, number>();
  for (const mutant of mutants()) {
    const outcomeText = firstOutcome(mutant);
    if (outcomeText === undefined) survivors.push(mutant.name);
    else t.pass(`${mutant.name} — ${outcomeText}`);
    const finder = outcomeText?.split(',')[0] ?? 'none';
    countsByFinder.set(finder, (countsByFinder.get(finder) ?? 0) + 1);
  }
  t.same(survivors.sort(), Object.keys(EQUIVALENT).sort(), 'only mutants that behave like the true model survive');
  // The judge must find faults too, not only the scenarios.
  t.ok((countsByFinder.get('judge') ?? 0) > 10, `found by: ${JSON.stringify([...countsByFinder])}`);
});

/** Faults that the judge must also find on random walks, with the rule that finds each. */
const SEEN_ON_WALKS: Readonly<Record<string, string>> = {
  'AIRPLANE: theft on': 'airplane-silence',
  'LOW_BATTERY: stateChange on': 'low-battery-theft-only',
  'HIGH: connection kept never': 'window-offline',
  'HIGH: connection kept always': 'connection-unexplained',
  'RECOVERY: connection kept never': 'recovery-offline',
  'MID: period off': 'period-overdue',
  'never closes': 'connection-unexplained',
  'state-change: cellularReason REASON_THEFT': 'theft-while-unlocked',
  'a period ping every 6 h': 'period-too-soon',
  'sequence numbers that skip 3': 'sequence-gap',
  'sequence numbers that restart after 3': 'sequence-conflict',
  'cellular pings instead of the GPS pings of a ride': 'wrong-ping-type',
  'MID: stateChange off': 'change-untold',
  'period: cellularReason none': 'gps-before-cellular',
  'period: gpsReason none': 'gps-missing',
  'no close-connection pings': 'close-missing',
  'kept-connection: cellularReason none': 'network-ping-missing',
  'network pings in MID': 'network-ping-unkept',
  'theftGpsEvery × 0.5': 'cadence-too-fast',
  'no refresh': 'refresh-missing',
  'a locate ping without a command': 'locate-unasked',
  'an acknowledgement without a command': 'ack-unasked',
  'the answer ok to commands that are not carried out': 'ack-untrue',
  'commands are ignored': 'command-ignored',
  'a clock that steps back at each close': 'clock-back',
  'a clock 2 h behind': 'clock-behind',
  'a frozen position': 'motion-unlikely',
};
/** The number of walks that are tried per fault: enough for each of these faults to show at least once. */
const WALKS = 40;

t.test('the walks of the pair check find a lock that breaks the model', async (t) => {
  const allMutants = mutants();
  for (const [name, rule] of Object.entries(SEEN_ON_WALKS)) {
    const mutant = allMutants.find((candidate) => candidate.name === name);
    if (mutant === undefined) throw new Error(`there is no mutant "${name}"`);
    const { name: _, ...alteration } = mutant;
    const seeds = Array.from({ length: WALKS }, (_, index) => index + 1);
    const found = seeds.find((seed) => {
      const run = pairWalk(seed, WALK_DAYS, alteration);
      // Findings that the walk's bad network does not explain.
      return run.unexplained.some(({ finding }) => finding.rule === rule);
    });
    t.ok(found, `${name} — ${rule}, on the walk of seed ${found}`);
  }
});

/**
 * Whether an uplink that arrives 29 days late is still compared with its neighbours, as protocol.md §3 promises for 30.
 * The late uplink reports unlocked. So the state ping with the next number, which also reports unlocked, breaks
 * state-unchanged.
 */
function comparesLate(model: PowerModel): boolean {
  const rules: string[] = [];
  const addRule = ({ rule }: { readonly rule: string }) => void rules.push(rule);
  const ignoreWithdrawal = () => undefined;
  const judge = new PairJudge(START_MS, { listeningSinceMs: START_MS }, addRule, ignoreWithdrawal, model);
  const statePing = (sequence: number, lockState: 'locked' | 'unlocked'): Uplink =>
    uplink({ sequence, body: cellular({ reason: 'REASON_STATE_PING', lockState }) });
  judge.judge({ type: 'connect', source: 'lock', atMs: START_MS });
  judge.receive(statePing(1, 'locked'), START_MS);
  judge.receive(statePing(3, 'unlocked'), START_MS);
  judge.receive(statePing(2, 'unlocked'), START_MS + Days(29));
  return rules.includes('state-unchanged');
}

/** Changed bounds that no trace can show, each with the reason. */
const NOT_THE_JUDGES: Readonly<Record<string, string>> = {
  'lateWithin × 2': 'protocol.md §3 makes promises for uplinks up to 30 days late, but not for later ones',
  'bufferedOver × 2': 'the gateway marks uplinks as buffered, the judge does not read it',
  'bufferedOver × 0.5': 'the gateway marks uplinks as buffered, the judge does not read it',
};

t.test('no mutant of the judge’s bounds survives', async (t) => {
  const survivors: string[] = [];
  for (const { name, model } of boundMutants()) {
    const failingTrace = traceNames.find((file) => {
      return JSON.stringify(findingsOf(file, model)) !== JSON.stringify(expectedOf(file));
    });
    if (failingTrace !== undefined) t.pass(`${name} — ${failingTrace}`);
    else if (!comparesLate(model)) t.pass(`${name} — an uplink 29 days late`);
    else survivors.push(name);
  }
  t.ok(comparesLate(POWER_MODEL), 'an uplink 29 days late is compared with its neighbours');
  t.same(survivors.sort(), Object.keys(NOT_THE_JUDGES).sort());
  const failing = traceNames.filter((file) => {
    return JSON.stringify(findingsOf(file, POWER_MODEL)) !== JSON.stringify(expectedOf(file));
  });
  t.same(failing, [], 'with the true bounds each trace has its expected findings');
});
