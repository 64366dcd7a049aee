/**
 * What a trace tells of each lock, sorted out for those who make out what must have happened around it
 * (from-trace.ts): its uplinks in the order in which it made them, its connections, the commands that it was sent.
 */
import { Days } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { DisconnectCause } from '../../proto/power/judge/event.js';
import type { TraceEvent, TraceHeader, TraceLock, TraceWorld } from '../../proto/trace/trace.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { Command, CommandAck, Ping, Uplink } from '../../proto/wire/ping.js';
import { lifeOf, NO_MARKS } from '../../proto/wire/uplink-life.js';
import { readTruth, type Truth } from '../fleet/trace-truth.js';

/** The most events that are taken of one trace: they are all kept in memory, at some 500 bytes each. */
const MOST_EVENTS = 1_000_000;
/** The most locks that one trace makes. */
const MOST_LOCKS = 10_000;
/** An uplink cannot be older than this before the trace: its lock's clock was wrong (protocol.md §3, late data). */
const OLDEST_BEFORE = Days(30);

/** An uplink of the lock's own. Times are ms since the epoch. */
export interface Heard {
  readonly uplink: Uplink<Ping | CommandAck>;
  /** Which life of the lock it was made in (protocol.md §1). */
  readonly life: number;
  /** When it arrived. */
  readonly atMs: number;
  /** When it was made: by the lock's own clock, unless that can't be. */
  readonly madeMs: number;
  /** When the connection that it came on began; null where the trace knows of none. */
  readonly connectedMs: number | null;
}

export interface HeardLink {
  readonly connectedMs: number;
  /** Infinity where the trace ends before. */
  endedMs: number;
  cause: DisconnectCause | null;
  /** When the last uplink came on it, or it began. */
  lastMs: number;
}

export interface HeardCommand {
  readonly atMs: number;
  readonly id: number;
  readonly command: Command;
}

/** All that a trace tells of one lock. */
export interface LockRecord {
  readonly mac: Mac;
  /** As the header has it; undefined where it does not name the lock. */
  readonly named: TraceLock | undefined;
  /** In the order in which they were made, each once. */
  readonly uplinks: readonly Heard[];
  readonly links: readonly HeardLink[];
  readonly commands: readonly HeardCommand[];
  /** What truly happened, where the trace tells it. */
  readonly truths: readonly Truth[];
}

/** Where a trace begins and ends, and its locks. */
export interface TraceRecord {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly locks: readonly LockRecord[];
}

interface Draft {
  readonly marks: readonly number[];
  readonly uplinks: Heard[];
  readonly names: Set<string>;
  readonly links: HeardLink[];
  readonly commands: HeardCommand[];
  readonly truths: Truth[];
  open: HeardLink | null;
}

/** Takes the events of a trace, one after another. What phones did is passed over. */
export class LockRecordReader {
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
      throw new LockgateError('input-trace', `the trace has more than ${most} events: cut it in parts`);
    }
    this.#fromMs ??= event.atMs;
    this.#untilMs = event.atMs;
    if ('source' in event && event.source === 'phone') return;
    switch (event.event) {
      case 'connect':
        this.#connect(this.#lockOf(event.mac), event.atMs);
        break;
      case 'disconnect':
        endLink(this.#lockOf(event.mac), event.atMs, event.cause);
        break;
      case 'ping':
      case 'ack':
        this.#hear(this.#lockOf(event.mac), event.atMs, event.uplink);
        break;
      case 'command': {
        const { atMs, id, command } = event;
        this.#lockOf(event.mac).commands.push({ atMs, id, command });
        break;
      }
      case 'gateway':
        // No connection outlives the gateway.
        for (const lock of this.#locks.values()) endLink(lock, event.atMs, 'gateway');
        break;
      case 'world':
        this.#know(event);
        break;
      case 'tick':
        break;
    }
  }

  /** @throws LockgateError `input-trace` where there is no lock, or no event */
  end(): TraceRecord {
    if (this.#fromMs === null || this.#locks.size === 0)
      throw new LockgateError('input-trace', 'the trace has no event of a lock: expected at least one');
    const locks = [...this.#locks].map(([mac, { uplinks, links, commands, truths }]): LockRecord => {
      const named = this.#header.locks.get(mac);
      return { mac, named, uplinks: inOrderMade(uplinks), links, commands, truths };
    });
    return { fromMs: this.#fromMs, untilMs: this.#untilMs, locks };
  }

  #lockOf(mac: Mac): Draft {
    let lock = this.#locks.get(mac);
    if (lock === undefined) {
      if (this.#locks.size >= MOST_LOCKS) {
        const most = MOST_LOCKS.toLocaleString('en-US');
        throw new LockgateError('input-trace', `the trace has more than ${most} locks: take some out`);
      }
      const marks = this.#header.locks.get(mac)?.reflashed ?? NO_MARKS;
      lock = { marks, uplinks: [], names: new Set(), links: [], commands: [], truths: [], open: null };
      this.#locks.set(mac, lock);
    }
    return lock;
  }

  #connect(lock: Draft, atMs: number): void {
    endLink(lock, atMs, 'takeover');
    lock.open = { connectedMs: atMs, endedMs: Number.POSITIVE_INFINITY, cause: null, lastMs: atMs };
    lock.links.push(lock.open);
  }

  #hear(lock: Draft, atMs: number, uplink: Heard['uplink']): void {
    if (lock.open !== null) lock.open.lastMs = atMs;
    // The same uplink again tells nothing new.
    const life = lifeOf(lock.marks, uplink.timeMs, atMs);
    const name = `${life}/${uplink.boot}/${uplink.sequence}/${uplink.body.kind}`;
    if (lock.names.has(name)) return;
    lock.names.add(name);
    const fromMs = this.#fromMs ?? atMs;
    const isBelieved = uplink.timeMs <= atMs && uplink.timeMs > fromMs - OLDEST_BEFORE;
    const madeMs = isBelieved ? Math.max(uplink.timeMs, fromMs) : atMs;
    lock.uplinks.push({ uplink, life, atMs, madeMs, connectedMs: lock.open?.connectedMs ?? null });
  }

  #know(event: TraceWorld): void {
    if (event.mac === null) return;
    const truth = readTruth(event);
    if (!truth.ok) throw new LockgateError('input-trace', truth.error.message);
    this.#lockOf(event.mac).truths.push(truth.value);
  }
}

function endLink(lock: Draft, atMs: number, cause: DisconnectCause): void {
  if (lock.open === null) return;
  lock.open.endedMs = atMs;
  lock.open.cause = cause;
  lock.open = null;
}

/** By life, boot and sequence, and no moment before that of the uplink before. */
function inOrderMade(uplinks: readonly Heard[]): Heard[] {
  const sorted = uplinks.toSorted((one, other) => {
    return (
      one.life - other.life ||
      one.uplink.boot - other.uplink.boot ||
      one.uplink.sequence - other.uplink.sequence ||
      one.atMs - other.atMs
    );
  });
  let lastMs = Number.NEGATIVE_INFINITY;
  return sorted.map((heard) => {
    lastMs = Math.max(lastMs, heard.madeMs);
    return heard.madeMs === lastMs ? heard : { ...heard, madeMs: lastMs };
  });
}
