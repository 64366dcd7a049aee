/** Prints the report of `trace check` for people: findings by lock, notes, counts. */
import { paint, print, sanitizeLine, untilStdoutDrained } from '../../../../terminal/output.js';
import { printTable } from '../../../../terminal/table.js';
import { printCoverage } from '../../../model/coverage-table.js';
import type { FileReport } from '../checked-file.js';
import { describeUnmet, isMet, type RequiredRow } from '../required-rows.js';
import { knownFindings, plural, type Report } from './report.js';
import { type SummaryRow, summarize } from './summary.js';

/** With more findings than this, the report has a summary, unless a flag decides. */
const MANY_FINDINGS = 50;
/** The maximum number of firmware versions that a row of the summary names. */
const MAX_VERSIONS_SHOWN = 3;

/** Prints the report. */
export async function printText(report: Report): Promise<void> {
  const { violations, warnings, summary } = report;
  // A file without a trace's header has nothing to report; its error goes to stderr.
  const files = report.files.filter(({ isTrace }) => isTrace);
  if (files.length === 0) return;
  for (const file of files) await printFile(file);
  if (summary ?? violations + warnings > MANY_FINDINGS) printSummary(summarize(files));
  printRequired(report.required);
  const known = knownFindings(report);
  if (report.hasBaseline) print(`${plural(known, 'known finding')} left out.`);
  const counts = `${plural(violations, 'violation')} and ${plural(warnings, 'warning')}`;
  const total = `${counts} in ${plural(files.length, 'file')}.`;
  print(paint(violations > 0 ? 'red' : warnings > 0 ? 'yellow' : 'green', total));
}

async function printFile(report: FileReport): Promise<void> {
  const { file, pings, locks, findings, notes, notesLeftOut, error, coverage } = report;
  print(`${paint('bold', sanitizeLine(file))}: ${plural(pings, 'ping')} of ${plural(locks, 'lock')}`);
  let mac = '';
  for (const finding of findings.byLock()) {
    await untilStdoutDrained();
    if (finding.mac !== mac) print(`  ${finding.mac}`);
    mac = finding.mac;
    const { line, rule, severity, message } = finding;
    const mark = paint(severity === 'violation' ? 'red' : 'yellow', severity.padEnd('violation'.length));
    print(`    line ${String(line).padEnd(6)} ${mark}  ${rule}: ${sanitizeLine(message)}`);
  }
  for (const { line, message, times } of notes) {
    const often = times === 1 ? '' : ` (${times.toLocaleString('en-US')} times)`;
    print(`  ${paint('cyan', 'note')}  ${sanitizeLine(file)}:${line}: ${sanitizeLine(message)}${often}`);
  }
  if (notesLeftOut > 0) print(`  ${paint('cyan', 'note')}  ${plural(notesLeftOut, 'further unknown member')}`);
  if (error !== null) print(`  ${paint('red', 'error')}  ${sanitizeLine(error.message)}`);
  if (coverage !== null) printCoverage(coverage);
}

function printRequired(required: readonly RequiredRow[]): void {
  if (required.length === 0) return;
  const unmet = required.filter((row) => !isMet(row));
  for (const row of unmet) print(paint('red', describeUnmet(row)));
  const met = required.length - unmet.length;
  print(`${met.toLocaleString('en-US')} of ${plural(required.length, 'required row')} seen.`);
}

function printSummary(rows: readonly SummaryRow[]): void {
  print('');
  printTable(rows, [
    { title: 'RULE', show: ({ rule }) => rule },
    { title: 'SEVERITY', show: ({ severity }) => severity, optional: true },
    { title: 'FINDINGS', show: ({ findings }) => findings.toLocaleString('en-US') },
    { title: 'LOCKS', show: ({ locks }) => locks.toLocaleString('en-US') },
    { title: 'FIRMWARE', show: ({ firmware }) => describeFirmware(firmware) },
  ]);
  print('');
}

function describeFirmware(firmware: SummaryRow['firmware']): string {
  const shown = [...firmware].slice(0, MAX_VERSIONS_SHOWN);
  const texts = shown.map(([version, count]) => `${sanitizeLine(version)}: ${count.toLocaleString('en-US')}`);
  const more = firmware.size - shown.length;
  return texts.join(', ') + (more > 0 ? `, ${more} more` : '');
}
