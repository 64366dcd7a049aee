/**
 * Makes a certificate from traces. For each row, a requirement, it says whether the requirement was seen to hold, seen
 * broken, or not seen; a row without evidence never passes (protocol.md §3). Does no I/O: the caller reads the files,
 * one after another, and passes their events in order.
 */
import { ok, type Result } from '../../errors.js';
import type { PowerModel } from '../../power/model.js';
import { findRule, type RuleName } from '../../power/rules.js';
import type { Mac } from '../../wire/mac.js';
import { TraceCheck } from '../check.js';
import { OwedCheck, type OwedFinding, type OwedOptions } from '../owed/owed-check.js';
import type { TraceEvent, TraceHeader } from '../trace.js';
import { Evidence } from './evidence.js';
import { rowsRequiring } from './function-rows.js';
import { type LineNote, LineNotes } from './line-notes.js';
import { POSITION_TRUE_ROW } from './obligation-rows.js';
import type { CertificateRow, JudgedRow } from './row.js';
import { RowFindings, type StandingFinding } from './row-findings.js';
import { certificateRows } from './rows.js';
import { Tally } from './tally.js';

/** The maximum number of firmware versions that a certificate lists. A lock may report any text as its version. */
const MAX_VERSIONS = 100;

/** A trace from which a certificate was made. */
export interface CertifiedTrace {
  readonly file: string;
  /** The digest of the file's bytes, as 64 hexadecimal digits. */
  readonly sha256: string;
  /** How many locks and pings it has. */
  readonly locks: number;
  readonly pings: number;
  /** The times of its first and last event, ms since the epoch; null if it has none. */
  readonly fromMs: number | null;
  readonly toMs: number | null;
}

/** A truth that a certificate rests on: a file with events of the world. */
export interface CertifiedTruth {
  readonly file: string;
  /** Of the file's bytes, as 64 hexadecimal digits. */
  readonly sha256: string;
}

export interface Certificate {
  /** The version of lockgate that made it. */
  readonly lockgate: string;
  /** The firmware version that it is about; null if none was stated. */
  readonly firmware: string | null;
  /** The firmware versions that cellular pings report, each with its number of pings. */
  readonly reported: readonly { readonly version: string; readonly pings: number }[];
  /** How many pings were left out, because another firmware than the stated one made them. */
  readonly leftOut: number;
  readonly traces: readonly CertifiedTrace[];
  /** The truth with which the traces were compared; null if each was compared with its own `world` events. */
  readonly world: CertifiedTruth | null;
  /** How many different locks all traces have. */
  readonly locks: number;
  readonly pings: number;
  readonly fromMs: number | null;
  readonly toMs: number | null;
  readonly rows: readonly JudgedRow[];
}

/**
 * Rules whose findings fail a row whatever the row's `reasons`. Their findings name a ping near the one that is missing
 * or wrong, so the reason of the named ping says nothing about the row.
 */
const ANY_REASON: ReadonlySet<string> = new Set<RuleName>([
  'change-untold',
  'network-ping-missing',
  'position-missing',
]);

interface OpenTrace {
  readonly file: string;
  readonly check: TraceCheck;
  readonly evidence: Evidence;
  /** Holds findings until no later line can withdraw them. */
  readonly findings: RowFindings;
  /** The reason and the state of the uplink in each line. */
  readonly notes: LineNotes;
  readonly header: TraceHeader;
  /** Compares the trace with what truly happened, and finds uplinks that the lock owed: those it should have sent. */
  owed: OwedCheck;
  /** Whether the truth is another file, so that `world` events of the trace are ignored. */
  hasOtherTruth: boolean;
  fromMs: number | null;
  toMs: number | null;
}

/** See the top of this file. */
export class CertificateMaker {
  readonly #model: PowerModel;
  readonly #firmware: string | null;
  readonly #ignored: ReadonlySet<string>;
  readonly #rows: readonly CertificateRow[];
  readonly #rowsByRule = new Map<string, CertificateRow[]>();
  /** The rows that list a rule's warnings without failing by them. */
  readonly #notedByRule = new Map<string, CertificateRow[]>();
  /** Counts what the stated firmware showed. A lock that has not reported its firmware yet counts here. */
  readonly #certifiedTally = new Tally();
  /** Counts what other firmware showed. */
  readonly #otherTally = new Tally();
  readonly #reported = new Map<string, number>();
  readonly #locks = new Set<Mac>();
  readonly #traces: CertifiedTrace[] = [];
  #otherPings = 0;
  #open: OpenTrace | null = null;

