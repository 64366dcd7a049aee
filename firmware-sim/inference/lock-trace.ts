/**
 * Sorts the events of a trace by lock, for the inference (from-trace.ts): uplinks in the order in which the lock made
 * them, connections, commands, and ground truth (what truly happened, if the trace has `world` events). This file
 * infers no events. Does no I/O.
 */
import { Days } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { DisconnectCause } from '../../proto/power/judge/event.js';
import { type GroundTruth, readGroundTruth } from '../../proto/trace/ground-truth.js';
import type { TraceEvent, TraceHeader, TraceLock, TraceWorld } from '../../proto/trace/trace.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Command, CommandAck, Ping, Uplink } from '../../proto/wire/ping.js';
import { lifeOf, NO_MARKS } from '../../proto/wire/uplink-life.js';

/** Maximum number of events of one trace. All events are held in memory, with about 500 bytes each. */
const MAX_EVENTS = 1_000_000;
/** Maximum number of locks of one trace. */
const MAX_LOCKS = 10_000;
/** If an uplink was made longer before the trace than this, its clock was wrong (protocol.md §3, late data). */
const MAX_AGE_BEFORE_TRACE_MS = Days(30);

/** An uplink of the lock, not of a phone. Times are ms since the epoch. */
export interface TracedUplink {
  readonly uplink: Uplink<Ping | CommandAck>;
  /** The number of the lock's life: a reflash that resets the boot counter starts a new life (protocol.md §1). */
  readonly life: number;
  /** When the uplink arrived. */
  readonly atMs: number;
  /** When the uplink was made, by the lock's clock; the arrival if the lock's clock is implausible. */
  readonly madeMs: number;
  /** When the connection of the uplink started; null if the trace has no such connection. */
  readonly connectedMs: number | null;
}

/** A connection of the lock. Times are ms since the epoch. */
export interface TracedConnection {
  readonly connectedMs: number;
  /** Infinity if the trace ends first. */
  endedMs: number;
  cause: DisconnectCause | null;
  /** When the last uplink of the connection arrived; before the first, when the connection started. */
  lastActivityMs: number;
}

/** A command that the gateway sent to the lock. */
export interface TracedCommand {
  /** When it was sent, ms since the epoch. */
  readonly atMs: number;
  readonly id: number;
  readonly command: Command;
}

/** Everything in a trace about one lock. */
export interface LockTrace {
  readonly mac: Mac;
  /** The lock's entry in the trace's header, if there is one. */
  readonly header: TraceLock | undefined;
  /** In the order in which the lock made them, without repeats. */
  readonly uplinks: readonly TracedUplink[];
  readonly connections: readonly TracedConnection[];
  readonly commands: readonly TracedCommand[];
  /** What truly happened; empty for a trace without `world` events. */
  readonly groundTruth: readonly GroundTruth[];
}

/** The start and end of a trace, and its content by lock. */
export interface LockTraces {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly locks: readonly LockTrace[];
}

/** The events of one lock so far. */
interface LockDraft {
  /** When the lock was reflashed, ms since the epoch. */
  readonly reflashMarks: readonly number[];
  readonly uplinks: TracedUplink[];
  /** The keys of the uplinks, to recognise repeats. */
  readonly keys: Set<string>;
  readonly connections: TracedConnection[];
  readonly commands: TracedCommand[];
  readonly groundTruth: GroundTruth[];
  /** The connection whose end has not been read yet; null if there is none. */
  openConnection: TracedConnection | null;
}

/** Takes the events of a trace, one after another. Phones' events are ignored. */
export class LockTraceReader {
  readonly #header: TraceHeader;
  readonly #locks = new Map<Mac, LockDraft>();
  #fromMs: number | null = null;
  #untilMs = 0;
  #events = 0;

  constructor(header: TraceHeader) {
    this.#header = header;
    for (const mac of header.locks.keys()) this.#lockOf(mac);
  }

