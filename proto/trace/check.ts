/**
 * Judges a whole trace (protocol.md §4): each file alone, each event first a tick of its time for every lock, the
 * gateway listening from the first event.
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

/** A finding, and the line it is about. */
export interface TraceFinding {
  readonly line: number;
  /** As we print it. */
  readonly mac: string;
  readonly rule: RuleName;
  readonly severity: Severity;
  readonly message: string;
}

/** What stands of one lock while its trace is read. */
interface JudgedLock extends Due {
  readonly belief: Belief;
  readonly marks: readonly number[];
  /** Of its own uplinks, by life, from the first on. */
  readonly own: SeenUplinks[];
  readonly phones: SeenUplinks;
}

/** See the head of this file. It is given the events of one trace, in order. */
export class TraceCheck {
  readonly #model: PowerModel;
  readonly #header: TraceHeader;
  readonly #coverage: Coverage | null;
  readonly #locks = new Map<Mac, JudgedLock>();
  readonly #deadlines = new Deadlines<JudgedLock>();
  readonly #bound = new SeenUplinksBound();
  readonly #out: Verdict = newVerdict();
  readonly #findings = new Set<TraceFinding>();
  readonly #withdrawn: TraceFinding[] = [];
  readonly #withdrawable = new Map<string, TraceFinding>();
  #listeningSinceMs: number | null = null;
  #hasBegun = false;
  #pings = 0;

  /** @param withCoverage whether to count pings by state, trigger and reason */
  constructor(model: PowerModel, header: TraceHeader, withCoverage = false) {
    this.#model = model;
    this.#header = header;
    this.#coverage = withCoverage ? new Coverage(model) : null;
  }

  /** How many pings were judged, phones' included. */
  get pings(): number {
    return this.#pings;
  }

  /** How many locks the header or an event names. */
  get locks(): number {
    return this.#hasBegun ? this.#locks.size : this.#header.locks.size;
  }

