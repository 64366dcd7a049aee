// Checks that the tables of `lockgate why` are complete: every rule, reason, state and error has its sentence. `why`
// explains in steps what a lock did or did not do; the other tests here check what the steps say.
import t from 'tap';
import { COMMAND_STATES } from '../../../gateway/store/contract/command-record.js';
import { STATE_WHY, TYPE_WHY, WAIT_WHY } from '../../../gateway/why/command-why.js';
import { OUTCOME_WHY, OUTCOMES } from '../../../gateway/why/delivery-why.js';
import { REJECTION_WHY } from '../../../gateway/why/quarantine-why.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { RULES } from '../../../proto/power/rules.js';
import { CONNECTION_END_WHY } from '../../../proto/why/moment.js';
import { CLOSE_WHY, REASON_WHY } from '../../../proto/why/reasons.js';
import { RULE_WHY } from '../../../proto/why/rules.js';
import { SILENCE_WHY, SILENCES } from '../../../proto/why/silence.js';
import { SECTIONS } from '../../../proto/why/step.js';
import { REASONS } from '../../../proto/wire/reasons.js';

t.test('each closed table has a sentence for each of its rows, and no other', async (t) => {
  const keys = (table: object): string[] => Object.keys(table).sort();
  t.same(keys(RULE_WHY), RULES.map(({ rule }) => rule).sort());
  t.same(keys(REASON_WHY), REASONS.map(({ name }) => name).sort());
  t.same(keys(CLOSE_WHY), POWER_MODEL.states.map(({ state }) => state).sort());
  t.same(keys(SILENCE_WHY), [...SILENCES].sort());
  t.same(keys(OUTCOME_WHY), [...OUTCOMES].sort());
  t.same(keys(STATE_WHY), [...COMMAND_STATES].sort());
  t.same(keys(CONNECTION_END_WHY), ['closed', 'dropped', 'gateway', 'keepalive', 'takeover']);
  t.same(keys(TYPE_WHY), ['locate-cell', 'locate-gps', 'lock', 'reset', 'set-power', 'siren', 'unlock']);
  t.same(keys(WAIT_WHY), [
    'acknowledgement',
    'airplane',
    'clock',
    'connection',
    'low-battery',
    'schedule',
    'sending',
    'subscription',
    'turn',
  ]);
  t.same(keys(REJECTION_WHY), ['no-body', 'no-boot', 'no-sequence', 'no-time', 'too-long', 'undecodable']);
  const sections: readonly string[] = Object.values(SECTIONS);
  for (const [rule, row] of Object.entries(RULE_WHY)) t.ok(sections.includes(row.restsOn) && row.because, rule);
});
