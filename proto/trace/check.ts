/**
 * Judges one complete trace (protocol.md §4). Each event is first a tick for every lock, and the gateway counts as
 * listening from the first event. Pure: the caller reads the file and passes its events in order.
 */
import { Deadlines, type Due } from '../deadlines.js';
import { type Belief, newBelief } from '../power/judge/belief.js';
import {
  type Finding,
  type JudgeEvent,
  newVerdict,
  type UplinkCopy,
  type UplinkEvent,
  type UplinkKey,
  type Verdict,
} from '../power/judge/event.js';
import { IN_ORDER_RULES } from '../power/judge/in-order/ordered-uplink.js';
import { judgeInPlace } from '../power/judge/judge.js';
import { stateRow } from '../power/judge/state.js';
import type { PowerModel } from '../power/model.js';
import type { RuleName, Severity } from '../power/rules.js';
import { formatMac, type Mac } from '../wire/mac.js';
import type { Uplink } from '../wire/ping.js';
import { SeenUplinks, SeenUplinksBound } from '../wire/seen-uplinks.js';
import { FIRST_LIFE, lifeOf, NO_MARKS } from '../wire/uplink-life.js';
import { Coverage, type CoverageCell } from './coverage.js';
import { type TraceAck, type TraceEvent, type TraceHeader, type TracePing, UNNAMED_LOCK } from './trace.js';

/** A finding with the number of the line that it is about, from 1. */
export interface TraceFinding {
  readonly line: number;
  /** In the form `A4:C1:38:F0:E1:D2`. */
  readonly mac: string;
  readonly rule: RuleName;
  readonly severity: Severity;
  readonly message: string;
}

/** What the check remembers about one lock. */
interface JudgedLock extends Due {
  readonly belief: Belief;
  readonly reflashMarksMs: readonly number[];
  /** The uplinks received from the lock itself; one element for each of its lives (uplink-life.ts), in order. */
  readonly ownUplinks: SeenUplinks[];
  readonly phoneUplinks: SeenUplinks;
}

/** Follows the judging of each event, for explanations. It must not change what it is passed, nor keep it. */
export interface CheckObserver {
  /** Called before the judge sees an event of a lock, with what it believes of the lock until then. */
  before(belief: Belief, event: JudgeEvent, line: number): void;
  /** Called after it, with what it believes now. The verdict has the findings that the event caused. */
  after(belief: Belief, event: JudgeEvent, verdict: Verdict, line: number): void;
}

/** See the head of this file. */
export class TraceCheck {
  readonly #model: PowerModel;
  readonly #header: TraceHeader;
  readonly #coverage: Coverage | null;
  readonly #observer: CheckObserver | null;
  readonly #locks = new Map<Mac, JudgedLock>();
  readonly #deadlines = new Deadlines<JudgedLock>();
  readonly #bound = new SeenUplinksBound();
  readonly #verdict: Verdict = newVerdict();
  readonly #findings = new Set<TraceFinding>();
  readonly #withdrawn: TraceFinding[] = [];
  readonly #withdrawable = new Map<string, TraceFinding>();
  #listeningSinceMs: number | null = null;
  #hasBegun = false;
  #pings = 0;

  /** @param withCoverage whether to count pings by state, trigger and reason */
  constructor(model: PowerModel, header: TraceHeader, withCoverage = false, observer: CheckObserver | null = null) {
    this.#model = model;
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
    return this.#hasBegun ? this.#locks.size : this.#header.locks.size;
  }

