/**
 * `lockgate trace show --all`: prints all events of a trace in order, and below each line the findings about it. The
 * trace is read twice, because a later line may show that an earlier line broke a rule, or that it did not.
 */
import { commandText } from '../../../gateway/console/wording/command-text.js';
import { LockgateError } from '../../../proto/errors.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { TraceCheck } from '../../../proto/trace/check.js';
import type { TraceFinding } from '../../../proto/trace/findings.js';
import type { TraceEvent } from '../../../proto/trace/trace.js';
import { commandToJson, traceEventLine } from '../../../proto/trace/writer.js';
import { describeUplink } from '../../../proto/wire/codec.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { formatDate } from '../../../proto/wire/ping-json.js';
import { paint, print, printJsonLine, type Style, sanitizeLine } from '../../terminal/output.js';
import { ProgressLine } from '../../terminal/progress-line.js';
import { type SpooledTrace, withSpooledTrace } from './spooled-trace.js';

/** The flags of a timeline. */
export interface TimelineFlags {
  readonly json?: boolean;
  /** Decides whether an event is shown, and its findings with it. */
  readonly isShown: (event: TraceEvent) => boolean;
  /** Whether each line names its file. */
  readonly namesFile: boolean;
  /** In the form `A4:C1:38:F0:E1:D2`; undefined for the findings of all locks. */
  readonly mac: string | undefined;
}

/** Widths of the columns. */
const KIND_WIDTH = 'disconnect'.length;
const LINE_WIDTH = 6;
const MAC_WIDTH = 17;

const STYLES: Readonly<Partial<Record<TraceEvent['event'], Style>>> = {
  connect: 'green',
  disconnect: 'dim',
  ping: 'cyan',
  ack: 'blue',
  command: 'blue',
  tick: 'dim',
  world: 'dim',
};

/**
 * Prints the timeline of one trace. Its events may include `world`: what truly happened to a lock in a simulation.
 *
 * @throws LockgateError `input-…` for a file that can't be read
 */
export async function printTimeline(file: string, flags: TimelineFlags): Promise<void> {
  await withSpooledTrace(file, async (trace) => {
    const findings = await readFindings(trace, file);
    // The index of the first finding that has not been printed.
    let next = 0;
    await trace.read({
      header: () => undefined,
      event: (event, line) => {
        const isShown = flags.isShown(event);
        if (isShown) printEvent(event, line, file, flags);
        for (; next < findings.length && (findings[next] as TraceFinding).line <= line; next += 1) {
          const finding = findings[next] as TraceFinding;
          const isOfMac = flags.mac === undefined || finding.mac === flags.mac;
          if (isOfMac && (isShown || isAboutOtherLock(event, finding))) printFinding(event, finding, file, flags);
        }
      },
    });
  });
}

/**
 * Whether the finding is about a lock other than the line's. Such a finding comes from the passing of time, which this
 * line showed, so it is printed even if the flags hide the line.
 */
function isAboutOtherLock(event: TraceEvent, { mac }: TraceFinding): boolean {
  return 'mac' in event && event.mac !== null && formatMac(event.mac) !== mac;
}

/**
 * The findings in the order of their lines. A line that can't be read ends them: the findings before it are still
 * valid, and the second reading reports the line.
 */
async function readFindings(trace: SpooledTrace, file: string): Promise<TraceFinding[]> {
  let check: TraceCheck | undefined;
  const progress = new ProgressLine(
    () => `${sanitizeLine(file)}: ${(check?.pings ?? 0).toLocaleString('en-US')} pings`,
  );
  try {
    await trace.read({
      header: (header) => {
        check = new TraceCheck(POWER_MODEL, header);
      },
      event: (event, line) => check?.judge(event, line),
    });
  } catch (error) {
    if (!(error instanceof LockgateError)) throw error;
  } finally {
    progress.end();
  }
  return check?.findings() ?? [];
}

function printEvent(event: TraceEvent, line: number, file: string, { json, namesFile }: TimelineFlags): void {
  if (json) {
    const location = namesFile ? { file, line } : { line };
    printJsonLine({ ...location, ...(JSON.parse(traceEventLine(event)) as object) });
    return;
  }
  const mac = 'mac' in event && event.mac !== null ? formatMac(event.mac) : '';
  const phone = 'source' in event && event.source === 'phone' ? '(phone) ' : '';
  const kind = paint(STYLES[event.event] ?? 'bold', event.event.padEnd(KIND_WIDTH));
  const start = `${paint('dim', lineAndTime(event.atMs, line))}  ${mac.padEnd(MAC_WIDTH)}  ${kind}`;
  print(`${start}  ${phone}${sanitizeLine(textOf(event))}`.trimEnd());
}

function lineAndTime(atMs: number, line: number): string {
  return `${String(line).padStart(LINE_WIDTH)}  ${formatDate(atMs)}`;
}

function printFinding(event: TraceEvent, finding: TraceFinding, file: string, flags: TimelineFlags): void {
  const { line, mac, rule, severity, message } = finding;
  if (flags.json) {
    const location = flags.namesFile ? { file, line } : { line };
    printJsonLine({
      ...location,
      at: formatDate(event.atMs),
      mac,
      event: 'finding',
      finding: { rule, severity, message },
    });
    return;
  }
  const kind = paint(severity === 'violation' ? 'red' : 'yellow', severity.padEnd(KIND_WIDTH));
  print(`${paint('dim', lineAndTime(event.atMs, line))}  ${mac}  ${kind}  ${rule}: ${sanitizeLine(message)}`);
}

/** What the event says, without time, lock and kind. */
function textOf(event: TraceEvent): string {
  switch (event.event) {
    case 'ping':
    case 'ack':
      return describeUplink(event.uplink);
    case 'disconnect':
      return event.cause;
    case 'command': {
      const { type, ...parameters } = commandToJson(event.command) as { type: string };
      const expires = event.expiresMs === undefined ? '' : `, expires ${formatDate(event.expiresMs)}`;
      return `${event.id} ${commandText({ type, parameters })}${expires}`;
    }
    case 'gateway':
      return event.state === 'start' ? 'starts to listen' : 'stops listening';
    case 'world': {
      const { at: _at, mac: _mac, event: _event, ...members } = event.members;
      return JSON.stringify(members);
    }
    default:
      return '';
  }
}
