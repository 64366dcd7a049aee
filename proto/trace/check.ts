/**
 * Judges one complete trace (protocol.md §4): passes each event to the judge, which checks what locks do. Before each
 * event, the judge learns for every lock that time has passed. The gateway counts as listening from the first event on.
 * Does no I/O: the caller reads the file and passes its events in order.
 */
import { Deadlines, type Due } from '../deadlines.js';
import { type Belief, newBelief } from '../power/judge/belief.js';
import { type JudgeEvent, newVerdict, type UplinkEvent, type UplinkKey, type Verdict } from '../power/judge/event.js';
import { judgeInPlace } from '../power/judge/judge.js';
import { stateRow } from '../power/judge/state.js';
import type { PowerModel } from '../power/model.js';
import { formatMac, type Mac } from '../wire/mac.js';
import { SeenUplinksLimit } from '../wire/seen-uplinks.js';
import { FIRST_LIFE, lifeOf, NO_MARKS } from '../wire/uplink-life.js';
import { Coverage, type CoverageCell } from './coverage.js';
import { FindingList, type FindingSink, type TraceFinding } from './findings.js';
import { SeenCredentials } from './seen-credentials.js';
import {
  FIRST_CREDENTIAL,
  type TraceAck,
  type TraceEvent,
  type TraceHeader,
  type TracePing,
  UNNAMED_LOCK,
} from './trace.js';

/** What the check remembers about one lock. */
interface JudgedLock extends Due {
  /** What the judge concludes about the lock. */
  readonly belief: Belief;
  /** When the lock's flash was wiped; each time starts a new life, in which boots count from 1 again. */
  readonly reflashMarksMs: readonly number[];
  /** Which uplinks have come, and in which lines. */
  readonly seen: SeenCredentials;
  firmwareVersion: string | null;
}

/** How many uplinks of all locks are remembered, for findings about an uplink of an earlier line. */
const MAX_RECENT_UPLINKS = 1024;

/** Observes how each event is judged, to explain it. It must neither change its arguments nor store them. */
export interface CheckObserver {
  /** Called before the judge takes an event of a lock, with the belief so far. */
  before(belief: Belief, event: JudgeEvent, line: number): void;
  /** Called afterwards, with the new belief. The verdict has the findings that the event caused. */
  after(belief: Belief, event: JudgeEvent, verdict: Verdict, line: number): void;
}

/** See the top of this file. */
export class TraceCheck {
  readonly #model: PowerModel;
  readonly #header: TraceHeader;
  readonly #coverage: Coverage | null;
  readonly #observer: CheckObserver | null;
  readonly #locks = new Map<Mac, JudgedLock>();
  readonly #deadlines = new Deadlines<JudgedLock>();
  readonly #seenLimit = new SeenUplinksLimit();
  readonly #verdict: Verdict = newVerdict();
  readonly #list = new FindingList();
  readonly #sink: FindingSink;
  /** A ring buffer of uplinks: the next one overwrites the oldest, at `#recentIndex`. */
  readonly #recent: (TracePing | TraceAck)[] = [];
  #recentIndex = 0;
  #listeningSinceMs: number | null = null;
  #hasStarted = false;
  #pings = 0;

  /**
   * @param withCoverage whether to count pings by state, trigger and reason
   * @param sink receives the findings; without it the check holds them in memory
   */
  constructor(
    model: PowerModel,
    header: TraceHeader,
    withCoverage = false,
    observer: CheckObserver | null = null,
    sink?: FindingSink,
  ) {
    this.#model = model;
    this.#sink = sink ?? this.#list;
    this.#header = header;
    this.#coverage = withCoverage ? new Coverage(model) : null;
    this.#observer = observer;
  }

  /** How many pings were judged, including those of phones. */
  get pings(): number {
    return this.#pings;
  }

  /** How many locks the header or an event names. */
  get locks(): number {
    return this.#hasStarted ? this.#locks.size : this.#header.locks.size;
  }

  /** The findings that were not withdrawn, in the order of their lines; none if a sink took them. */
  findings(): TraceFinding[] {
    return this.#list.sorted();
  }

