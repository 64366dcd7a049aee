/**
 * Prints the report of `trace check` as JUnit XML for build servers: a suite for each trace, a case for each rule, and
 * a case with an error if the trace could not be read to its end. The document is written line by line, because the
 * findings may not fit into memory.
 */
import { RULES } from '../../../../../proto/power/rules.js';
import { print, untilStdoutDrained } from '../../../../terminal/output.js';
import { escapeXml } from '../../../../terminal/xml-text.js';
import type { FileReport } from '../checked-file.js';
import type { FindingJson } from '../findings/finding-json.js';
import { describeUnmet, isMet, type RequiredRow } from '../required-rows.js';
import type { Report } from './report.js';

/** Prints the document. A finding less severe than `failOn` is output but not counted as a failure. */
export async function printJunit({ files, failOn, required }: Report): Promise<void> {
  const failures = files.map((file) => failedRules(file, failOn).size);
  const errors = files.filter(({ error }) => error !== null).length;
  const unmet = required.filter((row) => !isMet(row)).length;
  const tests = files.length * RULES.length + errors + required.length;
  const counts = countsOf(tests, sum(failures) + unmet);
  print('<?xml version="1.0" encoding="UTF-8"?>');
  print(`<testsuites name="lockgate trace check" ${counts}${errors === 0 ? '' : ` errors="${errors}"`}>`);
  for (const file of files) await printSuite(file, failedRules(file, failOn));
  if (required.length > 0) printRequired(required, unmet);
  print('</testsuites>');
}

function countsOf(tests: number, failures: number): string {
  return `tests="${tests}" failures="${failures}"`;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** A suite with a case for each row that `--require` names. */
function printRequired(required: readonly RequiredRow[], unmet: number): void {
  print(`  <testsuite name="required rows" ${countsOf(required.length, unmet)} errors="0" skipped="0">`);
  for (const row of required) {
    const testcase = `    <testcase classname="required rows" name="${escapeXml(row.row)}"`;
    const failure = `<failure message="${escapeXml(describeUnmet(row))}" type="${row.verdict}"/>`;
    print(isMet(row) ? `${testcase}/>` : `${testcase}>${failure}</testcase>`);
  }
  print('  </testsuite>');
}

/** The broken rules that make the suite fail. */
function failedRules({ findings }: FileReport, failOn: Report['failOn']): Set<string> {
  const broken = new Set<string>();
  for (const { rule } of findings.countedFindings()) broken.add(rule);
  for (const { rule, severity } of RULES) if (severity === 'warning' && failOn === 'violation') broken.delete(rule);
  return broken;
}

async function printSuite(report: FileReport, failed: ReadonlySet<string>): Promise<void> {
  const { file, error, notes } = report;
  const errors = error === null ? 0 : 1;
  const counts = `${countsOf(RULES.length + errors, failed.size)} errors="${errors}" skipped="0"`;
  print(`  <testsuite name="${escapeXml(file)}" ${counts}>`);
  for (const { rule } of RULES) await printCase(report, rule, failed.has(rule));
  if (error !== null) {
    print(`    <testcase classname="${escapeXml(file)}" name="trace">`);
    print(`      <error message="${escapeXml(error.message)}" type="${escapeXml(error.code)}"/>`);
    print('    </testcase>');
  }
  if (notes.length > 0) {
    const lines = notes.map(({ line, message }) => `${file}:${line}: ${message}`);
    print(`    <system-out>${escapeXml(lines.join('\n'))}</system-out>`);
  }
  print('  </testsuite>');
}

async function printCase(
  { file, findings }: FileReport,
  rule: (typeof RULES)[number]['rule'],
  isFailure: boolean,
): Promise<void> {
  const testcase = `    <testcase classname="${escapeXml(file)}" name="${rule}"`;
  const describe = ({ line, mac, message }: FindingJson): string => escapeXml(`${file}:${line}: ${mac}: ${message}`);
  // Each line is printed only when the next finding is known, because the last line also closes the element.
  let pending: string | null = null;
  for (const finding of findings.ofRule(rule)) {
    await untilStdoutDrained();
    if (pending !== null) print(pending);
    const { message, severity } = finding;
    const start = isFailure ? `<failure message="${escapeXml(message)}" type="${severity}">` : '<system-out>';
    pending = pending === null ? `${testcase}>${start}${describe(finding)}` : describe(finding);
  }
  print(pending === null ? `${testcase}/>` : `${pending}</${isFailure ? 'failure' : 'system-out'}></testcase>`);
}
