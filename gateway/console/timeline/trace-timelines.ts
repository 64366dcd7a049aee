/**
 * Collects from a trace what the timelines of its locks show (timeline-data.ts): power states, connections, pings and
 * commands. `trace check --format html` and the page that checks a dropped trace use it. Memory is bounded: if a lock
 * has many pings, only every second (fourth, eighth, …) is stored, and only the first locks of a large fleet have a
 * timeline. Does no I/O: the caller passes the header and each event in order.
 */
import { stateRow } from '../../../proto/power/judge/state.js';
import type { PowerModel, StateRow } from '../../../proto/power/model.js';
import {
  type TraceAck,
  type TraceCommand,
  type TraceDisconnect,
  type TraceEvent,
  type TraceHeader,
  type TracePing,
  UNNAMED_LOCK,
} from '../../../proto/trace/trace.js';
import { formatMac, type Mac } from '../../../proto/wire/mac.js';
import type { EnteredState, TimelineData, TimelineFinding, TimelinePing, TimelineSpan } from './timeline-data.js';

/** The maximum number of locks with a timeline. */
const MAX_LOCKS = 2000;
/** The maximum number of pings stored per lock. */
const MAX_PINGS = 400;
/** The maximum number of changes of state, of connections and of commands stored per lock. */
const MAX_STATES = 200;
const MAX_SPANS = 200;
/** Assumed for a lock that has not reported its battery: not low, since a low battery is a state. */
const UNKNOWN_BATTERY_PERCENT = 100;

/** A span that may still be open. */
type OpenSpan = { -readonly [Member in keyof TimelineSpan]: TimelineSpan[Member] };

/** One lock's timeline, as far as the trace has been read. */
export class LockTimeline {
  readonly mac: string;
  readonly states: EnteredState[] = [];
  readonly connections: OpenSpan[] = [];
  readonly commands: OpenSpan[] = [];
  /** Every {@link stride}th ping. */
  pings: TimelinePing[] = [];
  /** Doubled whenever {@link pings} is full. */
  stride = 1;
  pingCount = 0;
  /** Whether changes of state beyond the maximum were dropped. */
  hasMoreStates = false;
  #batteryPercent = UNKNOWN_BATTERY_PERCENT;

  constructor(mac: string) {
    this.mac = mac;
  }

  /** The timeline with the findings of the check. */
  data(findings: readonly TimelineFinding[]): TimelineData {
    const { mac, states, connections, pings, pingCount, commands } = this;
    return { mac, states, connections, pings, pingCount, commands, deliveries: [], findings };
  }

  /** @param line the number of the event's line in the trace */
  notePing(model: PowerModel, { atMs, uplink }: TracePing, line: number): void {
    const { body, power } = uplink;
    this.#batteryPercent = body.batteryPercent;
    this.enter(atMs, stateRow(model, power, this.#batteryPercent));
    this.pingCount += 1;
    if (this.pingCount % this.stride !== 0) return;
    this.pings.push({ atMs, reason: body.reason, id: String(line), title: `${body.reason}, line ${line}` });
    if (this.pings.length <= MAX_PINGS) return;
    // Those whose number is a multiple of the doubled stride stay: the list began with the first multiple, at index 0.
    this.pings = this.pings.filter((_, index) => index % 2 === 1);
    this.stride *= 2;
  }

  noteAck(model: PowerModel, { atMs, uplink }: TraceAck): void {
    this.enter(atMs, stateRow(model, uplink.power, this.#batteryPercent));
    const { commandId: id, result } = uplink.body;
    const command = this.commands.findLast((span) => span.id === String(id) && span.toMs === null);
    if (command === undefined) return;
    command.toMs = atMs;
    command.outcome = result === 'ok' ? 'good' : 'bad';
    command.title += `: ${result}`;
  }

  noteCommand({ atMs, id, command }: TraceCommand): void {
    if (this.commands.length >= MAX_SPANS) return;
    this.commands.push({ fromMs: atMs, toMs: null, outcome: 'open', id: String(id), title: `command ${command.type}` });
  }

  noteConnect(atMs: number): void {
    const last = this.connections.at(-1);
    if (last !== undefined && last.toMs === null) last.toMs = atMs;
    if (this.connections.length >= MAX_SPANS) return;
    this.connections.push({ fromMs: atMs, toMs: null, outcome: 'open', id: null, title: 'connected' });
  }

  noteDisconnect({ atMs, cause }: TraceDisconnect): void {
    const last = this.connections.at(-1);
    if (last === undefined || last.toMs !== null) return;
    last.toMs = atMs;
    last.outcome = cause === 'closed' ? 'good' : 'bad';
    last.title = `connected, ended by ${cause}`;
  }

  /** Notes that the lock is in a state. @param row the state's row in the power model's table */
  enter(atMs: number, row: StateRow): void {
    if (this.states.at(-1)?.row.state === row.state) return;
    if (this.states.length < MAX_STATES) this.states.push({ atMs, row });
    else this.hasMoreStates = true;
  }
}

/** Collects the timelines of a trace's locks while the trace is checked. */
export class TraceTimelines {
  /** The times of the trace's first and last event, ms since the epoch; NaN until there is one. */
  fromMs = Number.NaN;
  toMs = Number.NaN;
  readonly #model: PowerModel;
  readonly #locks = new Map<Mac, LockTimeline>();
  /** The locks of the trace's header, with their settings before the first event. */
  #headerLocks: TraceHeader['locks'] = new Map();

  constructor(model: PowerModel) {
    this.#model = model;
  }

  get locks(): readonly LockTimeline[] {
    return [...this.#locks.values()];
  }

  /** Takes the trace's header, before its first event. */
  header({ locks }: TraceHeader): void {
    this.#headerLocks = locks;
  }

  /** Adds the event of a line. Phones' events are left out: they carry no power state of the lock. */
  event(event: TraceEvent, line: number): void {
    if (Number.isNaN(this.fromMs)) this.#start(event.atMs);
    this.toMs = event.atMs;
    if (!('mac' in event) || event.mac === null) return;
    if ('source' in event && event.source !== 'lock') return;
    const lock = this.#lockOf(event.mac);
    if (lock === undefined) return;
    if (event.event === 'ping') lock.notePing(this.#model, event, line);
    else if (event.event === 'ack') lock.noteAck(this.#model, event);
    else if (event.event === 'command') lock.noteCommand(event);
    else if (event.event === 'connect') lock.noteConnect(event.atMs);
    else if (event.event === 'disconnect') lock.noteDisconnect(event);
  }

  #start(atMs: number): void {
    this.fromMs = atMs;
    for (const mac of this.#headerLocks.keys()) this.#lockOf(mac);
  }

  /** The lock's timeline, which is made at its first use; undefined if there are too many locks. */
  #lockOf(mac: Mac): LockTimeline | undefined {
    const known = this.#locks.get(mac);
    if (known !== undefined || this.#locks.size >= MAX_LOCKS) return known;
    const added = new LockTimeline(formatMac(mac));
    const { power } = this.#headerLocks.get(mac) ?? UNNAMED_LOCK;
    added.enter(this.fromMs, stateRow(this.#model, power, UNKNOWN_BATTERY_PERCENT));
    this.#locks.set(mac, added);
    return added;
  }
}
