/**
 * Compares a trace with a truth (protocol.md §3, `owed`): finds the events of the world for which a lock owes an uplink
 * or a connection that never came, and GPS positions that are not where the lock was. Pure: the caller reads both files
 * and passes their events in order of time, those of the world first where the times are equal. The judge has no part
 * in this, and this file uses no finding of the judge.
 */
import { ok, type Result } from '../../errors.js';
import { describeTime } from '../../power/judge/words.js';
import type { PowerModel, TriggerName } from '../../power/model.js';
import { severityOf } from '../../power/rules.js';
import { formatMac, type Mac } from '../../wire/mac.js';
import { toDate } from '../../wire/ping-json.js';
import type { FindingSink, TraceFinding } from '../findings.js';
import { readGroundTruth } from '../ground-truth.js';
import {
  FIRST_CREDENTIAL,
  type TraceAck,
  type TraceEvent,
  type TraceHeader,
  type TraceLock,
  type TracePing,
  type TraceWorld,
  UNNAMED_LOCK,
} from '../trace.js';
import type { OwedCause, WorldCause } from './duty.js';
import { LockDuties, type Missing } from './lock-duties.js';
import { connectionSentence, describeCause, placeSentence, uplinkSentence } from './sentences.js';

/** A finding of the rule `owed`. Its line is the line of the trace: of the event of the world, if the truth is the same
 * file; otherwise where it became certain that the uplink does not come. For a position, the line of its ping. */
export type OwedFinding = TraceFinding & { readonly world: OwedCause; readonly missing: TriggerName | 'position' };

export interface OwedOptions {
  readonly model: PowerModel;
  /** The header of the trace. */
  readonly header: TraceHeader;
  /** The header of the truth, if that is another file: what it says of a lock goes before. */
  readonly truthHeader?: TraceHeader;
  /** The name of the truth for sentences; null if it is the trace itself. */
  readonly truthName: string | null;
  /** Takes the findings. Without it, {@link OwedCheck.findings} has them. */
  readonly findings?: Pick<FindingSink, 'add'>;
  /** Called for each GPS position that was compared, with the line of its ping. */
  readonly onPosition?: (mac: string, line: number, isTrue: boolean) => void;
}

/** The line of an event of the world that is in no file. */
export const UNWRITTEN = 0;

/** How often the time that passes is noticed, in ms of the trace. */
const TICK_INTERVAL_MS = 10 * 60_000;
/** How many wrong positions of a lock are remembered, so that a repeated uplink is no second finding. */
const MAX_REMEMBERED = 64;

interface ComparedLock {
  readonly mac: string;
  readonly duties: LockDuties;
  /** Whether the trace has this lock. Nothing is expected of the others. */
  isInTrace: boolean;
  firmwareVersion: string | null;
  wrongPlaces: string[];
}

/** See the head of this file. */
export class OwedCheck {
  readonly #options: OwedOptions;
  readonly #locks = new Map<Mac, ComparedLock>();
  readonly #findings: OwedFinding[] = [];
  #beginMs: number | null = null;
  #listeningSinceMs: number | null = null;
  #nextTickMs = Number.NEGATIVE_INFINITY;
  #line = 1;
  #nowMs = 0;

  constructor(options: OwedOptions) {
    this.#options = options;
  }

  /** How many events of the world were read. */
  worldEvents = 0;

