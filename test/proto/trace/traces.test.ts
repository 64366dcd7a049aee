// Checks every rule of protocol.md §3 on hand-written traces. A trace `RULE.breaks-N` breaks that rule and no other; a
// trace `RULE.holds-N` almost breaks it. The expected findings are in traces/expected.jsonl, written from the
// specification.
import t from 'tap';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { RULES } from '../../../proto/power/rules.js';
import { expectedFindings, expectedOf, findingsOf, traceNames } from '../../helpers/sim/hand-traces.js';

t.test('each rule has traces that break it and traces that comply with it', async (t) => {
  for (const { rule } of RULES) {
    for (const kind of ['breaks', 'holds']) {
      const count = traceNames.filter((name) => name.startsWith(`${rule}.${kind}-`)).length;
      t.ok(count >= 2, `${rule}.${kind}: ${count}`);
    }
  }
  const rules = RULES.map((row) => row.rule as string);
  t.same(
    [...new Set(traceNames.map((name) => name.split('.')[0]))].filter((name) => !rules.includes(name ?? '')),
    [],
  );
  t.same(
    expectedFindings.filter((finding) => !traceNames.includes(finding.file)),
    [],
    'each expectation has a trace',
  );
  t.same(
    expectedFindings.filter((finding) => !finding.file.startsWith(`${finding.rule}.breaks-`)),
    [],
    'a trace breaks only the rule in its name',
  );
});

for (const name of traceNames) {
  t.test(name, async (t) => {
    const expected = expectedOf(name);
    t.equal(expected.length > 0, name.includes('.breaks-'));
    t.same(findingsOf(name, POWER_MODEL), expected);
  });
}
