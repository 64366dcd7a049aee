/**
 * `lockgate trace shrink`: reads the trace twice, first for its findings and then for the events of the finding's lock,
 * and writes the smallest trace that still has the finding.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterThisTurn, type Milliseconds, monotonicMs, Seconds } from '../../../../proto/clock.js';
import { didYouMean } from '../../../../proto/did-you-mean.js';
import { LockgateError } from '../../../../proto/errors.js';
import { POWER_MODEL } from '../../../../proto/power/model.js';
import { RULES, ruleRow } from '../../../../proto/power/rules.js';
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

export interface ShrinkFlags {
  readonly rule: string;
  readonly line?: number;
  readonly out?: string;
  readonly json?: boolean;
}

/** How long the search runs before the process redraws the progress line and handles signals. */
const SLICE_MS: Milliseconds = 100;
/** Lines that an error lists where the trace has the rule's finding at other lines. */
const MAX_LISTED_LINES = 5;

/** The findings of a trace and its size. */
interface Checked {
  readonly findings: RuleFindings;
  readonly lines: number;
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
  const copy = file === '-' ? mkdtempSync(join(tmpdir(), 'lockgate-shrink-')) : undefined;
  try {
    // The standard input can be read only once, so the second pass reads a copy.
    const again = copy === undefined ? file : join(copy, 'input.jsonl');
    const checked = await checkTrace(file, flags, copy === undefined ? undefined : again);
    const found = findTarget(file, checked, flags);
    if (found === undefined) {
      reportNone(file, checked, flags);
      return;
    }
    const target: ShrinkTarget = { ...found, mac: macOf(found) };
    const shrinking = new Shrinking(await collectEvents(again, target, checked.lines), target);
    await search(file, shrinking);
    const lines = traceLines(file, target, shrinking.best);
    const after = checkLines(lines);
    const own = after.find(({ rule, message }) => rule === found.rule && message === found.message);
    if (own === undefined) throw new Error(`the shrunk trace has no finding of ${found.rule}: ${lines.join('\n')}`);
    const sink = new LineSink(flags.out);
    for (const line of lines) sink.write(line);
    sink.end();
    const others = new Set(after.filter(({ message }) => !shrinking.isKnown(message)).map(({ rule }) => rule));
    report(file, flags, { found, own, before: checked.lines, lines, others: [...others], shrinking, startedAtMs });
  } finally {
    if (copy !== undefined) rmSync(copy, { recursive: true, force: true });
  }
}

function requireRule(rule: string): void {
  if (ruleRow(rule) !== undefined) return;
  const names = RULES.map((row) => row.rule);
  const hint = `"lockgate model show --rules" lists them.${didYouMean(rule, names)}`;
  throw new LockgateError('input-rule', `there is no rule ${rule}: ${hint}`);
}

