/**
 * Judges a dropped trace as `lockgate trace check` and `trace certify` do, with the same code (proto/trace/), and makes
 * the report that the screen shows: the findings, timelines, and a certificate, which says of each requirement whether
 * the trace shows that it holds. Runs in a worker, so that the page stays responsive.
 */
import { POWER_MODEL } from '../../../../proto/power/model.js';
import { findRule } from '../../../../proto/power/rules.js';
import { CertificateMaker } from '../../../../proto/trace/certificate/certificate.js';
import type { JudgedRow } from '../../../../proto/trace/certificate/row.js';
import { TraceCheck } from '../../../../proto/trace/check.js';
import type { TraceFinding } from '../../../../proto/trace/findings.js';
import { TraceReader } from '../../../../proto/trace/reader.js';
import type { TraceHeader } from '../../../../proto/trace/trace.js';
import type { TimelineData } from '../../timeline/timeline-data.js';
import { TraceTimelines } from '../../timeline/trace-timelines.js';
import { readLines } from './trace-lines.js';
import {
  MAX_FINDINGS,
  MAX_LOCKS,
  MAX_MARKS,
  type PageFinding,
  type PageRow,
  type TraceReport,
} from './trace-report.js';

/** How many lines are judged between two reports of progress. */
const PROGRESS_LINES = 10_000;

/** The parts that get each event of a trace. They need the trace's header to start. */
interface Judges {
  readonly check: TraceCheck;
  readonly certificate: CertificateMaker;
  readonly timelines: TraceTimelines;
}

/**
 * Judges a file to its end, or to the first line that can't be read.
 *
 * @param name as the report shows it
 * @param onProgress called with the number of lines so far, now and then
 * @throws Error with a sentence if the file can't be read at all
 */
export async function checkTrace(file: Blob, name: string, onProgress: (lines: number) => void): Promise<TraceReport> {
  const reader = new TraceReader();
  let judges: Judges | null = null;
  let error: string | null = null;
  await readLines(file, (bytes, start, end) => {
    const event = reader.readBytes(bytes, start, end);
    if (!event.ok) {
      error = `${name}:${event.error.line}: ${event.error.message}`;
      return false;
    }
    if (judges === null && reader.header !== null) judges = startJudges(reader.header, name);
    if (judges !== null && event.value !== null) {
      judges.check.judge(event.value, reader.line);
      judges.certificate.judge(event.value, reader.line);
      judges.timelines.event(event.value, reader.line);
    }
    if (reader.line % PROGRESS_LINES === 0) onProgress(reader.line);
    return true;
  });
  if (error === null) {
    const end = reader.end();
    if (!end.ok) error = `${name}:${end.error.line}: ${end.error.message}`;
  }
  return reportOf(name, reader, judges, error);
}

function startJudges(header: TraceHeader, name: string): Judges {
  // Null: the locks may have any firmware.
  const certificate = new CertificateMaker(POWER_MODEL, null);
  certificate.start(name, header);
  const timelines = new TraceTimelines(POWER_MODEL);
  timelines.header(header);
  return { check: new TraceCheck(POWER_MODEL, header), certificate, timelines };
}

function reportOf(file: string, reader: TraceReader, judges: Judges | null, error: string | null): TraceReport {
  const found = judges?.check.findings() ?? [];
  const findings = found.map(pageFinding);
  const violations = findings.filter(({ severity }) => severity === 'violation').length;
  const { timelines, check } = judges ?? {};
  // A complete certificate names the file's SHA-256 and lockgate's version; this page shows only its rows, so both are
  // empty.
  judges?.certificate.finish('');
  return {
    file,
    error,
    lines: reader.line,
    pings: check?.pings ?? 0,
    lockCount: check?.locks ?? 0,
    notes: reader.notes.all().map(({ line, message }) => `Line ${line}: ${message}`),
    // A trace without an event has the times NaN.
    range: { fromMs: timelines?.fromMs || 0, toMs: timelines?.toMs || 0 },
    locks: lockTimelines(timelines, findings),
    findings: findings.slice(0, MAX_FINDINGS),
    violations,
    warnings: findings.length - violations,
    certificate: judges?.certificate.certificate('').rows.map(pageRow) ?? [],
  };
}

/** The locks with the most findings first, then in the order of the trace. */
function lockTimelines(timelines: TraceTimelines | undefined, findings: readonly PageFinding[]): TimelineData[] {
  const byMac = grouped(findings);
  return (timelines?.locks ?? [])
    .map((lock) => ({ lock, ofLock: byMac.get(lock.mac) ?? [] }))
    .sort((a, b) => b.ofLock.length - a.ofLock.length)
    .slice(0, MAX_LOCKS)
    .map(({ lock, ofLock }) =>
      lock.data(
        spread(ofLock, MAX_MARKS).map(({ id, atMs, severity, rule, line, message }) => {
          return { atMs, severity, id: String(id), title: `${severity} ${rule}, line ${line}: ${message}` };
        }),
      ),
    );
}

/** At most `max` of the items, spread over all of them. */
function spread<Item>(items: readonly Item[], max: number): readonly Item[] {
  const stride = Math.ceil(items.length / max);
  return stride <= 1 ? items : items.filter((_, index) => index % stride === 0);
}

function pageFinding({ line, mac, rule, severity, message, atMs, about }: TraceFinding, id: number): PageFinding {
  const uplink = about === null ? '' : `${about.boot}/${about.sequence}`;
  return { id, line, mac, rule, severity, message, atMs, uplink, section: findRule(rule)?.section ?? '' };
}

function pageRow({ row, group, says, verdict, seen }: JudgedRow): PageRow {
  return { row, group, says, verdict, seen };
}

/** The findings of each lock, by its MAC. */
function grouped(findings: readonly PageFinding[]): Map<string, PageFinding[]> {
  const byMac = new Map<string, PageFinding[]>();
  for (const finding of findings) {
    const ofLock = byMac.get(finding.mac);
    if (ofLock === undefined) byMac.set(finding.mac, [finding]);
    else ofLock.push(finding);
  }
  return byMac;
}
