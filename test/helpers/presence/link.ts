/**
 * A line between a simulated lock and a gateway's ingest, in one process and on one clock: what MQTT and the broker do,
 * without sockets. It writes down what truly happened, but only what the gateway has kept: a connection or an uplink
 * that a crash took from it has not happened for anybody.
 */
import type { Link, LinkEvents } from '../../../firmware-sim/link/link.js';
import type { VirtualClock } from '../../../firmware-sim/virtual-clock.js';
import type { Ingest, Sender } from '../../../gateway/ingest/ingest.js';
import { Hours, Seconds } from '../../../proto/clock.js';
import type { DisconnectCause } from '../../../proto/power/judge/event.js';
import { encodeUplink } from '../../../proto/wire/codec.js';
import type { Command, Downlink, Uplink } from '../../../proto/wire/ping.js';
import type { Fact } from './truth.js';

/** After 1.5 times the keepalive a broker gives a connection up (MQTT 3.1.1 §3.1.2.10). */
const KEEPALIVE_ENDS = Seconds(450);
const COMMAND_EXPIRES = Hours(24);

/** The gateway as the line sees it: the ingest, while there is one. */
export interface Switchboard {
  readonly clock: VirtualClock;
  ingest: Ingest | undefined;
  /** A share in [0, 1), for whether an acknowledgement gets lost, and when a dead connection is noticed. */
  readonly share: () => number;
  readonly lostAcks: number;
}

/** What is written down, and whether the gateway has kept it. */
interface Note {
  readonly fact: Fact;
  isKept: boolean;
}

interface Session {
  /** The lock still holds its end. */
  isLockUp: boolean;
}

export class PresenceLink implements Link {
  readonly #sender: Sender;
  readonly #events: LinkEvents;
  readonly #board: Switchboard;
  readonly #notes: Note[] = [];
  /** As the gateway has it. */
  #session: Session | undefined;
  #pending: Downlink[] = [];
  lostAcks = 0;

  constructor(sender: Sender, events: LinkEvents, board: Switchboard) {
    this.#sender = sender;
    this.#events = events;
    this.#board = board;
  }

  /** What has happened, in order of time. */
  get facts(): Fact[] {
    const kept = this.#notes.filter(({ isKept }) => isKept).map(({ fact }) => fact);
    // An answer is known when it is kept, which is later than it came.
    return kept.sort((one, other) => one.atMs - other.atMs);
  }

  connect(): void {
    if (this.#board.ingest === undefined) {
      this.#events.failed({ message: 'refused' });
      return;
    }
    this.#end('takeover');
    this.#session = { isLockUp: true };
    const note = this.#note({ atMs: this.#nowMs, what: 'connected' });
    this.#happen({ type: 'connect', source: 'lock', atMs: this.#nowMs }, note);
    this.#events.connected();
    for (const downlink of this.#pending) this.#deliver(downlink);
  }

  publish(uplink: Uplink): void {
    const session = this.#session;
    const { ingest } = this.#board;
    if (session?.isLockUp !== true || ingest === undefined) return;
    const note = this.#note({ atMs: this.#nowMs, what: 'received', uplink });
    ingest.take(this.#sender, encodeUplink(uplink), (error) => {
      if (error !== undefined) return;
      note.isKept = true;
      if (uplink.body.kind === 'ack') this.#answered(uplink.body.commandId, note.fact.atMs);
      if (this.#board.share() < this.#board.lostAcks) this.lostAcks += 1;
      else if (this.#session === session && session.isLockUp) this.#events.acknowledged(uplink);
    });
  }

  disconnect(): void {
    if (this.#session?.isLockUp !== true) return;
    this.#end('closed');
    this.#events.disconnected(null);
  }

  /** The lock hears and says nothing more; the gateway notices that later, unless the lock is back before. */
  drop(): void {
    const session = this.#session;
    if (session?.isLockUp !== true) return;
    session.isLockUp = false;
    this.#board.clock.after(Math.round(this.#board.share() * KEEPALIVE_ENDS), () => {
      if (this.#session === session) this.#end('keepalive');
    });
  }

  /** The same: the other side is told of neither. */
  abandon(): void {
    this.drop();
  }

  async close(): Promise<void> {
    this.#end('closed');
  }

  /** The network breaks the connection, and both ends hear of it. */
  cut(): void {
    this.#lose(() => this.#end('dropped'));
  }

  /** The gateway ends: `stop` tells that the connection ended, a crash tells nobody but the lock. */
  gatewayEnds(how: 'stop' | 'crash'): void {
    this.#lose(() => (how === 'stop' ? this.#end('gateway') : this.#forget()));
    this.#note({ atMs: this.#nowMs, what: 'ends' }).isKept = true;
  }

  gatewayListens(): void {
    this.#note({ atMs: this.#nowMs, what: 'listens' }).isKept = true;
  }

  /** Sends a command as soon as there is a connection, and again on each later one until it is answered. */
  command(id: number, command: Command): void {
    const downlink = { id, expiresMs: this.#nowMs + COMMAND_EXPIRES, command };
    this.#pending.push(downlink);
    if (this.#session !== undefined && this.#board.ingest !== undefined) this.#deliver(downlink);
  }

  get #nowMs(): number {
    return this.#board.clock.now();
  }

  #note(fact: Fact): Note {
    const note = { fact, isKept: false };
    this.#notes.push(note);
    return note;
  }

  #happen(event: Parameters<Ingest['recordEvent']>[2], note?: Note): void {
    this.#board.ingest?.recordEvent(this.#sender.deviceId, this.#sender.mac, event, () => {
      if (note !== undefined) note.isKept = true;
    });
  }

  #end(cause: DisconnectCause): void {
    if (this.#session === undefined) return;
    this.#session = undefined;
    const note = this.#note({ atMs: this.#nowMs, what: 'disconnected' });
    this.#happen({ type: 'disconnect', source: 'lock', cause, atMs: this.#nowMs }, note);
  }

  #forget(): void {
    this.#session = undefined;
  }

  #lose(end: () => void): void {
    const wasUp = this.#session?.isLockUp === true;
    end();
    if (wasUp) this.#events.disconnected({ message: 'the connection broke' });
  }

  #deliver(downlink: Downlink): void {
    const { id, expiresMs, command } = downlink;
    if (this.#nowMs >= expiresMs) {
      this.#pending = this.#pending.filter((each) => each !== downlink);
      return;
    }
    const isWish = command.type === 'set-power' && command.airplane === true;
    const note = isWish ? this.#note({ atMs: this.#nowMs, what: 'asked-for-silence', id }) : undefined;
    this.#happen({ type: 'command', id, command, atMs: this.#nowMs }, note);
    // On a dead connection that nobody has noticed yet it was sent, and does not arrive.
    if (this.#session?.isLockUp === true) this.#events.command(downlink);
  }

  #answered(id: number, atMs: number): void {
    this.#pending = this.#pending.filter((downlink) => downlink.id !== id);
    this.#notes.push({ fact: { atMs, what: 'answered', id }, isKept: true });
  }
}
