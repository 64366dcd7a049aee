/** How a scenario's run went: each expectation with its line, then the judge's word. */

import type { ScenarioVerdict } from '../../../../firmware-sim/scenario/check.js';
import type { LockRecord } from '../../../../firmware-sim/scenario/record.js';
import type { Scenario } from '../../../../firmware-sim/scenario/scenario.js';
import { ruleRow } from '../../../../proto/power/rules.js';
import { oneLine, paint, print, printJson } from '../../../terminal/output.js';
import { plural } from '../summary.js';

export interface ScenarioOutcome {
  readonly scenario: Scenario;
  readonly verdicts: readonly ScenarioVerdict[];
  /** How often the judge found each rule broken; null where nobody tells. */
  readonly findings: ReadonlyMap<string, number> | null;
  readonly pings: number;
  /** What the locks wrote down, by name. */
  readonly records: ReadonlyMap<string, LockRecord>;
  /** Pings that the other side never had. */
  readonly unacknowledged: number;
  /** Members of the run for programs, the seed first. */
  readonly run: Readonly<Record<string, unknown>>;
  /** The command that plays it again. */
  readonly repeat: string;
}

/** Whether all is as the scenario says it should be. */
export function isAsExpected(outcome: ScenarioOutcome): boolean {
  return outcome.verdicts.every(({ isMet }) => isMet) && complaintsOf(outcome).length === 0;
}

/** Prints it. @param say takes lines for people or programs */
export function reportScenario(outcome: ScenarioOutcome, asJson: boolean, say = print): void {
  if (asJson) {
    const text = toJson(outcome);
    if (say === print) printJson(text);
    else say(JSON.stringify(text));
    return;
  }
  const { scenario, verdicts, pings } = outcome;
  for (const { expectation, isMet, seen } of verdicts) {
    const { line, sentence } = expectation;
    if (isMet) say(`${paint('green', '✓')} line ${String(line).padEnd(4)} ${oneLine(sentence)}`);
    else say(`${paint('red', '✗')} ${oneLine(`${scenario.file}:${line}: expected ${sentence}; ${seen}`)}`);
  }
  const complaints = complaintsOf(outcome);
  for (const complaint of complaints) say(`${paint('red', '✗')} ${oneLine(complaint)}`);
  const met = verdicts.filter(({ isMet }) => isMet).length;
  const judged = outcome.findings === null ? 'nobody tells what the judge finds' : judgeText(outcome.findings);
  const summary = `${scenario.name}: ${met} of ${plural(verdicts.length, 'expectation')} met, ${plural(pings, 'ping')}`;
  say(paint(isAsExpected(outcome) ? 'green' : 'red', `${summary}; ${judged}.`));
  say(`Again: ${outcome.repeat}`);
}

function judgeText(findings: ReadonlyMap<string, number>): string {
  if (findings.size === 0) return 'the judge finds nothing';
  return `the judge finds ${[...findings].map(([rule, count]) => `${rule} ${count}`).join(', ')}`;
}

/** What should not be, besides expectations that are not met. */
function complaintsOf({ scenario, findings, unacknowledged }: ScenarioOutcome): string[] {
  const complaints: string[] = [];
  for (const [rule, count] of findings ?? []) {
    const severity = ruleRow(rule)?.severity ?? 'violation';
    if (severity === 'warning' && scenario.warnings.has(rule)) continue;
    const allowed = severity === 'warning' ? `: expected none, or ${rule} under warnings` : ': expected none';
    complaints.push(`${scenario.file}: the judge finds ${rule} (${severity}), ${count} times${allowed}`);
  }
  if (unacknowledged > 0)
    complaints.push(`${scenario.file}: ${plural(unacknowledged, 'ping')} never arrived: expected all of them to`);
  return complaints;
}

function toJson(outcome: ScenarioOutcome): object {
  const { scenario, verdicts, findings, pings, unacknowledged, run, repeat } = outcome;
  return {
    scenario: scenario.name,
    file: scenario.file,
    ...run,
    passed: isAsExpected(outcome),
    expectations: verdicts.map(({ expectation, isMet, seen }) => {
      const { line, lock, sentence } = expectation;
      return { line, lock, expected: sentence, met: isMet, ...(!isMet && { seen }) };
    }),
    findings: findings === null ? null : Object.fromEntries(findings),
    complaints: complaintsOf(outcome),
    pings,
    unacknowledged,
    repeat,
  };
}
