/** `lockgate trace check`: checks each trace file separately against the rules, and prints a report. */
import { didYouMean } from '../../../../proto/did-you-mean.js';
import { LockgateError } from '../../../../proto/errors.js';
import { findRule, RULES } from '../../../../proto/power/rules.js';
import { EXIT_CODE } from '../../../terminal/exit-codes.js';
import { printNote, sanitizeLine } from '../../../terminal/output.js';
import type { FileReport } from './checked-file.js';
import { type FileCheckOptions, reportFile } from './file-check.js';
import { readBaseline } from './findings/baseline.js';
import { SpillFile } from './findings/spill-file.js';
import type { Report, ReportFormat } from './formats/report.js';
import type { TraceObserver } from './observer.js';
import { type CheckFlags, type FormatName, formatOf } from './options.js';
import { isMet, type RequiredRow, RequiredRows } from './required-rows.js';
import { requireReadable, worldObserver } from './world/world-observer.js';

/**
 * Checks the files and prints the report. Sets exit code 1 if there is a finding of at least the severity
 * `flags.failOn`. If a file can't be read, what was found before the error is reported, and the remaining files are
 * still checked.
 *
 * @throws LockgateError `input-…` for an unknown rule, or a baseline or trace that can't be read
 */
export async function checkTraces(files: readonly string[], flags: CheckFlags): Promise<void> {
  for (const rule of flags.ignore) requireRule(rule);
  if (flags.world !== undefined) requireReadable(files, flags.world);
  const name = formatOf(flags);
  const required = new RequiredRows(flags.require, flags.ignore);
  const format = await loadFormat(name);
  // Holds the findings of all files: some in memory, many in a temporary file.
  const spill = new SpillFile();
  try {
    const options: Omit<FileCheckOptions, 'observers'> = {
      spill,
      ignore: flags.ignore,
      baseline: flags.baseline === undefined ? null : readBaseline(flags.baseline),
      withCoverage: flags.coverage ?? false,
      withTimelines: name === 'html',
    };
    const reports: FileReport[] = [];
    for (const file of files)
      reports.push(await reportFile(file, { ...options, observers: observersOf(file, flags, required) }));
    const report = makeReport(reports, flags, required.results());
    await format(report);
    if (report.violations > 0 || (flags.failOn === 'warning' && report.warnings > 0))
      process.exitCode = EXIT_CODE.negativeAnswer;
    if (!report.required.every(isMet)) process.exitCode = EXIT_CODE.negativeAnswer;
    throwErrors(reports);
  } finally {
    spill.close();
  }
}

function requireRule(rule: string): void {
  if (findRule(rule) !== undefined) return;
  const suggestion = didYouMean(
    rule,
    RULES.map((row) => row.rule),
  );
  throw new LockgateError(
    'input-rule',
    `there is no rule ${rule}: "lockgate model show --rules" lists them.${suggestion}`,
  );
}

/** The observers that read a file along with the rules, for the flags that need more than the rules' findings. */
function observersOf(file: string, { require, world }: CheckFlags, required: RequiredRows): readonly TraceObserver[] {
  return [
    ...(world === undefined ? [] : [worldObserver(file, world)]),
    ...(require.length === 0 ? [] : [required.observerOf(file)]),
  ];
}

/** The report, with the findings of all files counted. */
function makeReport(
  files: readonly FileReport[],
  { failOn, summary, baseline }: CheckFlags,
  required: readonly RequiredRow[],
): Report {
  let [violations, warnings] = [0, 0];
  for (const { findings } of files) {
    violations += findings.countOf('violation');
    warnings += findings.countOf('warning');
  }
  return { files, violations, warnings, failOn, summary, hasBaseline: baseline !== undefined, required };
}

async function loadFormat(name: FormatName): Promise<ReportFormat> {
  switch (name) {
    case 'text':
      return (await import('./formats/text.js')).printText;
    case 'json':
      return (await import('./formats/json.js')).printJsonReport;
    case 'junit':
      return (await import('./formats/junit.js')).printJunit;
    case 'github':
      return (await import('./formats/github.js')).printGithub;
    case 'html':
      return (await import('./html/page.js')).printHtml;
  }
}

/** Throws the error of the last file that could not be read, and prints the errors of earlier ones. */
function throwErrors(files: readonly FileReport[]): void {
  const errors = files.flatMap(({ error }) => error ?? []);
  const lastError = errors.pop();
  for (const { message } of errors) printNote(sanitizeLine(`lockgate: ${message}`));
  if (lastError !== undefined) throw new LockgateError(lastError.code, lastError.message);
}
