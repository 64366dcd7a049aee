/**
 * Turns the packets of one client's captured MQTT connection, and the end of its TCP connection, into events of a
 * trace, such as uplinks (messages of locks) and commands to locks.
 *
 * A session is `new` until CONNECT, `connecting` until CONNACK, then `open`, and in the end `closed`. It is `refused`
 * if CONNACK refuses it, and `foreign` if the client is not a lock or uses MQTT 5. Events before CONNACK wait for it,
 * because a refused session has no events.
 */
import type { IConnackPacket, IConnectPacket, IPublishPacket, Packet } from 'mqtt-packet';
import type { DisconnectCause } from '../../../proto/power/judge/event.js';
import { commandEvent, UNKNOWN_SENDER, UNREADABLE_COMMAND, UNREADABLE_UPLINK, uplinkEvent } from '../payload-event.js';
import type { RecordedEvent, RecordingSink } from '../recording.js';
import { directionOf, type Sender, senderOf } from '../sender.js';

/** When a packet was captured, and its number. */
export interface Moment {
  readonly atMs: number;
  /** The number of the captured packet. */
  readonly row: number;
}

/** The sessions of a recording by client id: a second CONNECT of a client ends its first session. */
export type SessionsByClient = Map<string, ClientSession>;

/** A session with more events before CONNACK counts as accepted. */
const MAX_WAITING_EVENTS = 256;
/** MQTT 3.1.1 §3.1.2.10: a server closes a connection after one and a half times its keepalive. */
const KEEPALIVE_FACTOR_MS = 1500;
/** A server's timers may run a little early. */
const KEEPALIVE_SLACK_MS = 500;
const MQTT_5 = 5;

/** The MQTT connection of one client. */
export class ClientSession {
  readonly #sessions: SessionsByClient;
  readonly #sink: RecordingSink;
  /** The sender to assume if CONNECT was not captured; null for none. */
  readonly #assumedSender: Sender | null;
  #state: 'new' | 'connecting' | 'open' | 'refused' | 'foreign' | 'closed' = 'new';
  #clientId = '';
  #sender: Sender | null = null;
  #keepaliveSeconds = 0;
  #lastClientMs = Number.NEGATIVE_INFINITY;
  #connect: Moment = { atMs: 0, row: 0 };
  #waiting: RecordedEvent[] = [];
  #isTakenOver = false;

  constructor(sessions: SessionsByClient, sink: RecordingSink, assumedSender: Sender | null) {
    this.#sessions = sessions;
    this.#sink = sink;
    this.#assumedSender = assumedSender;
  }

  /** Handles a packet from the client. Only MQTT packets reset the keepalive time, TCP segments without them don't. */
  fromClient(packet: Packet, moment: Moment): void {
    this.#lastClientMs = moment.atMs;
    if (packet.cmd === 'connect') this.#onConnect(packet, moment);
    else if (packet.cmd === 'publish') this.#onUplink(packet, moment);
    else if (packet.cmd === 'disconnect') this.#close('closed', moment);
  }

  /** Handles a packet from the server. */
  fromServer(packet: Packet, moment: Moment): void {
    if (packet.cmd === 'connack') this.#onConnack(packet, moment);
    else if (packet.cmd === 'publish') this.#onCommand(packet, moment);
  }