  /**
   * @param firmware the version that the certificate is about; null for whatever the locks report
   * @param ignored rules whose findings do not count
   */
  constructor(model: PowerModel, firmware: string | null, ignored: readonly string[] = []) {
    this.#ignored = new Set(ignored);
    this.#model = model;
    this.#firmware = firmware;
    this.#rows = certificateRows(model);
    for (const row of this.#rows) {
      for (const rule of row.failsBy) append(this.#rowsByRule, rule, row);
      for (const rule of row.notedBy ?? []) append(this.#notedByRule, rule, row);
    }
  }

  /** How many pings of the open trace have been judged. */
  get pings(): number {
    return this.#open?.check.pings ?? 0;
  }

  /** Starts a trace. @param file its name, as the certificate is to show it */
  start(file: string, header: TraceHeader): void {
    const evidence = new Evidence(this.#model, header, (rowId, line, firmware) => {
      this.#tallyOf(firmware).see(rowId, file, line);
    });
    const notes = new LineNotes(this.#model);
    const findings = new RowFindings((found) => this.#attribute({ file, evidence, notes }, found));
    // Without counts of states and reasons, and without an observer.
    const check = new TraceCheck(this.#model, header, false, null, findings);
    const owed = this.#newOwedCheck({ file, evidence, header }, { truthName: null });
    const open = { file, header, check, evidence, findings, notes, owed, hasOtherTruth: false };
    this.#open = { ...open, fromMs: null, toMs: null };
    for (const mac of header.locks.keys()) this.#locks.add(mac);
  }

  /**
   * To be called after {@link start} if the truth is another file. The caller passes each event of the truth to the
   * returned check, before it judges events of the trace that happened later.
   *
   * @param truthName as findings are to show it
   * @param truthHeader null if the file has no header; then the header of the trace applies
   */
  useTruth(truthName: string, truthHeader: TraceHeader | null): OwedCheck {
    const open = this.#open;
    if (open === null) throw new Error('no trace is open');
    open.owed = this.#newOwedCheck(open, { truthName, ...(truthHeader && { truthHeader }) });
    open.hasOtherTruth = true;
    return open.owed;
  }

  #newOwedCheck(
    { file, evidence, header }: Pick<OpenTrace, 'file' | 'evidence' | 'header'>,
    truth: Pick<OwedOptions, 'truthName' | 'truthHeader'>,
  ): OwedCheck {
    return new OwedCheck({
      model: this.#model,
      header,
      ...truth,
      // This check makes no other kind of finding.
      findings: { add: (found) => this.#attributeOwed({ file, evidence }, found as OwedFinding) },
      onPosition: (mac, line, isTrue) => {
        if (isTrue) this.#tallyOf(evidence.firmwareOf(mac)).see(POSITION_TRUE_ROW, file, line);
      },
    });
  }

  /**
   * Judges the event of a line of the open trace.
   *
   * @returns an error if a `world` event (what truly happened around a lock) is invalid, with what was expected
   */
  judge(event: TraceEvent, line: number): Result<null> {
    const open = this.#open;
    if (open === null) return ok(null);
    open.fromMs ??= event.atMs;
    open.toMs = event.atMs;
    if ('mac' in event && event.mac !== null) this.#locks.add(event.mac);
    // First, because #attribute looks up this line's note when the check makes a finding.
    this.#observe(open, event, line);
    open.check.judge(event, line);
    return compareWithWorld(open, event, line);
  }

  #observe(open: OpenTrace, event: TraceEvent, line: number): void {
    const state = open.evidence.observe(event, line);
    if (state === null || (event.event !== 'ping' && event.event !== 'ack')) return;
    const isOther = this.#isOther(open.evidence.firmwareOf(event.mac));
    const { body } = event.uplink;
    open.notes.note(line, state, body.kind === 'ack' ? null : body.reason, isOther);
    if (isOther && body.kind !== 'ack') this.#otherPings += 1;
    if (body.kind === 'cellular') this.#countVersion(body.firmwareVersion);
  }

  /** Closes the open trace. @param sha256 of the file's bytes, as hexadecimal digits */
  finish(sha256: string): void {
    const open = this.#open;
    if (open === null) return;
    const { file, check, evidence, findings, fromMs, toMs } = open;
    if (toMs !== null) evidence.end(toMs);
    findings.end();
    this.#traces.push({ file, sha256, locks: check.locks, pings: check.pings, fromMs, toMs });
    this.#open = null;
  }

  /**
   * The certificate of all finished traces.
   *
   * @param lockgate the version of this program
   * @param world the truth, if it was another file
   */
  certificate(lockgate: string, world: CertifiedTruth | null = null): Certificate {
    const isReported = this.#firmware === null || this.#reported.has(this.#firmware);
    const tally = new Tally();
    tally.add(this.#certifiedTally);
    // If no ping reports the stated version, the certificate says so and counts all pings.
    if (!isReported) tally.add(this.#otherTally);
    const times = this.#traces.flatMap(({ fromMs, toMs }) => (fromMs === null || toMs === null ? [] : [fromMs, toMs]));
    return {
      lockgate,
      firmware: this.#firmware,
      reported: [...this.#reported].map(([version, pings]) => ({ version, pings })),
      leftOut: isReported ? this.#otherPings : 0,
      traces: this.#traces,
      world,
      locks: this.#locks.size,
      pings: this.#traces.reduce((sum, { pings }) => sum + pings, 0),
      fromMs: times.length === 0 ? null : times.reduce((a, b) => Math.min(a, b)),
      toMs: times.length === 0 ? null : times.reduce((a, b) => Math.max(a, b)),
      rows: this.#rows.map((row) => tally.verdictOn(row)),
    };
  }

  #tallyOf(firmware: string | null): Tally {
    return this.#isOther(firmware) ? this.#otherTally : this.#certifiedTally;
  }

  #isOther(firmware: string | null): boolean {
    return this.#firmware !== null && firmware !== null && firmware !== this.#firmware;
  }

  #countVersion(version: string): void {
    if (version === '') return;
    const count = this.#reported.get(version);
    if (count === undefined && this.#reported.size >= MAX_VERSIONS && version !== this.#firmware) return;
    this.#reported.set(version, (count ?? 0) + 1);
  }

  /** Fails the rows of a finding of the rule `owed`: an uplink is missing, or a position is not the true one. */
  #attributeOwed({ file, evidence }: Pick<OpenTrace, 'file' | 'evidence'>, found: OwedFinding): void {
    const { line, mac, rule, message, owed } = found;
    if (this.#ignored.has(rule)) return;
    const rowIds =
      owed === 'true-position' ? [POSITION_TRUE_ROW] : rowsRequiring(this.#model, owed, evidence.stateOf(mac));
    const tally = this.#tallyOf(evidence.firmwareOf(mac));
    for (const rowId of rowIds) tally.fail(rowId, { at: `${file}:${line}`, mac, rule, message });
  }

  /**
   * Fails the rows of a finding of the check: of the rows of its rule, those for the uplink's power state and reason,
   * or all if there are none.
   */
  #attribute(
    { file, evidence, notes }: Pick<OpenTrace, 'file' | 'evidence' | 'notes'>,
    { line, mac, rule, message }: StandingFinding,
  ): void {
    if (this.#ignored.has(rule)) return;
    const found = { at: `${file}:${line}`, mac, rule, message };
    // A finding about time that passed has the line that came next, which may be about another lock.
    const note = findRule(rule)?.restsOn === 'time' ? null : notes.of(line);
    const isOther = note?.isOtherFirmware ?? this.#isOther(evidence.firmwareOf(mac));
    const tally = isOther ? this.#otherTally : this.#certifiedTally;
    for (const { row: rowId } of this.#notedByRule.get(rule) ?? []) tally.noteWarning(rowId, found);
    const candidates = this.#rowsByRule.get(rule) ?? [];
    const rows = candidates.filter((row) => isAbout(row, rule, note));
    for (const { row: rowId } of rows.length > 0 ? rows : candidates) tally.fail(rowId, found);
  }
}

/**
 * Whether a finding of the rule belongs to the row. `note` describes the uplink of the finding's line, if it has one.
 */
function isAbout({ state, reasons }: CertificateRow, rule: string, note: LineNote | null): boolean {
  if (note === null) return state === null && reasons === undefined;
  if (state !== null && state !== note.state) return false;
  return reasons === undefined || ANY_REASON.has(rule) || (note.reason !== null && reasons.includes(note.reason));
}

function append(rowsByRule: Map<string, CertificateRow[]>, rule: string, row: CertificateRow): void {
  const rows = rowsByRule.get(rule);
  if (rows === undefined) rowsByRule.set(rule, [row]);
  else rows.push(row);
}

/** Compares the trace with its `world` events. Without such events, no uplink is owed and no true position is known. */
function compareWithWorld({ owed, hasOtherTruth }: OpenTrace, event: TraceEvent, line: number): Result<null> {
  if (hasOtherTruth && event.event === 'world') return ok(null);
  const read = event.event === 'world' ? owed.world(event, line) : ok(null);
  if (!read.ok) return read;
  owed.event(event, line);
  return read;
}
