/** Prints the report of `trace check` as workflow commands of GitHub Actions, which mark the lines of the traces. */
import { print, untilStdoutDrained } from '../../../../terminal/output.js';
import type { FileReport } from '../checked-file.js';
import { describeUnmet, isMet } from '../required-rows.js';
import { plural, type Report } from './report.js';

/** Prints a command for each finding, note and error, and the counts. */
export async function printGithub(report: Report): Promise<void> {
  for (const file of report.files) await printFile(file, report.failOn);
  const { violations, warnings, files, required } = report;
  for (const row of required) if (!isMet(row)) printCommand('error', { title: row.row }, describeUnmet(row));
  print(`${plural(violations, 'violation')} and ${plural(warnings, 'warning')} in ${plural(files.length, 'file')}.`);
}

async function printFile({ file, findings, notes, error }: FileReport, failOn: Report['failOn']): Promise<void> {
  for (const { line, mac, rule, severity, message } of findings.all()) {
    await untilStdoutDrained();
    const level = severity === 'violation' || failOn === 'warning' ? 'error' : 'warning';
    printCommand(level, { file, line: String(line), title: rule }, `${mac}: ${message}`);
  }
  for (const { line, message } of notes) printCommand('notice', { file, line: String(line) }, message);
  if (error === null) return;
  const line = error.line === null ? {} : { line: String(error.line) };
  printCommand('error', { file, ...line }, error.message);
}

function printCommand(level: string, properties: Readonly<Record<string, string>>, message: string): void {
  const named = Object.entries(properties).map(([name, value]) => `${name}=${escapeProperty(value)}`);
  print(`::${level} ${named.join(',')}::${escapeMessage(message)}`);
}

function escapeMessage(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function escapeProperty(text: string): string {
  return escapeMessage(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}
