// `RuleFindings` chooses the finding that `trace shrink` reproduces: the first one of a rule, or the one at a given
// line, but never one that a later line withdraws. It holds only a few findings, however many a trace has.
import t from 'tap';
import { RuleFindings } from '../../../cli/commands/trace/shrink/rule-findings.js';
import type { RuleName } from '../../../proto/power/rules.js';
import type { TraceFinding } from '../../../proto/trace/findings.js';

const MAC = 'A4:C1:38:F0:E1:D2';

function finding(rule: RuleName, line: number): TraceFinding {
  const about = { credential: 1, life: 1, boot: 1, sequence: line };
  const values = { severity: 'violation', message: `${rule} of line ${line}`, atMs: line } as const;
  return { line, mac: MAC, rule, ...values, about, sent: null, firmwareVersion: null };
}

t.test('the finding with the lowest line is chosen, whatever the order in which findings are added', async (t) => {
  const findings = new RuleFindings('after-close', undefined);
  for (let line = 500_000; line > 0; line -= 1) findings.add(finding('after-close', line));
  findings.add(finding('out-of-range', 3));
  findings.end();
  t.equal(findings.wanted?.line, 1);
  t.same(findings.firstFindingLines, [1, 2, 3, 4, 5, 6], 'only six findings are held');
  t.same(findings.rules, ['after-close', 'out-of-range']);
});

t.test('if a line is given, the finding of the rule at this line is chosen, or none', async (t) => {
  const findings = new RuleFindings('after-close', 900);
  for (let line = 1; line <= 1000; line += 1) findings.add(finding('after-close', line));
  findings.end();
  t.equal(findings.wanted?.message, 'after-close of line 900');
  const withoutLine900 = new RuleFindings('after-close', 900);
  withoutLine900.add(finding('after-close', 4));
  withoutLine900.end();
  t.equal(withoutLine900.wanted, undefined);
  t.same(withoutLine900.firstFindingLines, [4]);
});

t.test('a finding that a later line withdraws is not chosen', async (t) => {
  const findings = new RuleFindings('period-too-soon', undefined);
  const [withdrawn, valid, withdrawnOfOtherRule] = [
    finding('period-too-soon', 5),
    finding('period-too-soon', 9),
    finding('boot-back', 7),
  ];
  for (const each of [withdrawn, valid, withdrawnOfOtherRule]) findings.add(each);
  for (const { rule, about } of [withdrawn, withdrawnOfOtherRule])
    if (about !== null) findings.withdraw(rule, MAC, about);
  findings.end();
  t.equal(findings.wanted?.line, 9);
  t.same(findings.rules, ['period-too-soon']);
});
