/**
 * A simulated connection between a simulated lock and a gateway's ingest (the part that stores events), in one process
 * and on one clock. The connection does what MQTT and the broker do, without sockets. It records what truly happens
 * (connects, uplinks, commands), so that a test can check the presence that the gateway reports. Events that the
 * gateway had not stored before a crash do not count.
 */
import type { Link, LinkEvents } from '../../../firmware-sim/link/link.js';
import type { VirtualClock } from '../../../firmware-sim/virtual-clock.js';
import type { Ingest, Sender } from '../../../gateway/ingest/ingest.js';
import { Hours, Seconds } from '../../../proto/clock.js';
import type { DisconnectCause } from '../../../proto/power/judge/event.js';
import { encodeUplink } from '../../../proto/wire/codec.js';
import type { Command, Downlink, Uplink } from '../../../proto/wire/ping.js';
import type { TrueEvent } from './truth.js';

/** A broker closes a silent connection after 1.5 times the keepalive of 300 s (MQTT 3.1.1 §3.1.2.10). */
const KEEPALIVE_LIMIT = Seconds(450);
const COMMAND_LIFETIME = Hours(24);

/** What all connections share; `ingest`, which receives events, is undefined while the gateway does not run. */
export interface PresenceNetwork {
  readonly clock: VirtualClock;
  ingest: Ingest | undefined;
  /** A random number in [0, 1): decides whether an acknowledgement is lost and when a dead connection is noticed. */
  readonly random: () => number;
  /** The share of acknowledgements that are lost. */
  readonly lostAcks: number;
}

/** A recorded event, and whether the gateway has stored it. */
interface RecordedEvent {
  readonly event: TrueEvent;
  isStored: boolean;
}

/** The gateway's side of a connection. */
interface Session {
  /** Whether the lock's side of the connection is open. */
  isLockUp: boolean;
}

/** The connections of one lock, one after another. */
export class PresenceLink implements Link {
  readonly #sender: Sender;
  readonly #events: LinkEvents;
  readonly #network: PresenceNetwork;
  readonly #recorded: RecordedEvent[] = [];
  /** Undefined while the lock is not connected, as far as the gateway knows. */
  #session: Session | undefined;
  /** Unanswered commands. */
  #pending: Downlink[] = [];
  /** The number of acknowledgements that were lost on purpose. */
  lostAcks = 0;

  constructor(sender: Sender, events: LinkEvents, network: PresenceNetwork) {
    this.#sender = sender;
    this.#events = events;
    this.#network = network;
  }

  /** The stored events in order of time. */
  get storedEvents(): TrueEvent[] {
    const stored = this.#recorded.filter(({ isStored }) => isStored).map(({ event }) => event);
    // An answer is recorded when it is stored, which is after its arrival.
    return stored.sort((a, b) => a.atMs - b.atMs);
  }

