/** JUnit XML, which build servers read: a suite for each trace, a case for each rule. */
import { RULES } from '../../../proto/power/rules.js';
import type { TraceFinding } from '../../../proto/trace/check.js';
import type { CheckedFile } from './checked-file.js';

/** The whole document. A finding below `failOn` is reported but is no failure. */
export function junitOf(files: readonly CheckedFile[], failOn: 'violation' | 'warning'): string {
  const suites = files.map((file) => suiteOf(file, failOn));
  const failures = suites.reduce((sum, suite) => sum + suite.failures, 0);
  const head = `<testsuites name="lockgate trace check" tests="${files.length * RULES.length}" failures="${failures}">`;
  return ['<?xml version="1.0" encoding="UTF-8"?>', head, ...suites.map((suite) => suite.xml), '</testsuites>'].join(
    '\n',
  );
}

function suiteOf({ file, findings }: CheckedFile, failOn: string): { xml: string; failures: number } {
  const cases: string[] = [];
  let failures = 0;
  for (const { rule, severity } of RULES) {
    const broken = findings.filter((one) => one.rule === rule);
    const isFailure = broken.length > 0 && (severity === 'violation' || failOn === 'warning');
    if (isFailure) failures += 1;
    cases.push(caseOf(file, rule, broken, isFailure));
  }
  const counts = `tests="${RULES.length}" failures="${failures}" errors="0" skipped="0"`;
  const head = `  <testsuite name="${xmlText(file)}" ${counts}>`;
  return { xml: [head, ...cases, '  </testsuite>'].join('\n'), failures };
}

function caseOf(file: string, rule: string, broken: readonly TraceFinding[], isFailure: boolean): string {
  const head = `    <testcase classname="${xmlText(file)}" name="${rule}"`;
  if (broken.length === 0) return `${head}/>`;
  const text = broken.map((one) => `${file}:${one.line}: ${one.mac}: ${one.message}`).join('\n');
  const first = xmlText(broken[0]?.message ?? '');
  const body = isFailure
    ? `<failure message="${first}" type="${broken[0]?.severity}">${xmlText(text)}</failure>`
    : `<system-out>${xmlText(text)}</system-out>`;
  return `${head}>${body}</testcase>`;
}

function xmlText(text: string): string {
  return [...text]
    .map((letter) => (isXml(letter.codePointAt(0) as number) ? letter : '\ufffd'))
    .join('')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

/** Whether XML 1.0 allows the character; the others can't be escaped either (XML 1.0 §2.2). */
function isXml(code: number): boolean {
  if (code < 0x20) return code === 0x9 || code === 0xa || code === 0xd;
  return code <= 0xd7ff || (code >= 0xe000 && code <= 0xfffd) || code >= 0x10000;
}
