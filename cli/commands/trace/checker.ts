/** `lockgate trace check`: checks each trace file separately against the rules, and prints the findings. */
import { didYouMean } from '../../../proto/did-you-mean.js';
import { LockgateError } from '../../../proto/errors.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { RULES, ruleRow } from '../../../proto/power/rules.js';
import { TraceCheck, type TraceFinding } from '../../../proto/trace/check.js';
import { EXIT } from '../../terminal/exit-codes.js';
import { note, oneLine, paint, print, printJson } from '../../terminal/output.js';
import { ProgressLine } from '../../terminal/progress-line.js';
import { printCoverage } from '../model/coverage-table.js';
import type { CheckedFile } from './checked-file.js';
import { formatJunit } from './junit.js';
import { readTraceFile, type TraceVisitor } from './trace-file.js';

export interface CheckFlags {
  readonly coverage?: boolean;
  readonly json?: boolean;
  readonly junit?: boolean;
  readonly failOn: 'violation' | 'warning';
  readonly ignore: readonly string[];
}

/**
 * Checks the files and prints the findings. Sets exit code 1 if there is a finding of at least the severity
 * `flags.failOn`. If a file can't be read, the remaining files are still checked.
 *
 * @throws LockgateError `input-…` for an unknown rule, or a file that can't be read
 */
export async function checkTraces(files: readonly string[], flags: CheckFlags): Promise<void> {
  for (const rule of flags.ignore) {
    if (ruleRow(rule) !== undefined) continue;
    const suggestion = didYouMean(
      rule,
      RULES.map((row) => row.rule),
    );
    throw new LockgateError(
      'input-rule',
      `there is no rule ${rule}: "lockgate model show --rules" lists them.${suggestion}`,
    );
  }
  const checked: CheckedFile[] = [];
  const unreadable: LockgateError[] = [];
  for (const file of files) {
    try {
      checked.push(await checkFile(file, flags));
    } catch (error) {
      if (!(error instanceof LockgateError)) throw error;
      unreadable.push(error);
    }
  }
  const violations = countFindings(checked, 'violation');
  const warnings = countFindings(checked, 'warning');
  if (flags.json) printJson({ files: checked.map(toJson), violations, warnings });
  else if (flags.junit) print(formatJunit(checked, flags.failOn));
  else if (checked.length > 0) printReport(checked, violations, warnings);
  if (violations > 0 || (flags.failOn === 'warning' && warnings > 0)) process.exitCode = EXIT.no;
  for (const error of unreadable.slice(0, -1)) note(oneLine(`lockgate: ${error.message}`));
  const last = unreadable.at(-1);
  if (last !== undefined) throw last;
}

/** Checks one file. */
export async function checkFile(file: string, flags: Pick<CheckFlags, 'coverage' | 'ignore'>): Promise<CheckedFile> {
  let check: TraceCheck | undefined;
  const progress = new ProgressLine(() => `${oneLine(file)}: ${(check?.pings ?? 0).toLocaleString('en-US')} pings`);
  const visitor: TraceVisitor = {
    header: (header) => {
      check = new TraceCheck(POWER_MODEL, header, flags.coverage ?? false);
    },
    event: (event, line) => check?.judge(event, line),
  };
  await readTraceFile(file, visitor).finally(() => progress.end());
  const { pings = 0, locks = 0 } = check ?? {};
  const findings = (check?.findings() ?? []).filter(({ rule }) => !flags.ignore.includes(rule));
  return { file, pings, locks, findings, coverage: check?.coverage() ?? null };
}

function countFindings(files: readonly CheckedFile[], severity: TraceFinding['severity']): number {
  let count = 0;
  for (const { findings } of files) {
    for (const finding of findings) if (finding.severity === severity) count += 1;
  }
  return count;
}

function toJson({ file, pings, locks, findings, coverage }: CheckedFile): object {
  const cells = coverage?.map(({ state, trigger, reason, pingType, isAllowed, pings: count }) => {
    return { state, trigger, reason, ping_type: pingType, allowed: isAllowed, pings: count };
  });
  return { file, pings, locks, findings, coverage: cells ?? null };
}

function printReport(files: readonly CheckedFile[], violations: number, warnings: number): void {
  for (const checked of files) {
    print(
      `${paint('bold', oneLine(checked.file))}: ${plural(checked.pings, 'ping')} of ${plural(checked.locks, 'lock')}`,
    );
    printFindings(checked.findings);
    if (checked.coverage !== null) printCoverage(checked.coverage);
  }
  const counts = `${plural(violations, 'violation')} and ${plural(warnings, 'warning')}`;
  const summary = `${counts} in ${plural(files.length, 'file')}.`;
  print(paint(violations > 0 ? 'red' : warnings > 0 ? 'yellow' : 'green', summary));
}

/** Prints the findings grouped by lock, in the order of the lines. */
function printFindings(findings: readonly TraceFinding[]): void {
  const byLock = new Map<string, TraceFinding[]>();
  for (const finding of findings) {
    const ofLock = byLock.get(finding.mac);
    if (ofLock === undefined) byLock.set(finding.mac, [finding]);
    else ofLock.push(finding);
  }
  for (const [mac, ofLock] of byLock) {
    print(`  ${mac}`);
    for (const { line, rule, severity, message } of ofLock) {
      const mark = paint(severity === 'violation' ? 'red' : 'yellow', severity.padEnd('violation'.length));
      print(`    line ${String(line).padEnd(6)} ${mark}  ${rule}: ${oneLine(message)}`);
    }
  }
}

function plural(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`;
}