/** @param copyTo where to write the events again; undefined for no copy */
async function checkTrace(file: string, { rule, line }: ShrinkFlags, copyTo: string | undefined): Promise<Checked> {
  const findings = new RuleFindings(rule, line);
  let check: TraceCheck | undefined;
  let lines = 1;
  const sink = copyTo === undefined ? undefined : new LineSink(copyTo);
  const progress = new ProgressLine(() => `${sanitizeLine(file)}: judged ${lines.toLocaleString('en-US')} lines`);
  try {
    await readTraceFile(file, {
      header: (header) => {
        check = new TraceCheck(POWER_MODEL, header, false, null, findings);
        sink?.write(traceHeaderLine(header));
      },
      event: (event, line, raw) => {
        lines = line;
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
  return { findings, lines };
}

/** The finding to keep: at the line of the flag, otherwise the first one of the rule. */
function findTarget(file: string, { findings }: Checked, { rule, line }: ShrinkFlags): RuleFinding | undefined {
  const { wanted, firstLines } = findings;
  if (line === undefined || wanted !== undefined || firstLines.length === 0) return wanted;
  const listed = firstLines.slice(0, MAX_LISTED_LINES);
  const more = firstLines.length > listed.length ? ', …' : '';
  const expected = `expected one of the lines ${listed.join(', ')}${more}`;
  throw new LockgateError('input-line', `${displayName(file)}:${line} has no finding of ${rule}: ${expected}`);
}

function reportNone(file: string, { findings }: Checked, { rule, json }: ShrinkFlags): void {
  const { rules } = findings;
  process.exitCode = EXIT_CODE.negativeAnswer;
  if (json) printJson({ file, rule, found: false, rules });
  const found = rules.length === 0 ? 'It has no findings.' : `It has findings of ${rules.join(', ')}.`;
  printNote(sanitizeLine(`${displayName(file)} has no finding of ${rule}. ${found}`));
}

async function collectEvents(file: string, target: ShrinkTarget, lines: number): Promise<LockEvents> {
  let evidence: Evidence | undefined;
  await readTraceFile(file, {
    header: (header) => {
      evidence = new Evidence(header, target);
    },
    event: (event, line, raw) => evidence?.add(event, line, raw),
  });
  return evidence?.end(lines) ?? { lock: null, lines: [] };
}

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
        if (step.value) return;
        const message = 'the finding needs more lines of its lock than fit into memory: cut the trace first';
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

function traceLines(file: string, { mac, rule, line }: ShrinkTarget, { lock, lines }: LockEvents): string[] {
  const source = file === '-' ? 'the standard input' : basename(file);
  const header = { note: `${rule} of line ${line} of ${source}`, locks: new Map(lock === null ? [] : [[mac, lock]]) };
  return [traceHeaderLine(header), ...lines.map(({ event, raw }) => traceEventLine(event, raw ?? undefined))];
}

/** The findings of the written lines, read as any reader would. */
function checkLines(lines: readonly string[]): TraceFinding[] {
  const reader = new TraceReader();
  let check: TraceCheck | undefined;
  for (const text of lines) {
    const read = reader.read(text);
    if (!read.ok) throw new Error(`the shrunk trace can't be read: ${read.error.message}`);
    if (reader.header !== null) check ??= new TraceCheck(POWER_MODEL, reader.header);
    if (read.value !== null) check?.judge(read.value, reader.line);
  }
  return check?.findings() ?? [];
}

interface Shrunk {
  readonly found: RuleFinding;
  /** The finding in the shrunk trace. */
  readonly own: TraceFinding;
  /** Lines of the original trace. */
  readonly before: number;
  readonly lines: readonly string[];
  /** Rules that only the shrunk trace breaks. */
  readonly others: readonly string[];
  readonly shrinking: Shrinking;
  readonly startedAtMs: number;
}

function report(file: string, flags: ShrinkFlags, shrunk: Shrunk): void {
  const { found, own, before, lines, others, shrinking, startedAtMs } = shrunk;
  const { tests } = shrinking;
  if (flags.json) {
    const seconds = (monotonicMs() - startedAtMs) / Seconds(1);
    const finding = { rule: found.rule, mac: found.mac, severity: found.severity, message: found.message };
    const from = { file, line: found.line, lines: before };
    const to = { file: flags.out, line: own.line, lines: lines.length };
    const kept = shrinking.best.lines.map(({ line }) => line);
    printJson({ found: true, finding, from, to, kept_lines: kept, other_rules: others, tests, seconds });
    return;
  }
  const count = (lines: number): string => lines.toLocaleString('en-US');
  printNote(sanitizeLine(`${found.mac} ${found.rule}: ${found.message}`));
  const where = flags.out === undefined ? '' : ` in ${flags.out}`;
  printNote(`${count(lines.length)} of ${count(before)} lines${where}; line ${found.line} is now line ${own.line}.`);
  if (others.length > 0) printNote(`Because lines are missing, it also breaks ${others.join(', ')}.`);
}

function macOf({ mac }: RuleFinding): Mac {
  const parsed = parseMac(mac);
  if (!parsed.ok) throw new Error(parsed.error.message);
  return parsed.value;
}

function displayName(file: string): string {
  return file === '-' ? 'standard input' : file;
}