  connect(): void {
    if (this.#network.ingest === undefined) {
      this.#events.failed({ message: 'refused' });
      return;
    }
    this.#end('takeover');
    this.#session = { isLockUp: true };
    const recorded = this.#record({ atMs: this.#nowMs, what: 'connected' });
    this.#reportToGateway({ type: 'connect', source: 'lock', atMs: this.#nowMs }, recorded);
    this.#events.connected();
    for (const downlink of this.#pending) this.#deliver(downlink);
  }

  publish(uplink: Uplink): void {
    const session = this.#session;
    const { ingest } = this.#network;
    if (session?.isLockUp !== true || ingest === undefined) return;
    const recorded = this.#record({ atMs: this.#nowMs, what: 'received', uplink });
    ingest.take(this.#sender, encodeUplink(uplink), (error) => {
      if (error !== undefined) return;
      recorded.isStored = true;
      if (uplink.body.kind === 'ack') this.#answered(uplink.body.commandId, recorded.event.atMs);
      if (this.#network.random() < this.#network.lostAcks) this.lostAcks += 1;
      else if (this.#session === session && session.isLockUp) this.#events.acknowledged(uplink);
    });
  }

  disconnect(): void {
    if (this.#session?.isLockUp !== true) return;
    this.#end('closed');
    this.#events.disconnected(null);
  }

  /** The connection dies silently. The gateway notices it later, unless the lock reconnects before. */
  drop(): void {
    const session = this.#session;
    if (session?.isLockUp !== true) return;
    session.isLockUp = false;
    this.#network.clock.after(Math.round(this.#network.random() * KEEPALIVE_LIMIT), () => {
      if (this.#session === session) this.#end('keepalive');
    });
  }

  /** The same as {@link drop}: the gateway does not notice either at once. */
  abandon(): void {
    this.drop();
  }

  async close(): Promise<void> {
    this.#end('closed');
  }

  /** The network breaks the connection, and both sides notice it. */
  breakConnection(): void {
    this.#lose(() => this.#end('dropped'));
  }

  /** The gateway stops or crashes. A stop records the disconnect; after a crash only the lock notices it. */
  gatewayEnded(how: 'stop' | 'crash'): void {
    this.#lose(() => (how === 'stop' ? this.#end('gateway') : this.#forget()));
    this.#record({ atMs: this.#nowMs, what: 'ends' }).isStored = true;
  }

  /** The gateway listens again. */
  gatewayStarted(): void {
    this.#record({ atMs: this.#nowMs, what: 'listens' }).isStored = true;
  }

  /** Sends a command as soon as there is a connection, and again on each later one until it is answered. */
  command(id: number, command: Command): void {
    const downlink = { id, expiresMs: this.#nowMs + COMMAND_LIFETIME, command };
    this.#pending.push(downlink);
    if (this.#session !== undefined && this.#network.ingest !== undefined) this.#deliver(downlink);
  }

  get #nowMs(): number {
    return this.#network.clock.now();
  }

  #record(event: TrueEvent): RecordedEvent {
    const recorded = { event, isStored: false };
    this.#recorded.push(recorded);
    return recorded;
  }

  #reportToGateway(event: Parameters<Ingest['recordEvent']>[2], recorded?: RecordedEvent): void {
    this.#network.ingest?.recordEvent(this.#sender.deviceId, this.#sender.mac, event, () => {
      if (recorded !== undefined) recorded.isStored = true;
    });
  }

  /** The gateway notices the end of the connection. */
  #end(cause: DisconnectCause): void {
    if (this.#session === undefined) return;
    this.#session = undefined;
    const recorded = this.#record({ atMs: this.#nowMs, what: 'disconnected' });
    this.#reportToGateway({ type: 'disconnect', source: 'lock', cause, atMs: this.#nowMs }, recorded);
  }

  /** A crashed gateway records no disconnect. */
  #forget(): void {
    this.#session = undefined;
  }

  /** Ends the connection for the gateway with the function `end`, and reports the loss to the lock. */
  #lose(end: () => void): void {
    const wasUp = this.#session?.isLockUp === true;
    end();
    if (wasUp) this.#events.disconnected({ message: 'the connection broke' });
  }

  /** Sends a command, unless it has expired. */
  #deliver(downlink: Downlink): void {
    const { id, expiresMs, command } = downlink;
    if (this.#nowMs >= expiresMs) {
      this.#pending = this.#pending.filter((each) => each !== downlink);
      return;
    }
    const isSilenceCommand = command.type === 'set-power' && command.airplane === true;
    const recorded = isSilenceCommand ? this.#record({ atMs: this.#nowMs, what: 'asked-for-silence', id }) : undefined;
    this.#reportToGateway({ type: 'command', id, command, atMs: this.#nowMs }, recorded);
    // On a dead connection that the gateway has not noticed, the command is sent but does not arrive.
    if (this.#session?.isLockUp === true) this.#events.command(downlink);
  }

  #answered(id: number, atMs: number): void {
    this.#pending = this.#pending.filter((downlink) => downlink.id !== id);
    this.#recorded.push({ event: { atMs, what: 'answered', id }, isStored: true });
  }
}
