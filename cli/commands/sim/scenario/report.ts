/**
 * Prints the result of a scenario: each expectation with its line in the scenario's file, then the findings, which are
 * the rules of the protocol that the locks have broken.
 */

import type { ScenarioVerdict } from '../../../../firmware-sim/scenario/check.js';
import type { LockRecord } from '../../../../firmware-sim/scenario/lock-record.js';
import type { Scenario } from '../../../../firmware-sim/scenario/scenario.js';
import { findRule } from '../../../../proto/power/rules.js';
import { paint, print, printJson, sanitizeLine } from '../../../terminal/output.js';
import { plural } from '../summary.js';

/** The result of a scenario's run. */
export interface ScenarioOutcome {
  readonly scenario: Scenario;
  readonly verdicts: readonly ScenarioVerdict[];
  /** The number of findings by rule; null if the gateway, which judges, can't be asked. Then they fail nothing. */
  readonly findings: ReadonlyMap<string, number> | null;
  readonly pings: number;
  /** The record of each lock, by name. */
  readonly records: ReadonlyMap<string, LockRecord>;
  /** The number of pings that were not acknowledged by the end of the run. */
  readonly unacknowledged: number;
  /** The members of `--json` about the run, the seed first. */
  readonly run: Readonly<Record<string, unknown>>;
  /** The command that repeats the run. */
  readonly repeat: string;
}

/** Whether the scenario passed. */
export function hasPassed(outcome: ScenarioOutcome): boolean {
  return outcome.verdicts.every(({ isMet }) => isMet) && problemsOf(outcome).length === 0;
}

/** Prints the report. @param write prints a line */
export function reportScenario(outcome: ScenarioOutcome, asJson: boolean, write = print): void {
  if (asJson) {
    const json = toJson(outcome);
    // Beside a trace on the standard output, the report goes to the standard error, in one line.
    if (write === print) printJson(json);
    else write(JSON.stringify(json));
    return;
  }
  const { scenario, verdicts, pings } = outcome;
  for (const { expectation, isMet, seen } of verdicts) {
    const { line, sentence } = expectation;
    if (isMet) write(`${paint('green', '✓')} line ${String(line).padEnd(4)} ${sanitizeLine(sentence)}`);
    else write(`${paint('red', '✗')} ${sanitizeLine(`${scenario.file}:${line}: expected ${sentence}; ${seen}`)}`);
  }
  const problems = problemsOf(outcome);
  for (const problem of problems) write(`${paint('red', '✗')} ${sanitizeLine(problem)}`);
  const met = verdicts.filter(({ isMet }) => isMet).length;
  const findingsSummary = outcome.findings === null ? 'findings are unknown' : findingsText(outcome.findings);
  const summary = `${scenario.name}: ${met} of ${plural(verdicts.length, 'expectation')} met, ${plural(pings, 'ping')}`;
  write(paint(hasPassed(outcome) ? 'green' : 'red', `${summary}; ${findingsSummary}.`));
  write(`Repeat with: ${outcome.repeat}`);
}

function findingsText(findings: ReadonlyMap<string, number>): string {
  if (findings.size === 0) return 'no findings';
  return `findings: ${[...findings].map(([rule, count]) => `${rule} ${count}`).join(', ')}`;
}

/** Problems other than unmet expectations: findings that the scenario does not allow, and lost pings. */
function problemsOf({ scenario, findings, unacknowledged }: ScenarioOutcome): string[] {
  const problems: string[] = [];
  for (const [rule, count] of findings ?? []) {
    // A newer gateway may report a rule that this program does not know.
    const severity = findRule(rule)?.severity ?? 'violation';
    // A scenario may allow warnings, by name, but no violations.
    if (severity === 'warning' && scenario.warnings.has(rule)) continue;
    const allowed = severity === 'warning' ? `: expected none, or ${rule} under warnings` : ': expected none';
    problems.push(`${scenario.file}: rule ${rule} (${severity}) was broken ${count} times${allowed}`);
  }
  if (unacknowledged > 0)
    problems.push(`${scenario.file}: ${plural(unacknowledged, 'ping')} never arrived: expected all to arrive`);
  return problems;
}

function toJson(outcome: ScenarioOutcome): object {
  const { scenario, verdicts, findings, pings, unacknowledged, run, repeat } = outcome;
  return {
    scenario: scenario.name,
    file: scenario.file,
    ...run,
    passed: hasPassed(outcome),
    expectations: verdicts.map(({ expectation, isMet, seen }) => {
      const { line, lock, sentence } = expectation;
      return { line, lock, expected: sentence, met: isMet, ...(!isMet && { seen }) };
    }),
    findings: findings === null ? null : Object.fromEntries(findings),
    complaints: problemsOf(outcome),
    pings,
    unacknowledged,
    repeat,
  };
}