  /** The findings that were withdrawn because a later line explains them, in the order of the withdrawals. */
  withdrawn(): readonly TraceFinding[] {
    return this.#list.withdrawn();
  }

  /** How many pings there were by state, trigger and reason; null if the constructor was not asked to count. */
  coverage(): CoverageCell[] | null {
    return this.#coverage?.cells() ?? null;
  }

  /** Judges the event of a line. */
  judge(event: TraceEvent, line: number): void {
    if (!this.#hasStarted) this.#begin(event);
    if (this.#deadlines.firstMs < event.atMs) this.#tickDueLocks(event.atMs, line);
    switch (event.event) {
      case 'ping':
      case 'ack':
        this.#judgeUplink(event, line);
        break;
      case 'connect':
        this.#apply(event.mac, { type: 'connect', source: event.source, atMs: event.atMs }, line);
        break;
      case 'disconnect': {
        const { source, cause, atMs } = event;
        this.#apply(event.mac, { type: 'disconnect', source, cause, atMs }, line);
        break;
      }
      case 'command': {
        const { id, command, expiresMs, atMs } = event;
        this.#apply(event.mac, { type: 'command', id, command, expiresMs, atMs }, line);
        break;
      }
      case 'gateway':
        this.#listeningSinceMs = event.state === 'start' ? event.atMs : null;
        for (const mac of this.#locks.keys())
          this.#apply(mac, { type: 'gateway', state: event.state, atMs: event.atMs }, line);
        break;
      case 'tick':
      case 'world':
        break;
    }
  }

  #begin(event: TraceEvent): void {
    this.#hasStarted = true;
    // If the first event is the gateway's start, judging it sets this time.
    const isStart = event.event === 'gateway' && event.state === 'start';
    this.#listeningSinceMs = isStart ? null : event.atMs;
    for (const mac of this.#header.locks.keys()) this.#newLock(mac, event.atMs);
  }

  #newLock(mac: Mac, atMs: number): JudgedLock {
    const { power, highWindow, lockState, connected, lastPeriodMs, reflashed, commands } =
      this.#header.locks.get(mac) ?? UNNAMED_LOCK;
    const reflashMarksMs = reflashed ?? NO_MARKS;
    const belief = newBelief(this.#model, formatMac(mac), atMs, {
      power,
      highWindow: highWindow ?? this.#model.highWindow,
      lockState,
      isConnected: connected,
      lastPeriodMs,
      ...(commands !== undefined && { commands }),
      listeningSinceMs: this.#listeningSinceMs,
    });
    const lives = 1 + reflashMarksMs.length;
    const lock: JudgedLock = {
      belief,
      reflashMarksMs,
      seen: new SeenCredentials(this.#seenLimit, lives),
      firmwareVersion: null,
      dueMs: 0,
    };
    this.#locks.set(mac, lock);
    this.#deadlines.set(lock, belief.dueMs);
    return lock;
  }

  /** Judges a tick for every lock for which a *lapse* (a silence that breaks a rule) may have become due. */
  #tickDueLocks(atMs: number, line: number): void {
    for (let lock = this.#deadlines.take(atMs); lock !== undefined; lock = this.#deadlines.take(atMs)) {
      this.#judgeOne(lock, { type: 'tick', atMs }, line);
      this.#deadlines.set(lock, lock.belief.dueMs);
      this.#collect(lock, null, line);
    }
  }

  #judgeUplink(event: TracePing | TraceAck, line: number): void {
    const { mac, source, credential = FIRST_CREDENTIAL, atMs, uplink } = event;
    const lock = this.#locks.get(mac) ?? this.#newLock(mac, atMs);
    const hasSeveralLives = source === 'lock' && lock.reflashMarksMs.length > 0;
    const life = hasSeveralLives ? lifeOf(lock.reflashMarksMs, uplink.timeMs, atMs) : FIRST_LIFE;
    // Whether the uplink came before. Uplinks of phones are never compared with the lock's.
    const novelty = lock.seen.note(source, credential, life, uplink, line);
    if (source === 'lock' && uplink.body.kind === 'cellular') lock.firmwareVersion = uplink.body.firmwareVersion;
    this.#recent[this.#recentIndex] = event;
    this.#recentIndex = (this.#recentIndex + 1) % MAX_RECENT_UPLINKS;
    if (event.event === 'ping') this.#notePing(event);
    const uplinkEvent: UplinkEvent = { type: 'uplink', source, atMs, credential, life, novelty, uplink };
    this.#judgeOne(lock, uplinkEvent, line);
    this.#afterJudging(lock, uplinkEvent, line);
  }