  /** The findings that were not withdrawn, in the order of their lines. */
  findings(): TraceFinding[] {
    return [...this.#findings].sort((a, b) => a.line - b.line);
  }

  /** The findings that were withdrawn because a later line explains them, in the order of the withdrawals. */
  withdrawn(): readonly TraceFinding[] {
    return this.#withdrawn;
  }

  /** How many pings there were by state, trigger and reason; null if the constructor was not asked to count. */
  coverage(): CoverageCell[] | null {
    return this.#coverage?.cells() ?? null;
  }

  /** Judges the event of a line. */
  judge(event: TraceEvent, line: number): void {
    if (!this.#hasBegun) this.#begin(event);
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
    this.#hasBegun = true;
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
    const lock: JudgedLock = {
      belief,
      reflashMarksMs,
      ownUplinks: Array.from({ length: 1 + reflashMarksMs.length }, () => new SeenUplinks(this.#bound)),
      phoneUplinks: new SeenUplinks(this.#bound),
      dueMs: 0,
    };
    this.#locks.set(mac, lock);
    this.#deadlines.set(lock, belief.dueMs);
    return lock;
  }

  /** Judges a tick for every lock for which a lapse may have become due. */
  #tickDueLocks(atMs: number, line: number): void {
    for (let lock = this.#deadlines.take(atMs); lock !== undefined; lock = this.#deadlines.take(atMs)) {
      this.#judgeOne(lock, { type: 'tick', atMs }, line);
      this.#deadlines.set(lock, lock.belief.dueMs);
      this.#collect(lock, null, line);
    }
  }

  #judgeUplink(event: TracePing | TraceAck, line: number): void {
    const { mac, source, atMs, uplink } = event;
    const lock = this.#locks.get(mac) ?? this.#newLock(mac, atMs);
    const isOfLives = source === 'lock' && lock.reflashMarksMs.length > 0;
    const life = isOfLives ? lifeOf(lock.reflashMarksMs, uplink.timeMs, atMs) : FIRST_LIFE;
    const copy = source === 'lock' ? copyIn(lock.ownUplinks, life, uplink, line) : lock.phoneUplinks.note(uplink, line);
    if (event.event === 'ping') this.#notePing(event);
    // A trace does not name credentials, so all count as one. Uplinks of phones are never compared with the lock's.
    const judged: UplinkEvent = { type: 'uplink', source, atMs, credential: 0, life, copy, uplink };
    this.#judgeOne(lock, judged, line);
    this.#afterJudging(lock, judged, line);
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
    if (lock.belief.dueMs < lock.dueMs) this.#deadlines.set(lock, lock.belief.dueMs);
    if (this.#verdict.findings.length > 0 || this.#verdict.withdrawn.length > 0) this.#collect(lock, judged, line);
  }

  #collect(lock: JudgedLock, judged: UplinkEvent | null, line: number): void {
    for (const { mac, rule, about } of this.#verdict.withdrawn) {
      const key = findingKey(mac, rule, about);
      const standing = this.#withdrawable.get(key);
      if (standing !== undefined) {
        this.#findings.delete(standing);
        this.#withdrawn.push(standing);
      }
      this.#withdrawable.delete(key);
    }
    for (const found of this.#verdict.findings) this.#addFinding(found, lineOf(lock, found.about, judged, line));
    this.#verdict.withdrawn.length = 0;
    this.#verdict.findings.length = 0;
  }

  #addFinding({ mac, rule, severity, message, about }: Finding, line: number): void {
    const standing: TraceFinding = { line, mac, rule, severity, message };
    this.#findings.add(standing);
    if (about !== null && WITHDRAWABLE.has(rule)) this.#withdrawable.set(findingKey(mac, rule, about), standing);
  }
}

/** The rules that depend on earlier uplinks, so that a late uplink may explain a finding. */
const WITHDRAWABLE: ReadonlySet<RuleName> = new Set([
  'airplane-silence',
  'boot-back',
  'period-too-soon',
  'state-unchanged',
  ...IN_ORDER_RULES,
]);

function findingKey(mac: string, rule: RuleName, about: UplinkKey): string {
  return `${rule} ${mac} ${about.life ?? FIRST_LIFE} ${about.boot} ${about.sequence}`;
}

/** Whether an uplink came before. The same key with the same content is a repeat in any life (protocol.md §1). */
function copyIn(lives: readonly SeenUplinks[], life: number, uplink: Uplink, line: number): UplinkCopy {
  const ofLife = lives[life - 1] as SeenUplinks;
  if (lives.length > 1 && lives.some((other) => other !== ofLife && other.has(uplink))) return 'repeat';
  return ofLife.note(uplink, line);
}

/** The line of the uplink that a finding is about: the current line, or the line of an earlier uplink. */
function lineOf(lock: JudgedLock, about: UplinkKey | null, judged: UplinkEvent | null, line: number): number {
  if (about === null || (judged !== null && isAbout(about, judged))) return line;
  return lock.ownUplinks[(about.life ?? FIRST_LIFE) - 1]?.lineOf(about.boot, about.sequence) ?? line;
}

function isAbout({ life = FIRST_LIFE, boot, sequence }: UplinkKey, { life: judgedLife, uplink }: UplinkEvent): boolean {
  return uplink.sequence === sequence && uplink.boot === boot && (judgedLife ?? FIRST_LIFE) === life;
}
