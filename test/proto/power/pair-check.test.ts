// The pair check: whatever `step` emits, `judge` accepts. Both were written from protocol.md and share its table alone,
// so where they disagree one of them is wrong. In each state each input, and random walks of 30 days over a network
// that delays, cuts and forgets; a violation is always wrong, and so is a warning that the world does not explain.
// test/long has ten thousand walks. A failure says how to repeat it.
import t from 'tap';
import { Hours } from '../../../proto/clock.js';
import type { EffectiveState } from '../../../proto/power/model.js';
import { caseEvents, cases } from '../../helpers/pair/cases.js';
import { mistakesInCase, mistakesOnWalk, PairStatistics } from '../../helpers/pair/report.js';

const WALKS = 400;
/** How long a case is watched afterwards; the long form waits for the next Period Ping. */
const SETTLES = Hours(1);

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
    const [one, happening] = PAIR_CASE.split('/').map(Number);
    const [chosen, what] = [cases()[one ?? -1], caseEvents()[happening ?? -1]];
    if (chosen === undefined || what === undefined) throw new Error(`there is no case ${PAIR_CASE}`);
    t.same(mistakesInCase(PAIR_CASE, chosen, what, Hours(26), new PairStatistics()), []);
  });
} else {
  t.test('in every state, at every stage of a connection, for every input', async (t) => {
    const seen = new PairStatistics();
    const states = new Map<EffectiveState, number>();
    for (const [index, one] of cases().entries()) {
      for (const [number, happening] of caseEvents().entries()) {
        const wrong = mistakesInCase(`${index}/${number}`, one, happening, SETTLES, seen);
        if (wrong === null) break;
        states.set(one.situation.state, (states.get(one.situation.state) ?? 0) + 1);
        if (wrong.length > 0) t.same(wrong, []);
      }
    }
    t.same([...states.keys()].sort(), ['AIRPLANE', 'HIGH', 'LOW_BATTERY', 'MID', 'RECOVERY']);
    t.ok(Math.min(...states.values()) > 1000, `${seen.runs} cases: ${JSON.stringify([...states])}`);
    const kinds = ALL_KINDS.filter((kind) => !kind.includes('PERIOD'));
    t.same([...seen.kinds].sort(), kinds, 'every kind of uplink came by that is not the next day’s');
  });

  t.test('on every walk', async (t) => {
    const seen = new PairStatistics();
    for (let seed = 1; seed <= WALKS; seed++) t.same(mistakesOnWalk(seed, seen), [], `seed ${seed}`);
    t.same([...seen.kinds].sort(), ALL_KINDS, 'every kind of uplink came by');
    const warnings = ['not-closed', 'period-overdue', 'recovery-offline', 'sequence-gap', 'window-offline'];
    t.same([...seen.explained.keys()].sort(), warnings, 'and every warning that a network can be the cause of');
  });
}
