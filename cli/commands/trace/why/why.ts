/** `lockgate trace why FILE:LINE`: explains a line of a trace as `lockgate why` does an event, without a gateway. */
import { ruleLink } from '../../../../proto/citations.js';
import { LockgateError } from '../../../../proto/errors.js';
import { POWER_MODEL } from '../../../../proto/power/model.js';
import { TraceCheck } from '../../../../proto/trace/check.js';
import type { TraceFinding } from '../../../../proto/trace/findings.js';
import type { TraceEvent, TraceHeader } from '../../../../proto/trace/trace.js';
import type { WhyStep } from '../../../../proto/why/step.js';
import { stepToJson } from '../../../../proto/why/step-json.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import { printJson, printNote, sanitizeLine } from '../../../terminal/output.js';
import { ProgressLine } from '../../../terminal/progress-line.js';
import { printSteps } from '../../why/print.js';
import { type SpooledTrace, withSpooledTrace } from '../spooled-trace.js';
import { LineRecorder } from './judged-line.js';
import { lineSteps } from './line-steps.js';

/** The flags of `lockgate trace why`. */
export interface TraceWhyFlags {
  readonly json?: boolean;
}

/** A line of a trace. */
interface TraceLine {
  /** `-` for the standard input. */
  readonly file: string;
  /** From 1, the header. */
  readonly line: number;
}

/** The result of the first reading. */
interface FoundLine {
  readonly event: TraceEvent;
  readonly findings: readonly TraceFinding[];
  /** The error of a later line that can't be read; null if there is none. */
  readonly laterError: LockgateError | null;
}

/**
 * Prints the explanation of a line.
 *
 * @param text FILE:LINE
 * @throws LockgateError `input-line` if the line has nothing to explain, `input-trace` or `input-file` if it can't be
 * read
 */
export async function explainLine(text: string, flags: TraceWhyFlags): Promise<void> {
  const place = readPlace(text);
  await withSpooledTrace(place.file, async (trace) => {
    const found = await findLine(trace, place);
    const macs = macsOf(found);
    if (macs.length === 0) throw nothingToExplain(place, found.event);
    const recorder = await recordLine(trace, place, macs);
    const { atMs } = found.event;
    const steps = macs.flatMap((mac) => {
      const judged = recorder.of(mac);
      const findings = found.findings.filter((each) => each.mac === mac);
      return judged === null ? [] : lineSteps({ line: place.line, atMs, judged, findings });
    });
    printExplanation(place, found, macs, steps, flags);
    if (found.laterError !== null) throw found.laterError;
  });
}

function printExplanation(
  place: TraceLine,
  { event, findings }: FoundLine,
  macs: readonly string[],
  steps: readonly WhyStep[],
  { json }: TraceWhyFlags,
): void {
  const [mac = null] = macs;
  const { file, line } = place;
  const at = formatDate(event.atMs);
  const id = nameOf(place);
  if (!json) {
    printSteps(`${id}  ${macs.join(' ')}`, steps.map(stepToJson));
    return;
  }
  const about = { kind: 'line', id, file, line, event: event.event, mac };
  const findingsJson = findings.map(({ rule, severity, message, mac: findingMac }) => {
    return { line, mac: findingMac, rule, severity, message, link: ruleLink(rule) };
  });
  printJson({ about, at, findings: findingsJson, steps: steps.map(stepToJson) });
}

/** @throws LockgateError `input-line` */
function readPlace(text: string): TraceLine {
  const [, file = '', digits = ''] = /^(.+):(\d+)$/s.exec(text) ?? [];
  const line = Number(digits);
  if (file === '')
    throw new LockgateError(
      'input-line',
      `${JSON.stringify(text)} names no line: expected FILE:LINE, such as ride.jsonl:12, or -:12 for standard input`,
    );
  if (line < 1 || !Number.isSafeInteger(line))
    throw new LockgateError('input-line', `${nameOf({ file, line })}: lines are numbered from 1`);
  return { file, line };
}

