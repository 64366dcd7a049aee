/**
 * The rule `owed` (protocol.md §3): compares a trace with a *truth*, the `world` events that record what truly happened
 * around the locks. Finds events for which a lock should have sent an uplink or kept a connection and did not, and GPS
 * positions that are not where the lock was. Does no I/O: the caller reads both files and passes their events in order
 * of time; of events with the same time, the `world` events first. The judge has no part in this check.
 */
import { Minutes } from '../../clock.js';
import { ok, type Result } from '../../errors.js';
import { describeTime } from '../../power/judge/words.js';
import type { PowerModel, TriggerName } from '../../power/model.js';
import { severityOf } from '../../power/rules.js';
import { formatMac, type Mac } from '../../wire/mac.js';
import { formatDate } from '../../wire/ping-json.js';
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

/**
 * A finding of the rule `owed`. Its line is a line of the trace: the one with the `world` event, if the trace has that
 * event; else the one at which it became certain that the uplink does not come. For a wrong position: the ping's line.
 */
export type OwedFinding = TraceFinding & {
  readonly world: OwedCause;
  /** What the lock owed: the pings of a trigger, or a ping with the true position. */
  readonly owed: TriggerName | 'true-position';
};

/** What a check compares, and where its results go. */
export interface OwedOptions {
  readonly model: PowerModel;
  /** The header of the trace. */
  readonly header: TraceHeader;
  /** The header of the truth, if the truth is another file. It takes precedence over the trace's header. */
  readonly truthHeader?: TraceHeader;
  /** The file name of the truth, for sentences; null if the truth is the trace itself. */
  readonly truthName: string | null;
  /** Receives the findings. Without it, {@link OwedCheck.findings} returns them. */
  readonly findings?: Pick<FindingSink, 'add'>;
  /** Called for each GPS position that was compared, with the line of its ping. */
  readonly onPosition?: (mac: string, line: number, isTrue: boolean) => void;
}

/** The line number of a `world` event that is in no file, as in a simulation that writes none. */
export const UNWRITTEN = 0;

/** How often the check looks for overdue uplinks, by the trace's clock. An uplink is overdue after an hour. */
const TICK_INTERVAL_MS = Minutes(10);
/** How many wrong positions of a lock are remembered, so that a repeated uplink makes no second finding. */
const MAX_WRONG_POSITIONS = 64;

interface ComparedLock {
  /** The MAC in the form `A4:C1:38:F0:E1:D2`. */
  readonly mac: string;
  readonly duties: LockDuties;
  /** Whether the trace has this lock. Nothing is expected of a lock that only the truth has. */
  isInTrace: boolean;
  firmwareVersion: string | null;
  /** The keys (boot and sequence) of the last uplinks with a wrong position. */
  wrongPositionKeys: string[];
}

/** See the top of this file. */
export class OwedCheck {
  readonly #options: OwedOptions;
  readonly #locks = new Map<Mac, ComparedLock>();
  readonly #findings: OwedFinding[] = [];
  /** When the trace begins; null before its first event. */
  #beginMs: number | null = null;
  /** Since when the gateway listens; null while it doesn't. */
  #listeningSinceMs: number | null = null;
  #nextTickMs = Number.NEGATIVE_INFINITY;
  /** The line and the time of the trace's last event. */
  #line = 1;
  #nowMs = 0;

  constructor(options: OwedOptions) {
    this.#options = options;
  }

  /** How many `world` events were read. */
  worldEvents = 0;

  /** The findings, in the order of their lines. */
  findings(): OwedFinding[] {
    return [...this.#findings].sort((a, b) => a.line - b.line);
  }

  /**
   * The trace begins. If the truth begins earlier, this must be called before the first `world` event, so that no
   * uplink from before the trace is expected.
   *
   * @param atMs the time of the trace's first event, ms since the epoch
   */
  begin(atMs: number): void {
    this.#beginMs = atMs;
    this.#listeningSinceMs = atMs;
    for (const mac of this.#options.header.locks.keys()) this.#lockOf(mac).isInTrace = true;
  }

  /** Takes a `world` event. An error names the member and what was expected. */
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

  /** Takes an event of the trace. It ignores `world` events, which must be passed to {@link world}. */
  event(event: TraceEvent, line: number): void {
    this.#line = line;
    this.#nowMs = event.atMs;
    if (this.#beginMs === null) this.begin(event.atMs);
    this.#tick(event.atMs);
    if (event.event === 'gateway') this.#listeningSinceMs = event.state === 'start' ? event.atMs : null;
    if (event.event === 'world' || event.event === 'tick' || event.event === 'gateway') return;
    // A command has no source: it is to the lock.
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
    const wrongPlace = lock.duties.comparePosition(uplink);
    if (wrongPlace === undefined) return;
    const { boot, sequence } = uplink;
    const key = `${boot} ${sequence}`;
    if (lock.wrongPositionKeys.includes(key)) return;
    this.#options.onPosition?.(lock.mac, line, wrongPlace === null);
    if (wrongPlace === null) return;
    // The newest MAX_WRONG_POSITIONS.
    lock.wrongPositionKeys = [...lock.wrongPositionKeys.slice(1 - MAX_WRONG_POSITIONS), key];
    const about = { credential: credential ?? FIRST_CREDENTIAL, boot, sequence };
    const message = this.#messageOf(placeSentence(uplink, wrongPlace), wrongPlace.cause);
    this.#add(lock, wrongPlace.cause, { line, atMs, about, sent: { source, uplink }, message, owed: 'true-position' });
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
    const lockAtStart: TraceLock = {
      ...(header.locks.get(mac) ?? UNNAMED_LOCK),
      ...(truthHeader?.locks.has(mac) && truthStart(truthHeader.locks.get(mac) as TraceLock)),
    };
    const text = formatMac(mac);
    const lock: ComparedLock = {
      mac: text,
      duties: new LockDuties(model, lockAtStart, this.#beginMs ?? Number.NEGATIVE_INFINITY, (missing) =>
        this.#addMissing(lock, missing),
      ),
      isInTrace: false,
      firmwareVersion: null,
      wrongPositionKeys: [],
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
      owed: isUplink ? missing.duty.trigger : 'kept-connection',
    });
  }

  #messageOf(sentence: string, { line, atMs, text }: WorldCause): string {
    const { truthName } = this.#options;
    const reference = truthName === null ? `line ${line}` : `${truthName}:${line}`;
    const inParentheses = line === UNWRITTEN ? '' : ` (${reference})`;
    return `${capitalize(sentence)}: world event “${text}” of ${describeTime(atMs)}${inParentheses}.`;
  }

  #add(
    { mac, firmwareVersion }: ComparedLock,
    { line, atMs, text }: WorldCause,
    found: Pick<OwedFinding, 'line' | 'atMs' | 'about' | 'sent' | 'message' | 'owed'>,
  ): void {
    const world = { line, at: formatDate(atMs), event: text };
    const finding: OwedFinding = { ...found, mac, firmwareVersion, rule: 'owed', severity: severityOf('owed'), world };
    if (this.#options.findings === undefined) this.#findings.push(finding);
    else this.#options.findings.add(finding);
  }
}

function capitalize(sentence: string): string {
  return sentence.slice(0, 1).toUpperCase() + sentence.slice(1);
}

/** The members of a truth's header that take precedence over the trace's header. */
function truthStart({ power, lockState, highWindow }: TraceLock): Partial<TraceLock> {
  return { power, lockState, ...(highWindow !== null && { highWindow }) };
}
