/**
 * The content of a trace, sorted by lock for the inference (from-trace.ts): uplinks in the order in which the lock made
 * them, connections, commands, and ground truth.
 */
import { Days } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { DisconnectCause } from '../../proto/power/judge/event.js';
import type { TraceEvent, TraceHeader, TraceLock, TraceWorld } from '../../proto/trace/trace.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Command, CommandAck, Ping, Uplink } from '../../proto/wire/ping.js';
import { lifeOf, NO_MARKS } from '../../proto/wire/uplink-life.js';
import { type GroundTruth, readGroundTruth } from '../trace/ground-truth.js';

/** The most events of one trace: all of them are held in memory, at some 500 bytes each. */
const MOST_EVENTS = 1_000_000;
/** The most locks of one trace. */
const MOST_LOCKS = 10_000;
/**
 * An uplink with a time earlier than this before the trace comes from a lock with a wrong clock (protocol.md §3, late
 * data).
 */
const OLDEST_BEFORE = Days(30);

/** An uplink of the lock itself. Times are ms since the epoch. */
export interface TracedUplink {
  readonly uplink: Uplink<Ping | CommandAck>;
  /** The life of the lock in which it was made (protocol.md §1). */
  readonly life: number;
  /** When it arrived. */
  readonly atMs: number;
  /** When it was made: by the lock's clock, unless that is impossible. */
  readonly madeMs: number;
  /** When its connection started; null where the trace has none. */
  readonly connectedMs: number | null;
}

export interface TracedConnection {
  readonly connectedMs: number;
  /** Infinity where the trace ends first. */
  endedMs: number;
  cause: DisconnectCause | null;
  /** When its last uplink arrived, or else the connection started. */
  lastMs: number;
}

export interface TracedCommand {
  readonly atMs: number;
  readonly id: number;
  readonly command: Command;
}

/** Everything in a trace about one lock. */
export interface LockTrace {
  readonly mac: Mac;
  /** The lock's entry in the header; undefined where it has none. */
  readonly header: TraceLock | undefined;
  /** In the order in which they were made, without repeats. */
  readonly uplinks: readonly TracedUplink[];
  readonly connections: readonly TracedConnection[];
  readonly commands: readonly TracedCommand[];
  /** What truly happened, where the trace has `world` events. */
  readonly groundTruth: readonly GroundTruth[];
}

/** A trace by lock, and when it starts and ends. */
export interface LockTraces {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly locks: readonly LockTrace[];
}

interface Draft {
  readonly marks: readonly number[];
  readonly uplinks: TracedUplink[];
  readonly keys: Set<string>;
  readonly connections: TracedConnection[];
  readonly commands: TracedCommand[];
  readonly groundTruth: GroundTruth[];
  open: TracedConnection | null;
}

/** Takes the events of a trace, one after another. Phones' events are ignored. */
export class LockTraceReader {
  readonly #header: TraceHeader;
  readonly #locks = new Map<Mac, Draft>();
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
    if (this.#events > MOST_EVENTS) {
      const most = MOST_EVENTS.toLocaleString('en-US');
      throw new LockgateError('input-trace', `the trace has more than ${most} events: split it`);
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

  /** @throws LockgateError `input-trace` where there is no lock, or no event */
  end(): LockTraces {
    if (this.#fromMs === null || this.#locks.size === 0)
      throw new LockgateError('input-trace', 'the trace has no event of a lock: expected at least one');
    const locks = [...this.#locks].map(([mac, { uplinks, connections, commands, groundTruth }]): LockTrace => {
      const header = this.#header.locks.get(mac);
      return { mac, header, uplinks: inOrderMade(uplinks), connections, commands, groundTruth };
    });
    return { fromMs: this.#fromMs, untilMs: this.#untilMs, locks };
  }

  #lockOf(mac: Mac): Draft {
    let lock = this.#locks.get(mac);
    if (lock === undefined) {
      if (this.#locks.size >= MOST_LOCKS) {
        const most = MOST_LOCKS.toLocaleString('en-US');
        throw new LockgateError('input-trace', `the trace has more than ${most} locks: remove some`);
      }
      const marks = this.#header.locks.get(mac)?.reflashed ?? NO_MARKS;
      lock = { marks, uplinks: [], keys: new Set(), connections: [], commands: [], groundTruth: [], open: null };
      this.#locks.set(mac, lock);
    }
    return lock;
  }

  #connect(lock: Draft, atMs: number): void {
    endConnection(lock, atMs, 'takeover');
    lock.open = { connectedMs: atMs, endedMs: Number.POSITIVE_INFINITY, cause: null, lastMs: atMs };
    lock.connections.push(lock.open);
  }

  #addUplink(lock: Draft, atMs: number, uplink: TracedUplink['uplink']): void {
    if (lock.open !== null) lock.open.lastMs = atMs;
    // A repeat of an uplink has no new information.
    const life = lifeOf(lock.marks, uplink.timeMs, atMs);
    const key = `${life}/${uplink.boot}/${uplink.sequence}/${uplink.body.kind}`;
    if (lock.keys.has(key)) return;
    lock.keys.add(key);
    const fromMs = this.#fromMs ?? atMs;
    const isBelieved = uplink.timeMs <= atMs && uplink.timeMs > fromMs - OLDEST_BEFORE;
    const madeMs = isBelieved ? Math.max(uplink.timeMs, fromMs) : atMs;
    lock.uplinks.push({ uplink, life, atMs, madeMs, connectedMs: lock.open?.connectedMs ?? null });
  }

  #addGroundTruth(event: TraceWorld): void {
    if (event.mac === null) return;
    const read = readGroundTruth(event);
    if (!read.ok) throw new LockgateError('input-trace', read.error.message);
    this.#lockOf(event.mac).groundTruth.push(read.value);
  }
}

function endConnection(lock: Draft, atMs: number, cause: DisconnectCause): void {
  if (lock.open === null) return;
  lock.open.endedMs = atMs;
  lock.open.cause = cause;
  lock.open = null;
}

/** By life, boot and sequence; no uplink is made before its predecessor. */
function inOrderMade(uplinks: readonly TracedUplink[]): TracedUplink[] {
  const sorted = uplinks.toSorted((one, other) => {
    return (
      one.life - other.life ||
      one.uplink.boot - other.uplink.boot ||
      one.uplink.sequence - other.uplink.sequence ||
      one.atMs - other.atMs
    );
  });
  let lastMs = Number.NEGATIVE_INFINITY;
  return sorted.map((traced) => {
    lastMs = Math.max(lastMs, traced.madeMs);
    return traced.madeMs === lastMs ? traced : { ...traced, madeMs: lastMs };
  });
}
