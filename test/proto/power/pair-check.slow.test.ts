// The pair check: `judge`, which checks a lock's messages, must accept whatever `step`, which simulates a lock, sends.
// Both were written from protocol.md and share only the power model, so if they disagree, one of them is wrong. The
// test gives each input in each state, and random walks of 30 days over a network that delays and loses packets. A
// violation fails, and so does a warning that the network does not explain. test/long has ten thousand walks. A failure
// prints how to repeat it: with PAIR_SEED the test makes only the walk of that seed, with PAIR_CASE (`CASE/EVENT`, both
// by number) only that input in that state.
import t from 'tap';
import { Hours } from '../../../proto/clock.js';
import type { EffectiveState } from '../../../proto/power/model.js';
import { caseEvents, cases } from '../../helpers/pair/cases.js';
import { mistakesInCase, mistakesOnWalk, PairStatistics } from '../../helpers/pair/report.js';

const WALKS = 60;
/** How long a case is observed after its input. */
const OBSERVED_FOR = Hours(1);
/** How long a single case is observed when it is repeated: until after the next Period Ping. */
const REPEATED_CASE_OBSERVED_FOR = Hours(26);

/** All kinds of uplinks that a lock can make. */
const ALL_KINDS = [
  'ack failed',
  'ack ok',
  'ack rejected',
  'cellular REASON_CELL_PING',
  'cellular REASON_NETWORK_PING',
  'cellular REASON_PERIOD_TRACKING',
  'cellular REASON_RESET',
  'cellular REASON_STATE_PING',
  'cellular REASON_THEFT',
  'cellular REASON_UNLOCKED_MOVEMENT',
  'close_connection REASON_CLOSE_CONNECTION',
  'gps REASON_GPS_PING',
  'gps REASON_PERIOD_TRACKING',
  'gps REASON_STATE_PING',
  'gps REASON_THEFT',
  'gps REASON_UNLOCKED_PING',
];

const { PAIR_SEED, PAIR_CASE } = process.env;

if (PAIR_SEED !== undefined) {
  t.test(`the walk of seed ${PAIR_SEED}`, async (t) => {
    t.same(mistakesOnWalk(Number(PAIR_SEED), new PairStatistics()), []);
  });
} else if (PAIR_CASE !== undefined) {
  t.test(`the case ${PAIR_CASE}`, async (t) => {
    const [caseNumber, eventNumber] = PAIR_CASE.split('/').map(Number);
    const [pairCase, event] = [cases()[caseNumber ?? -1], caseEvents()[eventNumber ?? -1]];
    if (pairCase === undefined || event === undefined) throw new Error(`there is no case ${PAIR_CASE}`);
    t.same(mistakesInCase(PAIR_CASE, pairCase, event, REPEATED_CASE_OBSERVED_FOR, new PairStatistics()), []);
  });
} else {
  t.test('the judge accepts every input in every state at every stage of a connection', async (t) => {
    const statistics = new PairStatistics();
    const states = new Map<EffectiveState, number>();
    for (const [caseNumber, pairCase] of cases().entries()) {
      for (const [eventNumber, event] of caseEvents().entries()) {
        const mistakes = mistakesInCase(`${caseNumber}/${eventNumber}`, pairCase, event, OBSERVED_FOR, statistics);
        // The situation is impossible, whatever the event.
        if (mistakes === null) break;
        const { state } = pairCase.situation;
        states.set(state, (states.get(state) ?? 0) + 1);
        if (mistakes.length > 0) t.same(mistakes, []);
      }
    }
    t.same([...states.keys()].sort(), ['AIRPLANE', 'HIGH', 'LOW_BATTERY', 'MID', 'RECOVERY']);
    // Fewer cases in a state would mean that a list of situations or inputs has become short by mistake.
    t.ok(Math.min(...states.values()) > 1000, `${statistics.runs} cases: ${JSON.stringify([...states])}`);
    // A case lasts an hour, too short for a daily ping.
    const kinds = ALL_KINDS.filter((kind) => !kind.includes('PERIOD'));
    t.same([...statistics.kinds].sort(), kinds, 'all kinds of uplinks occur, except period pings');
  });

  t.test('the judge accepts every random walk', async (t) => {
    const statistics = new PairStatistics();
    for (let seed = 1; seed <= WALKS; seed++) t.same(mistakesOnWalk(seed, statistics), [], `seed ${seed}`);
    t.same([...statistics.kinds].sort(), ALL_KINDS, 'all kinds of uplinks occur');
    const warnings = ['not-closed', 'period-overdue', 'recovery-offline', 'sequence-gap', 'window-offline'];
    t.same([...statistics.explained.keys()].sort(), warnings, 'all warnings that a network can cause occur');
  });
}
