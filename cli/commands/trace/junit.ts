/** Formats findings as JUnit XML for build servers: a suite for each trace, a case for each rule. Pure. */
import { RULES } from '../../../proto/power/rules.js';
import type { TraceFinding } from '../../../proto/trace/check.js';
import type { CheckedFile } from './checked-file.js';

/** The XML document. A finding less severe than `failOn` is output but not counted as a failure. */
export function formatJunit(files: readonly CheckedFile[], failOn: 'violation' | 'warning'): string {
  const suites = files.map((file) => formatSuite(file, failOn));
  const failures = suites.reduce((sum, suite) => sum + suite.failures, 0);
  const head = `<testsuites name="lockgate trace check" tests="${files.length * RULES.length}" failures="${failures}">`;
  return ['<?xml version="1.0" encoding="UTF-8"?>', head, ...suites.map((suite) => suite.xml), '</testsuites>'].join(
    '\n',
  );
}

function formatSuite({ file, findings }: CheckedFile, failOn: string): { xml: string; failures: number } {
  const cases: string[] = [];
  let failures = 0;
  for (const { rule, severity } of RULES) {
    const ruleFindings = findings.filter((one) => one.rule === rule);
    const isFailure = ruleFindings.length > 0 && (severity === 'violation' || failOn === 'warning');
    if (isFailure) failures += 1;
    cases.push(formatCase(file, rule, ruleFindings, isFailure));
  }
  const counts = `tests="${RULES.length}" failures="${failures}" errors="0" skipped="0"`;
  const head = `  <testsuite name="${escapeXml(file)}" ${counts}>`;
  return { xml: [head, ...cases, '  </testsuite>'].join('\n'), failures };
}

function formatCase(file: string, rule: string, ruleFindings: readonly TraceFinding[], isFailure: boolean): string {
  const head = `    <testcase classname="${escapeXml(file)}" name="${rule}"`;
  if (ruleFindings.length === 0) return `${head}/>`;
  const text = ruleFindings.map((one) => `${file}:${one.line}: ${one.mac}: ${one.message}`).join('\n');
  const first = escapeXml(ruleFindings[0]?.message ?? '');
  const body = isFailure
    ? `<failure message="${first}" type="${ruleFindings[0]?.severity}">${escapeXml(text)}</failure>`
    : `<system-out>${escapeXml(text)}</system-out>`;
  return `${head}>${body}</testcase>`;
}

function escapeXml(text: string): string {
  return [...text]
    .map((letter) => (isXmlCharacter(letter.codePointAt(0) as number) ? letter : '\ufffd'))
    .join('')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** Whether XML 1.0 allows the character. A character that it does not allow can't be escaped either (XML 1.0 §2.2). */
function isXmlCharacter(code: number): boolean {
  if (code < 0x20) return code === 0x9 || code === 0xa || code === 0xd;
  return code <= 0xd7ff || (code >= 0xe000 && code <= 0xfffd) || code >= 0x10000;
}