  /** What was found and not withdrawn, in the order of the lines it is about. */
  findings(): TraceFinding[] {
    return [...this.#findings].sort((a, b) => a.line - b.line);
  }

  /** What was found and later explained away, in the order of the withdrawals: who listens live hears of it once. */
  withdrawn(): readonly TraceFinding[] {
    return this.#withdrawn;
  }

  /** Null where it was not asked for. */
  coverage(): CoverageCell[] | null {
    return this.#coverage?.cells() ?? null;
  }

  /** Judges the event of a line. */
  judge(event: TraceEvent, line: number): void {
    if (!this.#hasBegun) this.#begin(event);
    if (this.#deadlines.firstMs < event.atMs) this.#tick(event.atMs, line);
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
    const { power, highWindow, lockState, connected, lastPeriodMs, reflashed } =
      this.#header.locks.get(mac) ?? UNNAMED_LOCK;
    const marks = reflashed ?? NO_MARKS;
    const belief = newBelief(this.#model, formatMac(mac), atMs, {
      power,
      highWindow: highWindow ?? this.#model.highWindow,
      lockState,
      isConnected: connected,
      lastPeriodMs,
      listeningSinceMs: this.#listeningSinceMs,
    });
    const lock: JudgedLock = {
      belief,
      marks,
      own: Array.from({ length: 1 + marks.length }, () => new SeenUplinks(this.#bound)),
      phones: new SeenUplinks(this.#bound),
      dueMs: 0,
    };
    this.#locks.set(mac, lock);
    this.#deadlines.set(lock, belief.dueMs);
    return lock;
  }

  /** A tick for every lock for which something may have become due. */
  #tick(atMs: number, line: number): void {
    for (let lock = this.#deadlines.take(atMs); lock !== undefined; lock = this.#deadlines.take(atMs)) {
      judgeInPlace(this.#model, lock.belief, { type: 'tick', atMs }, this.#out);
      this.#deadlines.set(lock, lock.belief.dueMs);
      this.#collect(lock, null, line);
    }
  }

  #judgeUplink(event: TracePing | TraceAck, line: number): void {
    const { mac, source, atMs, uplink } = event;
    const lock = this.#locks.get(mac) ?? this.#newLock(mac, atMs);
    const isOfLives = source === 'lock' && lock.marks.length > 0;
    const life = isOfLives ? lifeOf(lock.marks, uplink.timeMs, atMs) : FIRST_LIFE;
    const copy = source === 'lock' ? copyIn(lock.own, life, uplink, line) : lock.phones.note(uplink, line);
    if (event.event === 'ping') this.#notePing(event);
    // A trace does not name credentials: all of the lock's own are one, and a phone's never meet the lock's.
    const judged: UplinkEvent = { type: 'uplink', source, atMs, credential: 0, life, copy, uplink };
    judgeInPlace(this.#model, lock.belief, judged, this.#out);
    this.#after(lock, judged, line);
  }

  #notePing({ source, uplink }: TracePing): void {
    this.#pings += 1;
    if (this.#coverage === null || source === 'phone') return;
    const { state } = stateRow(this.#model, uplink.power, uplink.body.batteryPercent);
    this.#coverage.note(state, uplink.body);
  }

  #apply(mac: Mac, event: JudgeEvent, line: number): void {
    const lock = this.#locks.get(mac) ?? this.#newLock(mac, event.atMs);
    judgeInPlace(this.#model, lock.belief, event, this.#out);
    this.#after(lock, null, line);
  }

  #after(lock: JudgedLock, judged: UplinkEvent | null, line: number): void {
    if (lock.belief.dueMs < lock.dueMs) this.#deadlines.set(lock, lock.belief.dueMs);
    if (this.#out.findings.length > 0 || this.#out.withdrawn.length > 0) this.#collect(lock, judged, line);
  }

  #collect(lock: JudgedLock, judged: UplinkEvent | null, line: number): void {
    for (const { mac, rule, about } of this.#out.withdrawn) {
      const key = keyOf(mac, rule, about);
      const standing = this.#withdrawable.get(key);
      if (standing !== undefined) {
        this.#findings.delete(standing);
        this.#withdrawn.push(standing);
      }
      this.#withdrawable.delete(key);
    }
    for (const found of this.#out.findings) this.#keep(found, lineOf(lock, found.about, judged, line));
    this.#out.withdrawn.length = 0;
    this.#out.findings.length = 0;
  }

  #keep({ mac, rule, severity, message, about }: Finding, line: number): void {
    const standing: TraceFinding = { line, mac, rule, severity, message };
    this.#findings.add(standing);
    if (about !== null && WITHDRAWABLE.has(rule)) this.#withdrawable.set(keyOf(mac, rule, about), standing);
  }
}

/** The rules that rest on uplinks before, so that a late one may explain a finding away. */
const WITHDRAWABLE: ReadonlySet<RuleName> = new Set([
  'airplane-silence',
  'boot-back',
  'period-too-soon',
  'state-unchanged',
]);

function keyOf(mac: string, rule: RuleName, about: UplinkKey): string {
  return `${rule} ${mac} ${about.life ?? FIRST_LIFE} ${about.boot} ${about.sequence}`;
}

/** What is known under the name with the same content in any life is that uplink (protocol.md §1). */
function copyIn(lives: readonly SeenUplinks[], life: number, uplink: Uplink, line: number): UplinkCopy {
  const names = lives[life - 1] as SeenUplinks;
  if (lives.length > 1 && lives.some((other) => other !== names && other.has(uplink))) return 'repeat';
  return names.note(uplink, line);
}

/** The line of the uplink that a finding is about: this one's, or the one where an earlier uplink stood. */
function lineOf(lock: JudgedLock, about: UplinkKey | null, judged: UplinkEvent | null, line: number): number {
  if (about === null || (judged !== null && isAbout(about, judged))) return line;
  return lock.own[(about.life ?? FIRST_LIFE) - 1]?.lineOf(about.boot, about.sequence) ?? line;
}

function isAbout({ life = FIRST_LIFE, boot, sequence }: UplinkKey, { life: judgedLife, uplink }: UplinkEvent): boolean {
  return uplink.sequence === sequence && uplink.boot === boot && (judgedLife ?? FIRST_LIFE) === life;
}