  /** @throws LockgateError `input-trace` for a trace that is too long, or a `world` event that can't be read */
  add(event: TraceEvent): void {
    this.#events += 1;
    if (this.#events > MAX_EVENTS) {
      const limit = MAX_EVENTS.toLocaleString('en-US');
      throw new LockgateError('input-trace', `the trace has more than ${limit} events: split it`);
    }
    this.#fromMs ??= event.atMs;
    this.#untilMs = event.atMs;
    if ('source' in event && event.source === 'phone') return;
    switch (event.event) {
      case 'connect':
        this.#connect(this.#lockOf(event.mac), event.atMs);
        break;
      case 'disconnect':
        endConnection(this.#lockOf(event.mac), event.atMs, event.cause);
        break;
      case 'ping':
      case 'ack':
        this.#addUplink(this.#lockOf(event.mac), event.atMs, event.uplink);
        break;
      case 'command': {
        const { atMs, id, command } = event;
        this.#lockOf(event.mac).commands.push({ atMs, id, command });
        break;
      }
      case 'gateway':
        // No connection survives a restart of the gateway.
        for (const lock of this.#locks.values()) endConnection(lock, event.atMs, 'gateway');
        break;
      case 'world':
        this.#addGroundTruth(event);
        break;
      case 'tick':
        break;
    }
  }

  /** @throws LockgateError `input-trace` if the trace has no lock or no event */
  end(): LockTraces {
    if (this.#fromMs === null || this.#locks.size === 0)
      throw new LockgateError('input-trace', 'the trace has no event of a lock: expected at least one');
    const locks = [...this.#locks].map(([mac, { uplinks, connections, commands, groundTruth }]): LockTrace => {
      const header = this.#header.locks.get(mac);
      return { mac, header, uplinks: sortByCreation(uplinks), connections, commands, groundTruth };
    });
    return { fromMs: this.#fromMs, untilMs: this.#untilMs, locks };
  }

  #lockOf(mac: Mac): LockDraft {
    let lock = this.#locks.get(mac);
    if (lock === undefined) {
      if (this.#locks.size >= MAX_LOCKS) {
        const limit = MAX_LOCKS.toLocaleString('en-US');
        throw new LockgateError('input-trace', `the trace has more than ${limit} locks: remove some`);
      }
      const reflashMarks = this.#header.locks.get(mac)?.reflashed ?? NO_MARKS;
      lock = {
        reflashMarks,
        uplinks: [],
        keys: new Set(),
        connections: [],
        commands: [],
        groundTruth: [],
        openConnection: null,
      };
      this.#locks.set(mac, lock);
    }
    return lock;
  }

  #connect(lock: LockDraft, atMs: number): void {
    endConnection(lock, atMs, 'takeover');
    lock.openConnection = { connectedMs: atMs, endedMs: Number.POSITIVE_INFINITY, cause: null, lastActivityMs: atMs };
    lock.connections.push(lock.openConnection);
  }

  #addUplink(lock: LockDraft, atMs: number, uplink: TracedUplink['uplink']): void {
    if (lock.openConnection !== null) lock.openConnection.lastActivityMs = atMs;
    const life = lifeOf(lock.reflashMarks, uplink.timeMs, atMs);
    // With the kind, since an acknowledgement and a ping with the same numbers are two uplinks of a faulty lock.
    const key = `${life}/${uplink.boot}/${uplink.sequence}/${uplink.body.kind}`;
    // A repeated uplink has no new information.
    if (lock.keys.has(key)) return;
    lock.keys.add(key);
    const fromMs = this.#fromMs ?? atMs;
    const isPlausible = uplink.timeMs <= atMs && uplink.timeMs > fromMs - MAX_AGE_BEFORE_TRACE_MS;
    const madeMs = isPlausible ? Math.max(uplink.timeMs, fromMs) : atMs;
    lock.uplinks.push({ uplink, life, atMs, madeMs, connectedMs: lock.openConnection?.connectedMs ?? null });
  }

  #addGroundTruth(event: TraceWorld): void {
    if (event.mac === null) return;
    const read = readGroundTruth(event);
    if (!read.ok) throw new LockgateError('input-trace', read.error.message);
    const { changes, ...truth } = read.value;
    const boot = changes.find(({ type }) => type === 'boot');
    // A boot event also states coverage, sky and battery, which a boot does not change.
    this.#lockOf(event.mac).groundTruth.push({ ...truth, changes: boot === undefined ? changes : [boot] });
  }
}

function endConnection(lock: LockDraft, atMs: number, cause: DisconnectCause): void {
  if (lock.openConnection === null) return;
  lock.openConnection.endedMs = atMs;
  lock.openConnection.cause = cause;
  lock.openConnection = null;
}

/** Sorts by life, boot and sequence, and corrects times so that no uplink is made before its predecessor. */
function sortByCreation(uplinks: readonly TracedUplink[]): TracedUplink[] {
  const sorted = uplinks.toSorted((a, b) => {
    return a.life - b.life || a.uplink.boot - b.uplink.boot || a.uplink.sequence - b.uplink.sequence || a.atMs - b.atMs;
  });
  let latestMs = Number.NEGATIVE_INFINITY;
  return sorted.map((traced) => {
    latestMs = Math.max(latestMs, traced.madeMs);
    return traced.madeMs === latestMs ? traced : { ...traced, madeMs: latestMs };
  });
}
