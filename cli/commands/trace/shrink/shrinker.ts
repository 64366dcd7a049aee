/**
 * `lockgate trace shrink`: reads the trace twice, first for its findings and then for the events of the finding's lock,
 * and writes the smallest trace that still has the finding.
 */
import { rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { makeTemporaryFolder } from '../../../../gateway/temporary-folder.js';
import { afterThisTurn, type Milliseconds, monotonicMs, Seconds } from '../../../../proto/clock.js';
import { didYouMean } from '../../../../proto/did-you-mean.js';
import { LockgateError } from '../../../../proto/errors.js';
import { POWER_MODEL } from '../../../../proto/power/model.js';
import { findRule, RULES } from '../../../../proto/power/rules.js';
import { TraceCheck } from '../../../../proto/trace/check.js';
import type { TraceFinding } from '../../../../proto/trace/findings.js';
import { TraceReader } from '../../../../proto/trace/reader.js';
import { Evidence, type LockEvents, type ShrinkTarget } from '../../../../proto/trace/shrink/evidence.js';
import { Shrinking } from '../../../../proto/trace/shrink/shrink.js';
import { traceEventLine, traceHeaderLine } from '../../../../proto/trace/writer.js';
import { type Mac, parseMac } from '../../../../proto/wire/mac.js';
import { EXIT_CODE } from '../../../terminal/exit-codes.js';
import { LineSink } from '../../../terminal/line-sink.js';
import { printJson, printNote, sanitizeLine } from '../../../terminal/output.js';
import { ProgressLine } from '../../../terminal/progress-line.js';
import { readTraceFile } from '../trace-file.js';
import { type RuleFinding, RuleFindings } from './rule-findings.js';

/** The flags of `lockgate trace shrink`. */
export interface ShrinkFlags {
  readonly rule: string;
  readonly line?: number;
  readonly out?: string;
  readonly json?: boolean;
}

/** How long the search runs between two pauses, in which the process redraws the progress line and handles signals. */
const SLICE_MS: Milliseconds = 100;
/** The maximum number of lines that the error for a wrong --line lists. */
const MAX_LISTED_LINES = 5;

/** The findings of a trace and its size. */
interface CheckResult {
  readonly findings: RuleFindings;
  readonly lineCount: number;
}

/**
 * Writes the shrunk trace and prints what it shows. Exit code 1 if the trace has no finding of the rule.
 *
 * @throws LockgateError `input-…` for a wrong flag, or a file that can't be read or written
 */
export async function shrinkTrace(file: string, flags: ShrinkFlags): Promise<void> {
  requireRule(flags.rule);
  if (flags.json && flags.out === undefined)
    throw new LockgateError('input-out', '--json prints its document on the standard output: give --out FILE too');
  const startedAtMs = monotonicMs();
  const copyFolder = file === '-' ? makeTemporaryFolder('shrink') : undefined;
  try {
    // The standard input can be read only once, so the first pass writes a copy for the second.
    const secondFile = copyFolder === undefined ? file : join(copyFolder, 'input.jsonl');
    const checked = await checkTrace(file, flags, copyFolder === undefined ? undefined : secondFile);
    const original = findTarget(file, checked, flags);
    if (original === undefined) {
      reportNone(file, checked, flags);
      return;
    }
    const target: ShrinkTarget = { ...original, mac: macOf(original) };
    const shrinking = new Shrinking(await collectEvents(secondFile, target, checked.lineCount), target);
    await search(file, shrinking);
    const lines = traceLines(file, target, shrinking.best);
    const findingsAfter = checkLines(lines);
    const shrunk = findingsAfter.find(({ rule, message }) => rule === original.rule && message === original.message);
    if (shrunk === undefined)
      throw new Error(`the shrunk trace has no finding of ${original.rule}: ${lines.join('\n')}`);
    const sink = new LineSink(flags.out);
    for (const line of lines) sink.write(line);
    sink.end();
    const newFindings = findingsAfter.filter(({ message }) => !shrinking.isKnown(message));
    const rulesOfNewFindings = [...new Set(newFindings.map(({ rule }) => rule))];
    report(file, flags, {
      original,
      shrunk,
      originalLineCount: checked.lineCount,
      lines,
      rulesOfNewFindings,
      shrinking,
      startedAtMs,
    });
  } finally {
    if (copyFolder !== undefined) rmSync(copyFolder, { recursive: true, force: true });
  }
}

function requireRule(rule: string): void {
  if (findRule(rule) !== undefined) return;
  const names = RULES.map((row) => row.rule);
  const hint = `"lockgate model show --rules" lists them.${didYouMean(rule, names)}`;
  throw new LockgateError('input-rule', `there is no rule ${rule}: ${hint}`);
}

/**
 * The first pass: checks the trace.
 *
 * @param copyTo where to write a copy of the trace; undefined for no copy
 */
async function checkTrace(file: string, flags: ShrinkFlags, copyTo: string | undefined): Promise<CheckResult> {
  const findings = new RuleFindings(flags.rule, flags.line);
  // Only `trace check --coverage` needs the counts of pings by state and reason.
  const withCoverage = false;
  let check: TraceCheck | undefined;
  let lineCount = 1;
  const sink = copyTo === undefined ? undefined : new LineSink(copyTo);
  const progress = new ProgressLine(() => `${sanitizeLine(file)}: judged ${lineCount.toLocaleString('en-US')} lines`);
  try {
    await readTraceFile(file, {
      header: (header) => {
        // Null: no observer follows what the judge assumes about the locks.
        check = new TraceCheck(POWER_MODEL, header, withCoverage, null, findings);
        sink?.write(traceHeaderLine(header));
      },
      event: (event, line, raw) => {
        lineCount = line;
        check?.judge(event, line);
        sink?.write(traceEventLine(event, raw ?? undefined));
      },
      empty: () => sink?.write(''),
    });
  } finally {
    progress.end();
    sink?.end();
  }
  findings.end();
  return { findings, lineCount };
}

/** The finding that the shrunk trace must still have: the one at the line of the flag, otherwise the rule's first. */
function findTarget(file: string, { findings }: CheckResult, { rule, line }: ShrinkFlags): RuleFinding | undefined {
  const { wanted, firstFindingLines } = findings;
  if (line === undefined || wanted !== undefined || firstFindingLines.length === 0) return wanted;
  const listed = firstFindingLines.slice(0, MAX_LISTED_LINES);
  const more = firstFindingLines.length > listed.length ? ', …' : '';
  const expected = `expected one of the lines ${listed.join(', ')}${more}`;
  throw new LockgateError('input-line', `${displayName(file)}:${line} has no finding of ${rule}: ${expected}`);
}

function reportNone(file: string, { findings }: CheckResult, { rule, json }: ShrinkFlags): void {
  const { rules } = findings;
  process.exitCode = EXIT_CODE.negativeAnswer;
  if (json) printJson({ file, rule, found: false, rules });
  const found = rules.length === 0 ? 'It has no findings.' : `It has findings of ${rules.join(', ')}.`;
  printNote(sanitizeLine(`${displayName(file)} has no finding of ${rule}. ${found}`));
}

/** The second pass: collects the events of the finding's lock. */
async function collectEvents(file: string, target: ShrinkTarget, lineCount: number): Promise<LockEvents> {
  let evidence: Evidence | undefined;
  await readTraceFile(file, {
    header: (header) => {
      evidence = new Evidence(header, target);
    },
    event: (event, line, raw) => evidence?.add(event, line, raw),
  });
  return evidence?.end(lineCount) ?? { lock: null, lines: [] };
}

/** Searches for the smallest trace, in slices. @throws LockgateError `input-trace` if too many lines are needed */
async function search(file: string, shrinking: Shrinking): Promise<void> {
  const progress = new ProgressLine(() => {
    const { phase, tests, best } = shrinking;
    return `${sanitizeLine(file)}: removing ${phase}, ${best.lines.length} lines left, ${tests} traces judged`;
  });
  try {
    const run = shrinking.run();
    let sliceStartMs = monotonicMs();
    for (let step = run.next(); ; step = run.next()) {
      if (step.done === true) {
        const hasFinding = step.value;
        if (hasFinding) return;
        const kept = 'the finding depends on more lines of its lock than are kept in memory';
        const message = `${kept}: use a part of the trace, which starts later or ends earlier`;
        throw new LockgateError('input-trace', `${displayName(file)}: ${message}`);
      }
      if (monotonicMs() - sliceStartMs < SLICE_MS) continue;
      await new Promise<void>((resolve) => afterThisTurn(resolve));
      sliceStartMs = monotonicMs();
    }
  } finally {
    progress.end();
  }
}

/** The lines of the shrunk trace. */
function traceLines(file: string, { mac, rule, line }: ShrinkTarget, { lock, lines }: LockEvents): string[] {
  const source = file === '-' ? 'the standard input' : basename(file);
  const header = { note: `${rule} of line ${line} of ${source}`, locks: new Map(lock === null ? [] : [[mac, lock]]) };
  return [traceHeaderLine(header), ...lines.map(({ event, raw }) => traceEventLine(event, raw ?? undefined))];
}

/** The findings of the shrunk trace, read from its lines as any reader would. */
function checkLines(lines: readonly string[]): TraceFinding[] {
  const reader = new TraceReader();
  let check: TraceCheck | undefined;
  for (const text of lines) {
    const parsed = reader.read(text);
    if (!parsed.ok) throw new Error(`the shrunk trace can't be read: ${parsed.error.message}`);
    if (reader.header !== null) check ??= new TraceCheck(POWER_MODEL, reader.header);
    if (parsed.value !== null) check?.judge(parsed.value, reader.line);
  }
  return check?.findings() ?? [];
}

/** What the command reports. */
interface ShrinkResult {
  /** The finding in the original trace. */
  readonly original: RuleFinding;
  /** The same finding in the shrunk trace. */
  readonly shrunk: TraceFinding;
  readonly originalLineCount: number;
  readonly lines: readonly string[];
  /** The rules of findings that only the shrunk trace has. The original may have other findings of these rules. */
  readonly rulesOfNewFindings: readonly string[];
  readonly shrinking: Shrinking;
  readonly startedAtMs: number;
}

function report(file: string, flags: ShrinkFlags, result: ShrinkResult): void {
  const { original, shrunk, originalLineCount, lines, rulesOfNewFindings, shrinking, startedAtMs } = result;
  const { tests } = shrinking;
  if (flags.json) {
    const seconds = (monotonicMs() - startedAtMs) / Seconds(1);
    const finding = { rule: original.rule, mac: original.mac, severity: original.severity, message: original.message };
    const from = { file, line: original.line, lines: originalLineCount };
    const to = { file: flags.out, line: shrunk.line, lines: lines.length };
    const keptLines = shrinking.best.lines.map(({ line }) => line);
    printJson({
      found: true,
      finding,
      from,
      to,
      kept_lines: keptLines,
      other_rules: rulesOfNewFindings,
      tests,
      seconds,
    });
    return;
  }
  const count = (number: number): string => number.toLocaleString('en-US');
  printNote(sanitizeLine(`${original.mac} ${original.rule}: ${original.message}`));
  const outFile = flags.out === undefined ? '' : ` in ${flags.out}`;
  const counts = `${count(lines.length)} of ${count(originalLineCount)} lines${outFile}`;
  printNote(`${counts}; line ${original.line} is now line ${shrunk.line}.`);
  if (rulesOfNewFindings.length > 0)
    printNote(`Because lines are missing, the shrunk trace has new findings of ${rulesOfNewFindings.join(', ')}.`);
}

function macOf({ mac }: RuleFinding): Mac {
  const parsed = parseMac(mac);
  if (!parsed.ok) throw new Error(parsed.error.message);
  return parsed.value;
}

function displayName(file: string): string {
  return file === '-' ? 'standard input' : file;
}