  #notePing({ source, uplink }: TracePing): void {
    this.#pings += 1;
    if (this.#coverage === null || source === 'phone') return;
    const { state } = stateRow(this.#model, uplink.power, uplink.body.batteryPercent);
    this.#coverage.note(state, uplink.body);
  }

  #apply(mac: Mac, event: JudgeEvent, line: number): void {
    const lock = this.#locks.get(mac) ?? this.#newLock(mac, event.atMs);
    this.#judgeOne(lock, event, line);
    this.#afterJudging(lock, null, line);
  }

  #judgeOne({ belief }: JudgedLock, event: JudgeEvent, line: number): void {
    this.#observer?.before(belief, event, line);
    judgeInPlace(this.#model, belief, event, this.#verdict);
    this.#observer?.after(belief, event, this.#verdict, line);
  }

  #afterJudging(lock: JudgedLock, judged: UplinkEvent | null, line: number): void {
    // A later deadline is noticed when the earlier one comes, so only an earlier deadline must be set.
    if (lock.belief.dueMs < lock.dueMs) this.#deadlines.set(lock, lock.belief.dueMs);
    if (this.#verdict.findings.length > 0 || this.#verdict.withdrawn.length > 0) this.#collect(lock, judged, line);
  }

  /** Passes the judge's findings and withdrawals to the sink. `judged` is the uplink that the line has, if any. */
  #collect(lock: JudgedLock, judged: UplinkEvent | null, line: number): void {
    for (const { mac, rule, about } of this.#verdict.withdrawn) this.#sink.withdraw(rule, mac, about);
    for (const { mac, rule, severity, message, about, atMs } of this.#verdict.findings) {
      const { firmwareVersion } = lock;
      const sent = about === null ? null : this.#sentOf(mac, about, judged);
      const aboutLine = lineOf(lock, about, judged, line);
      this.#sink.add({ line: aboutLine, mac, rule, severity, message, atMs, about, sent, firmwareVersion });
    }
    // All events share one verdict.
    this.#verdict.withdrawn.length = 0;
    this.#verdict.findings.length = 0;
  }

  /** The uplink that a finding is about; null if it came too long ago. */
  #sentOf(mac: string, about: UplinkKey, judged: UplinkEvent | null): TraceFinding['sent'] {
    if (judged !== null && isAbout(about, judged)) return { source: judged.source, uplink: judged.uplink };
    const { credential, boot, sequence } = about;
    for (const event of this.#recent) {
      const { uplink, source } = event;
      if (uplink.sequence !== sequence || uplink.boot !== boot || source !== 'lock') continue;
      if ((event.credential ?? FIRST_CREDENTIAL) === credential && formatMac(event.mac) === mac)
        return { source, uplink };
    }
    return null;
  }
}

/** The line of the uplink that a finding is about: the current line, or the line of an earlier uplink. */
function lineOf(lock: JudgedLock, about: UplinkKey | null, judged: UplinkEvent | null, line: number): number {
  if (about === null || (judged !== null && isAbout(about, judged))) return line;
  const { credential, life = FIRST_LIFE, boot, sequence } = about;
  return lock.seen.lineOf(credential, life, boot, sequence) ?? line;
}

function isAbout({ credential, life = FIRST_LIFE, boot, sequence }: UplinkKey, judged: UplinkEvent): boolean {
  const { uplink } = judged;
  if (uplink.sequence !== sequence || uplink.boot !== boot || judged.credential !== credential) return false;
  return (judged.life ?? FIRST_LIFE) === life;
}