function nameOf({ file, line }: TraceLine): string {
  return `${file === '-' ? 'standard input' : file}:${line}`;
}

/** Checks the whole trace: a later line may show that this line broke a rule, or that it did not. */
async function findLine(trace: SpooledTrace, place: TraceLine): Promise<FoundLine> {
  let check: TraceCheck | undefined;
  let event: TraceEvent | undefined;
  let lastLine = 1;
  let isEmpty = false;
  let laterError: LockgateError | null = null;
  const progress = new ProgressLine(() => `${sanitizeLine(place.file)}: ${lastLine.toLocaleString('en-US')} lines`);
  try {
    await trace.read({
      header: (header: TraceHeader) => {
        if (place.line === 1) throw new LockgateError('input-line', `${nameOf(place)} is the header: ${EXPECTED}`);
        check = new TraceCheck(POWER_MODEL, header);
      },
      event: (each, line) => {
        lastLine = line;
        if (line === place.line) event = each;
        check?.judge(each, line);
      },
      empty: (line) => {
        lastLine = line;
        if (line === place.line) isEmpty = true;
      },
    });
  } catch (error) {
    // The findings before a bad line are still valid.
    if (!(error instanceof LockgateError) || event === undefined) throw error;
    laterError = error;
  } finally {
    progress.end();
  }
  if (isEmpty) throw new LockgateError('input-line', `${nameOf(place)} is empty: ${EXPECTED}`);
  if (event === undefined || check === undefined)
    throw new LockgateError(
      'input-line',
      `there is no line ${place.line}: ${place.file === '-' ? 'standard input' : place.file} ends at line ${lastLine}`,
    );
  return { event, findings: check.findings().filter(({ line }) => line === place.line), laterError };
}

const EXPECTED = 'expected the line of a ping, an ack, a connect, a disconnect, a command or a finding';

/** The locks that the line is about: that of its event, and those of its findings. */
function macsOf({ event, findings }: FoundLine): string[] {
  const eventMacs = 'mac' in event && event.mac !== null && event.event !== 'world' ? [formatMac(event.mac)] : [];
  return [...new Set([...eventMacs, ...findings.map(({ mac }) => mac)])];
}

/** Why a line without findings has nothing to explain, by its event. */
const NO_EXPLANATION_BY_EVENT: Readonly<Partial<Record<TraceEvent['event'], string>>> = {
  tick: 'is a tick: it only says that time passed, and no finding is about it',
  gateway: 'says that the gateway started or stopped listening, and no finding is about it',
  world: 'is a world event, which the judge never reads, and no finding is about it',
};

function nothingToExplain(place: TraceLine, event: TraceEvent): LockgateError {
  const what = NO_EXPLANATION_BY_EVENT[event.event] ?? 'is about no lock';
  return new LockgateError('input-line', `${nameOf(place)} ${what}: ${EXPECTED}`);
}

/** Reads the trace again and records the history of the locks around the line. */
async function recordLine(trace: SpooledTrace, place: TraceLine, macs: readonly string[]): Promise<LineRecorder> {
  const recorder = new LineRecorder(place.line, macs);
  let check: TraceCheck | undefined;
  // Only `trace check --coverage` needs the counts of pings by state and reason.
  const withCoverage = false;
  const isOfLocks = (event: TraceEvent): boolean =>
    !('mac' in event) || (event.mac !== null && macs.includes(formatMac(event.mac)));
  try {
    await trace.read({
      header: (header) => {
        check = new TraceCheck(POWER_MODEL, header, withCoverage, recorder);
      },
      event: (event, line) => {
        // Events of other locks are skipped. The line itself is always judged: its time may be what broke a rule.
        if (line === place.line || isOfLocks(event)) check?.judge(event, line);
      },
    });
  } catch (error) {
    if (!(error instanceof LockgateError)) throw error;
    printNote(sanitizeLine(`lockgate: ${nameOf(place)} is explained without the lines from the first bad one on.`));
  }
  return recorder;
}
