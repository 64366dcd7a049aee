/**
 * The record of one lock of a scenario: its pings in the order in which they were made, its connections and its
 * commands. The record is built from the lock's diary, the list of what the lock did. Expectations are checked against
 * this record, never against the gateway's records.
 */
import type { CommandResult, PingUplink, Source } from '../../proto/wire/ping.js';
import { type Command, isPingUplink } from '../../proto/wire/ping.js';
import type { DiaryEntry } from '../lock/diary.js';

/** A ping of a lock, or of a phone that acts for the lock. Times are the scenario's, ms since the epoch. */
export interface RecordedPing {
  readonly madeMs: number;
  readonly source: Source;
  readonly uplink: PingUplink;
  /** When the ping was acknowledged; null if it was not. */
  acknowledgedMs: number | null;
}

/** A connection of the lock. Times are the scenario's, ms since the epoch. */
export interface RecordedConnection {
  readonly fromMs: number;
  /** Infinity while it is open. */
  toMs: number;
}

/** A command that the lock has received. */
export interface RecordedCommand {
  readonly id: number;
  readonly type: Command['type'];
  readonly receivedMs: number;
  /** The command's result; null while the lock executes it. */
  result: CommandResult | null;
}

/** The record of one lock. */
export class LockRecord {
  readonly pings: RecordedPing[] = [];
  readonly connections: RecordedConnection[] = [];
  readonly commands: RecordedCommand[] = [];
  /** The number of uplinks that were discarded because the lock's buffer was full. */
  discarded = 0;
  readonly #unacknowledged = new Map<string, RecordedPing>();

  /** Adds an entry of the lock's diary. */
  addEntry(atMs: number, entry: DiaryEntry): void {
    switch (entry.type) {
      case 'connected':
        this.connections.push({ fromMs: atMs, toMs: Number.POSITIVE_INFINITY });
        break;
      case 'closed':
      case 'lost':
      case 'stopped':
        this.#endConnection(atMs);
        break;
      case 'acknowledged':
        this.#markAcknowledged(keyOf('lock', entry.uplink), atMs);
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
        this.#applyEffect(atMs, entry.effect);
        break;
      default:
        break;
    }
  }

  /** Adds a ping that a phone has sent for the lock. */
  phoneSent(atMs: number, uplink: PingUplink): void {
    this.#addPing('phone', atMs, uplink);
  }

  /** Adds the acknowledgement of a phone's ping. */
  phoneAcknowledged(atMs: number, uplink: PingUplink): void {
    this.#markAcknowledged(keyOf('phone', uplink), atMs);
  }

  /** The number of pings that are not acknowledged, without discarded pings. */
  get unacknowledged(): number {
    return this.#unacknowledged.size;
  }

  #applyEffect(atMs: number, effect: Extract<DiaryEntry, { type: 'did' }>['effect']): void {
    if (effect.type === 'made' && isPingUplink(effect.uplink)) this.#addPing('lock', atMs, effect.uplink);
    else if (effect.type === 'drop') this.#endConnection(atMs);
    else if (effect.type === 'discarded') {
      this.discarded += 1;
      this.#unacknowledged.delete(keyOf('lock', effect.uplink));
    } else if (effect.type === 'finished') {
      const command = this.commands.findLast(({ id }) => id === effect.commandId);
      if (command !== undefined) command.result = effect.result;
    }
  }

  #addPing(source: Source, madeMs: number, uplink: PingUplink): void {
    const ping: RecordedPing = { madeMs, source, uplink, acknowledgedMs: null };
    // A phone's timer may fire too late, after a later ping of the lock. So the ping is inserted by its scenario time.
    const index = this.pings.findLastIndex((other) => other.madeMs <= madeMs) + 1;
    this.pings.splice(index, 0, ping);
    this.#unacknowledged.set(keyOf(source, uplink), ping);
  }

  #markAcknowledged(key: string, atMs: number): void {
    const ping = this.#unacknowledged.get(key);
    if (ping === undefined) return;
    this.#unacknowledged.delete(key);
    ping.acknowledgedMs = atMs;
  }

  #endConnection(atMs: number): void {
    const last = this.connections.at(-1);
    if (last?.toMs === Number.POSITIVE_INFINITY) last.toMs = atMs;
  }
}

function keyOf(source: Source, { boot, sequence }: { readonly boot: number; readonly sequence: number }): string {
  return `${source} ${boot} ${sequence}`;
}

/** A ping's reason and type, in the syntax of expectations. */
export function pingText({ uplink: { body } }: RecordedPing): string {
  return body.kind === 'close_connection' ? body.reason : `${body.reason} ${body.kind}`;
}

/**
 * The pings of a lock as JSON texts that must be the same with and without a gateway. The texts omit what may differ:
 * times, the number of waiting uplinks, which depends on the network, and boot and sequence numbers. Sequence numbers
 * differ since a command that arrives twice is acknowledged twice.
 */
export function pingsWithoutTimes(pings: readonly RecordedPing[]): string[] {
  return pings.map(({ source, uplink: { boot: _boot, sequence: _sequence, timeMs: _time, kept: _kept, ...rest } }) => {
    return JSON.stringify({ source, ...rest });
  });
}