  /**
   * Call when one side ends the TCP connection, with a FIN or a reset. A server that ends a connection on purpose sends
   * a FIN. A client's end has the cause `dropped`, because its DISCONNECT would have closed the session.
   */
  end(by: 'client' | 'server', how: 'fin' | 'reset', moment: Moment): void {
    if (by === 'client') this.#close('dropped', moment);
    else if (this.#isTakenOver) this.#close('takeover', moment);
    else if (this.#isKeepaliveOver(moment.atMs)) this.#close('keepalive', moment);
    else this.#close(how === 'fin' ? 'gateway' : 'dropped', moment);
  }

  /** Call if the capture ends, or the reader gives the connection up, before the connection ends. */
  abandon(row: number): void {
    if (this.#state === 'connecting') this.#accept(this.#connect);
    if (this.#state === 'new') this.#sink.skip('a connection without an MQTT packet', row);
    this.#forget();
  }

  #isKeepaliveOver(atMs: number): boolean {
    const limitMs = this.#keepaliveSeconds * KEEPALIVE_FACTOR_MS - KEEPALIVE_SLACK_MS;
    return this.#keepaliveSeconds > 0 && atMs - this.#lastClientMs >= limitMs;
  }

  #onConnect(packet: IConnectPacket, moment: Moment): void {
    if (this.#state !== 'new') {
      this.#sink.skip('a second CONNECT of a connection', moment.row);
      return;
    }
    const sender = senderOf(packet.clientId);
    if (packet.protocolVersion === MQTT_5) {
      this.#ignore('a connection with MQTT 5', packet.clientId, moment);
      return;
    }
    if (sender === undefined) {
      this.#ignore('a connection of a client that is not a lock', packet.clientId, moment);
      return;
    }
    this.#sender = sender;
    this.#clientId = packet.clientId;
    this.#keepaliveSeconds = packet.keepalive ?? 0;
    this.#connect = moment;
    this.#state = 'connecting';
    const earlier = this.#sessions.get(this.#clientId);
    if (earlier !== undefined) earlier.#isTakenOver = true;
  }

  #ignore(reason: string, clientId: string, { row }: Moment): void {
    this.#state = 'foreign';
    this.#sink.skip(reason, row, clientId);
  }

  #onConnack(packet: IConnackPacket, moment: Moment): void {
    if (this.#state !== 'connecting') return;
    const code = packet.returnCode ?? 0;
    if (code === 0) {
      this.#accept(moment);
      return;
    }
    this.#state = 'refused';
    this.#waiting = [];
    this.#sink.skip('a refused CONNECT', moment.row, `${this.#clientId}: return code ${code}`);
  }

  /** Opens the session at this moment. Its connect comes before uplinks that were sent before CONNACK. */
  #accept({ atMs, row }: Moment): void {
    const sender = this.#sender as Sender;
    const earlier = this.#sessions.get(this.#clientId);
    if (earlier !== undefined && earlier !== this) earlier.#close('takeover', { atMs, row });
    this.#state = 'open';
    this.#sessions.set(this.#clientId, this);
    const connectMs = Math.min(atMs, this.#waiting[0]?.event.atMs ?? atMs);
    this.#sink.event({ event: { event: 'connect', ...sender, atMs: connectMs } });
    for (const event of this.#waiting) this.#sink.event(event);
    this.#waiting = [];
  }

  #onUplink({ topic, payload }: IPublishPacket, { atMs, row }: Moment): void {
    if (directionOf(topic) !== 'up') {
      this.#sink.skip('a PUBLISH to another topic than up', row, topic);
      return;
    }
    const sender = this.#senderOfPayload(row);
    if (sender === null) return;
    const event = uplinkEvent(sender, atMs, bytesOf(payload));
    if (event.ok) this.#emit(event.value);
    else this.#sink.skip(UNREADABLE_UPLINK, row, event.error.message);
  }

  #onCommand({ topic, payload }: IPublishPacket, { atMs, row }: Moment): void {
    if (directionOf(topic) !== 'down') {
      this.#sink.skip('a PUBLISH to another topic than down', row, topic);
      return;
    }
    const sender = this.#senderOfPayload(row);
    if (sender === null) return;
    const event = commandEvent(sender.mac, atMs, bytesOf(payload));
    if (event.ok) this.#emit(event.value);
    else this.#sink.skip(UNREADABLE_COMMAND, row, event.error.message);
  }

  #senderOfPayload(row: number): Sender | null {
    if (this.#state === 'connecting' || this.#state === 'open') return this.#sender;
    if (this.#state === 'new' && this.#assumedSender !== null) {
      this.#sender = this.#assumedSender;
      this.#state = 'open';
      return this.#sender;
    }
    if (this.#state === 'new') this.#sink.skip(UNKNOWN_SENDER, row, 'its CONNECT was not captured');
    else this.#sink.skip(`a PUBLISH of a connection that is ${this.#state}`, row);
    return null;
  }

  #emit(event: RecordedEvent): void {
    if (this.#state === 'open') {
      this.#sink.event(event);
      return;
    }
    this.#waiting.push(event);
    if (this.#waiting.length > MAX_WAITING_EVENTS) this.#accept(this.#connect);
  }

  #close(cause: DisconnectCause, { atMs, row }: Moment): void {
    // Only one direction was captured, or the server did not answer before the end.
    if (this.#state === 'connecting') {
      this.#sink.skip('a CONNECT without an answer', row, this.#clientId);
      for (const _ of this.#waiting) this.#sink.skip('an uplink before the answer to CONNECT', row);
    }
    if (this.#state === 'open')
      this.#sink.event({
        event: { event: 'disconnect', ...(this.#sender as Sender), atMs, cause },
      });
    if (this.#state !== 'foreign' && this.#state !== 'refused') this.#state = 'closed';
    this.#waiting = [];
    this.#forget();
  }

  #forget(): void {
    if (this.#sessions.get(this.#clientId) === this) this.#sessions.delete(this.#clientId);
  }
}

function bytesOf(payload: Buffer | string): Uint8Array {
  return typeof payload === 'string' ? Buffer.from(payload, 'utf8') : payload;
}