  /** The findings, in the order of their lines. */
  findings(): OwedFinding[] {
    return [...this.#findings].sort((a, b) => a.line - b.line);
  }

  /**
   * The trace begins. To be called before events of a truth that begins earlier: nothing is owed for those.
   *
   * @param atMs the time of the trace's first event, ms since the epoch
   */
  begin(atMs: number): void {
    this.#beginMs = atMs;
    this.#listeningSinceMs = atMs;
    for (const mac of this.#options.header.locks.keys()) this.#lockOf(mac).isInTrace = true;
  }

  /** An event of the truth. An error names the member and what was expected. */
  world(event: TraceWorld, line: number): Result<null> {
    const truth = readGroundTruth(event);
    if (!truth.ok) return truth;
    this.worldEvents += 1;
    if (event.mac === null) return ok(null);
    const lock = this.#lockOf(event.mac);
    if (this.#options.truthName === null) lock.isInTrace = true;
    lock.duties.world(truth.value, { line, atMs: event.atMs, text: describeCause(event.members) });
    return ok(null);
  }

  /** An event of the trace. Events of the world in it are ignored: {@link world} takes them. */
  event(event: TraceEvent, line: number): void {
    this.#line = line;
    this.#nowMs = event.atMs;
    if (this.#beginMs === null) this.begin(event.atMs);
    this.#tick(event.atMs);
    if (event.event === 'gateway') this.#listeningSinceMs = event.state === 'start' ? event.atMs : null;
    if (event.event === 'world' || event.event === 'tick' || event.event === 'gateway') return;
    if ('source' in event && event.source !== 'lock') return;
    const lock = this.#lockOf(event.mac);
    const { duties } = lock;
    lock.isInTrace = true;
    if (event.event === 'connect') duties.connected(event.atMs);
    else if (event.event === 'disconnect') duties.disconnected(event.atMs);
    else if (event.event === 'command') duties.command(event.atMs, event.command);
    else this.#uplink(lock, event, line);
  }

  #uplink(lock: ComparedLock, event: TracePing | TraceAck, line: number): void {
    const { atMs, uplink } = event;
    if (uplink.body.kind === 'cellular') lock.firmwareVersion = uplink.body.firmwareVersion;
    this.#comparePosition(lock, event, line);
    lock.duties.uplink(atMs, uplink);
  }

  #comparePosition(lock: ComparedLock, { atMs, uplink, source, credential }: TracePing | TraceAck, line: number): void {
    const wrong = lock.duties.comparePosition(uplink);
    if (wrong === undefined) return;
    const { boot, sequence } = uplink;
    const key = `${boot} ${sequence}`;
    if (lock.wrongPlaces.includes(key)) return;
    this.#options.onPosition?.(lock.mac, line, wrong === null);
    if (wrong === null) return;
    lock.wrongPlaces = [...lock.wrongPlaces.slice(1 - MAX_REMEMBERED), key];
    const about = { credential: credential ?? FIRST_CREDENTIAL, boot, sequence };
    const message = this.#messageOf(placeSentence(uplink, wrong), wrong.cause);
    this.#add(lock, wrong.cause, { line, atMs, about, sent: { source, uplink }, message, missing: 'position' });
  }

  #tick(atMs: number): void {
    if (atMs < this.#nextTickMs) return;
    this.#nextTickMs = atMs + TICK_INTERVAL_MS;
    for (const { duties } of this.#locks.values()) duties.tick(atMs, this.#listeningSinceMs);
  }

  #lockOf(mac: Mac): ComparedLock {
    const known = this.#locks.get(mac);
    if (known !== undefined) return known;
    const { model, header, truthHeader } = this.#options;
    const start: TraceLock = {
      ...(header.locks.get(mac) ?? UNNAMED_LOCK),
      ...(truthHeader?.locks.has(mac) && truthStart(truthHeader.locks.get(mac) as TraceLock)),
    };
    const text = formatMac(mac);
    const lock: ComparedLock = {
      mac: text,
      duties: new LockDuties(model, start, this.#beginMs ?? Number.NEGATIVE_INFINITY, (missing) =>
        this.#addMissing(lock, missing),
      ),
      isInTrace: false,
      firmwareVersion: null,
      wrongPlaces: [],
    };
    this.#locks.set(mac, lock);
    return lock;
  }

  #addMissing(lock: ComparedLock, missing: Missing): void {
    if (!lock.isInTrace) return;
    const isUplink = missing.type === 'uplink';
    const { cause } = isUplink ? missing.duty : missing;
    const sentence = isUplink ? uplinkSentence(missing.duty) : connectionSentence(missing.state, missing.sinceMs);
    this.#add(lock, cause, {
      line: this.#options.truthName === null && cause.line !== UNWRITTEN ? cause.line : this.#line,
      atMs: this.#nowMs,
      about: null,
      sent: null,
      message: this.#messageOf(sentence, cause),
      missing: isUplink ? missing.duty.trigger : 'kept-connection',
    });
  }

  #messageOf(sentence: string, { line, atMs, text }: WorldCause): string {
    const { truthName } = this.#options;
    const where = truthName === null ? `line ${line}` : `${truthName}:${line}`;
    const place = line === UNWRITTEN ? '' : ` (${where})`;
    return `${capitalize(sentence)}: world event “${text}” of ${describeTime(atMs)}${place}.`;
  }

  #add(
    { mac, firmwareVersion }: ComparedLock,
    { line, atMs, text }: WorldCause,
    found: Pick<OwedFinding, 'line' | 'atMs' | 'about' | 'sent' | 'message' | 'missing'>,
  ): void {
    const world = { line, at: toDate(atMs), event: text };
    const finding: OwedFinding = { ...found, mac, firmwareVersion, rule: 'owed', severity: severityOf('owed'), world };
    if (this.#options.findings === undefined) this.#findings.push(finding);
    else this.#options.findings.add(finding);
  }
}

function capitalize(sentence: string): string {
  return sentence.slice(0, 1).toUpperCase() + sentence.slice(1);
}

/** What the header of a truth says of a lock, where the trace begins with it. */
function truthStart({ power, lockState, highWindow }: TraceLock): Partial<TraceLock> {
  return { power, lockState, ...(highWindow !== null && { highWindow }) };
}
