/**
 * What the locks of a scenario wrote down of themselves, kept by lock for the expectations: uplinks in the order in
 * which they were made, connections, commands. Checkers read this, never the gateway's word.
 */
import type { CommandResult, PingUplink, Source } from '../../proto/wire/ping.js';
import { type Command, isPingUplink } from '../../proto/wire/ping.js';
import type { DiaryEntry } from '../lock/diary.js';

/** A ping that a lock made, or a phone that acts for it. Times are the scenario's, ms since the epoch. */
export interface RecordedPing {
  readonly madeMs: number;
  readonly source: Source;
  readonly uplink: PingUplink;
  /** When the other side had it for good; null where that never came. */
  acknowledgedMs: number | null;
}

export interface RecordedConnection {
  readonly fromMs: number;
  /** Infinity while it stands. */
  toMs: number;
}

export interface RecordedCommand {
  readonly id: number;
  readonly type: Command['type'];
  readonly receivedMs: number;
  /** What came of it; null while it is carried out. */
  result: CommandResult | null;
}

/** What one lock wrote down. */
export class LockRecord {
  readonly pings: RecordedPing[] = [];
  readonly connections: RecordedConnection[] = [];
  readonly commands: RecordedCommand[] = [];
  /** How many uplinks its buffer's limit has cost. */
  discarded = 0;
  readonly #waiting = new Map<string, RecordedPing>();

  /** Takes a line of the lock's diary. */
  note(atMs: number, entry: DiaryEntry): void {
    switch (entry.type) {
      case 'connected':
        this.connections.push({ fromMs: atMs, toMs: Number.POSITIVE_INFINITY });
        break;
      case 'closed':
      case 'lost':
      case 'stopped':
        this.#ends(atMs);
        break;
      case 'acknowledged':
        this.#acknowledged(nameOf('lock', entry.uplink), atMs);
        break;
      case 'received':
        this.commands.push({
          id: entry.downlink.id,
          type: entry.downlink.command.type,
          receivedMs: atMs,
          result: null,
        });
        break;
      case 'did':
        this.#did(atMs, entry.effect);
        break;
      default:
        break;
    }
  }

  /** Takes what a phone sent for the lock. */
  phoneSent(atMs: number, uplink: PingUplink): void {
    this.#made('phone', atMs, uplink);
  }

  /** Takes that the other side has it. */
  phoneAcknowledged(atMs: number, uplink: PingUplink): void {
    this.#acknowledged(nameOf('phone', uplink), atMs);
  }

  /** How many pings nobody has acknowledged, but those that the buffer's limit has cost. */
  get unacknowledged(): number {
    return this.#waiting.size;
  }

  #did(atMs: number, effect: Extract<DiaryEntry, { type: 'did' }>['effect']): void {
    if (effect.type === 'made' && isPingUplink(effect.uplink)) this.#made('lock', atMs, effect.uplink);
    else if (effect.type === 'drop') this.#ends(atMs);
    else if (effect.type === 'discarded') {
      this.discarded += 1;
      this.#waiting.delete(nameOf('lock', effect.uplink));
    } else if (effect.type === 'finished') {
      const command = this.commands.findLast(({ id }) => id === effect.commandId);
      if (command !== undefined) command.result = effect.result;
    }
  }

  #made(source: Source, madeMs: number, uplink: PingUplink): void {
    const ping: RecordedPing = { madeMs, source, uplink, acknowledgedMs: null };
    // A phone's timer may ring after the lock's own although it was set for before: the scenario's time counts.
    const later = this.pings.findLastIndex((other) => other.madeMs <= madeMs) + 1;
    this.pings.splice(later, 0, ping);
    this.#waiting.set(nameOf(source, uplink), ping);
  }

  #acknowledged(name: string, atMs: number): void {
    const ping = this.#waiting.get(name);
    if (ping === undefined) return;
    this.#waiting.delete(name);
    ping.acknowledgedMs = atMs;
  }

  #ends(atMs: number): void {
    const last = this.connections.at(-1);
    if (last?.toMs === Number.POSITIVE_INFINITY) last.toMs = atMs;
  }
}

function nameOf(source: Source, { boot, sequence }: { readonly boot: number; readonly sequence: number }): string {
  return `${source} ${boot} ${sequence}`;
}

/** A ping's reason and type, as expectations name it. */
export function pingText({ uplink: { body } }: RecordedPing): string {
  return body.kind === 'close_connection' ? body.reason : `${body.reason} ${body.kind}`;
}

/**
 * The pings of a lock, times aside: what must be the same with and without a gateway. How many wait is not in it, since
 * that is the line's doing; nor are the numbers, since a command that came twice is acknowledged twice, and what says
 * so is numbered too.
 */
export function pingsTimesAside(pings: readonly RecordedPing[]): string[] {
  return pings.map(({ source, uplink: { boot: _boot, sequence: _sequence, timeMs: _time, kept: _kept, ...rest } }) => {
    return JSON.stringify({ source, ...rest });
  });
}
