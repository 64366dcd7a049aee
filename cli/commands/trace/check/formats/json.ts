/**
 * Prints the report of `trace check` as one JSON document (interfaces.md §4). A large document is written in parts,
 * because the findings may not fit into memory.
 */
import { print, printJson, untilStdoutDrained } from '../../../../terminal/output.js';
import type { FileReport } from '../checked-file.js';
import type { RequiredRow } from '../required-rows.js';
import { knownFindings, type Report } from './report.js';
import { summarize } from './summary.js';

/** A document with more findings is written in parts, each on a line. */
const MAX_FINDINGS_AT_ONCE = 1000;
/** The number of findings in a part. */
const FINDINGS_PER_PART = 100;

/** Prints the document. */
export async function printJsonReport(report: Report): Promise<void> {
  const { files, violations, warnings } = report;
  if (violations + warnings <= MAX_FINDINGS_AT_ONCE) {
    const wholeFiles = files.map((file) => ({
      ...membersBeforeFindings(file),
      findings: [...file.findings.all()],
      ...membersAfterFindings(file),
    }));
    printJson({ files: wholeFiles, ...membersAfterFiles(report) });
    return;
  }
  print('{"files":[');
  for (const [index, file] of files.entries()) await printFile(file, index === files.length - 1 ? '' : ',');
  print(`],${JSON.stringify(membersAfterFiles(report)).slice(1)}`);
}

/**
 * Prints a file's object in parts: the members before the findings without their closing brace, then the findings, then
 * the other members without their opening brace.
 */
async function printFile(report: FileReport, separator: string): Promise<void> {
  print(`${JSON.stringify(membersBeforeFindings(report)).slice(0, -1)},"findings":[`);
  let texts: string[] = [];
  let isFirst = true;
  const write = (): void => {
    if (texts.length > 0) print(`${isFirst ? '' : ','}${texts.join(',')}`);
    isFirst = isFirst && texts.length === 0;
    texts = [];
  };
  for (const finding of report.findings.all()) {
    texts.push(JSON.stringify(finding));
    if (texts.length < FINDINGS_PER_PART) continue;
    write();
    await untilStdoutDrained();
  }
  write();
  print(`],${JSON.stringify(membersAfterFindings(report)).slice(1)}${separator}`);
}

/** The members of a file before its findings. */
function membersBeforeFindings({ file, pings, locks }: FileReport): object {
  return { file, pings, locks };
}

/** The members of a file after its findings. */
function membersAfterFindings({ file, notes, notesLeftOut, error, coverage }: FileReport): object {
  const cells = coverage?.map(({ state, trigger, reason, pingType, isAllowed, pings: count }) => {
    return { state, trigger, reason, ping_type: pingType, allowed: isAllowed, pings: count };
  });
  return {
    coverage: cells ?? null,
    notes: notes.map((each) => ({ file, ...each })),
    ...(notesLeftOut > 0 && { notes_left_out: notesLeftOut }),
    error,
  };
}

/** The members of the document after its files. */
function membersAfterFiles(report: Report): object {
  const { files, violations, warnings, summary } = report;
  const rows = summarize(summary === true ? files : []).map(({ firmware, ...row }) => {
    return { ...row, firmware: Object.fromEntries(firmware) };
  });
  return {
    ...(report.hasBaseline && { known: knownFindings(report) }),
    ...(summary === true && { summary: rows }),
    ...(report.required.length > 0 && { required: report.required.map(requiredJson) }),
    violations,
    warnings,
  };
}

function requiredJson({ row, verdict, seen, lines }: RequiredRow): object {
  return { row, verdict, seen, lines };
}
