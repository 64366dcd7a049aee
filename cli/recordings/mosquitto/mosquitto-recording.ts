/**
 * Reads the output of `mosquitto_sub -F '%I %t %x'`, and optionally the log of the broker Mosquitto, from another file
 * or mixed with the output. The broker's log adds connects, disconnects and the senders of messages.
 */
import { Seconds } from '../../../proto/clock.js';
import { ok, type Result } from '../../../proto/errors.js';
import type { DisconnectCause } from '../../../proto/power/judge/event.js';
import { commandEvent, UNKNOWN_SENDER, UNREADABLE_COMMAND, UNREADABLE_UPLINK, uplinkEvent } from '../payload-event.js';
import type { RecordingFault, RecordingOptions, RecordingReader, RecordingSink } from '../recording.js';
import { directionOf, type Sender, senderInTopic, senderOf } from '../sender.js';
import { LINE_TOO_LONG, visitLines } from '../text-lines.js';
import { type BrokerLine, parseBrokerLine } from './broker-line.js';
import { MessageSenders, type SubscriberMessage } from './message-senders.js';
import { parseSubscriberLine } from './subscriber-line.js';

const NOT_A_LINE = 'a line that is neither of mosquitto_sub -F "%I %t %x" nor of Mosquitto’s log';
/** From the first to the last millisecond of a second: the broker logs only whole seconds. */
const REST_OF_SECOND_MS = Seconds(1) - 1;

/** Reads the output of mosquitto_sub and the log of Mosquitto. */
export class MosquittoRecording implements RecordingReader {
  readonly unit = 'line';
  readonly #options: RecordingOptions;
  readonly #senders: MessageSenders;
  /** Clients by id. `lastMs` is the time of the last connect or disconnect; the next one gets no earlier time. */
  readonly #clients = new Map<string, { readonly sender: Sender; isConnected: boolean; lastMs: number }>();
  /** The sink of the file that is being read. */
  #sink: RecordingSink | null = null;

  constructor(options: RecordingOptions) {
    this.#options = options;
    this.#senders = new MessageSenders(
      (message, sender) => this.#emit(message, sender),
      ({ topic, row }) => this.#sink?.skip(UNKNOWN_SENDER, row, `topic ${topic}`),
    );
  }

  async read(chunks: AsyncIterable<Uint8Array>, sink: RecordingSink): Promise<Result<number, RecordingFault>> {
    this.#sink = sink;
    const { utcOffsetMs } = this.#options;
    const lines = await visitLines(chunks, (text, line) => {
      if (text === null) return sink.skip(LINE_TOO_LONG, line);
      const brokerLine = parseBrokerLine(text, utcOffsetMs);
      if (brokerLine !== undefined) return this.#onBrokerLine(brokerLine, line, sink);
      const message = parseSubscriberLine(text, utcOffsetMs);
      if (message === undefined) sink.skip(NOT_A_LINE, line, text);
      else this.#onMessage({ ...message, row: line }, sink);
    });
    return ok(lines);
  }

  finish(sink: RecordingSink): null {
    this.#sink = sink;
    this.#senders.finish();
    return null;
  }

  #onMessage(message: SubscriberMessage, sink: RecordingSink): void {
    if (directionOf(message.topic) === null) {
      sink.skip('a message of another topic than up and down', message.row, message.topic);
      return;
    }
    const sender = senderInTopic(message.topic);
    if (sender !== undefined) this.#emit(message, sender);
    else if (this.#options.mac !== null) this.#emit(message, { mac: this.#options.mac, source: 'lock' });
    else this.#senders.message(message);
  }

  #emit({ atMs, topic, payload, row }: SubscriberMessage, sender: Sender): void {
    const isUplink = directionOf(topic) === 'up';
    const event = isUplink ? uplinkEvent(sender, atMs, payload) : commandEvent(sender.mac, atMs, payload);
    if (event.ok) this.#sink?.event(event.value);
    else this.#sink?.skip(isUplink ? UNREADABLE_UPLINK : UNREADABLE_COMMAND, row, event.error.message);
  }

  #onBrokerLine({ atMs, event }: BrokerLine, line: number, sink: RecordingSink): void {
    if (event.kind === 'other') {
      sink.skip('a line of Mosquitto’s log that is not an event of a trace', line);
      return;
    }
    if (event.kind === 'stop') {
      for (const [id, { isConnected }] of this.#clients) if (isConnected) this.#disconnect(id, atMs, 'gateway', sink);
      return;
    }
    const sender = senderOf(event.clientId);
    if (sender === undefined) {
      sink.skip('a line about a client that is not a lock', line, event.clientId);
      return;
    }
    if (event.kind === 'publish') {
      // The log tells the sender of a message only where neither its topic nor the user names the lock.
      if (senderInTopic(event.topic) === undefined && directionOf(event.topic) !== null && this.#options.mac === null)
        this.#senders.publish(event.topic, event.bytes, atMs, sender);
    } else if (event.kind === 'connect') this.#connect(event.clientId, sender, atMs, sink);
    else {
      // An unknown client connected before the log started.
      if (!this.#clients.has(event.clientId)) this.#setConnected(event.clientId, sender, atMs);
      this.#disconnect(event.clientId, atMs, event.cause, sink);
    }
  }

  #connect(clientId: string, sender: Sender, atMs: number, sink: RecordingSink): void {
    const connectMs = this.#setConnected(clientId, sender, atMs);
    sink.event({ event: { event: 'connect', ...sender, atMs: connectMs } });
  }

  #disconnect(clientId: string, atMs: number, cause: DisconnectCause, sink: RecordingSink): void {
    const client = this.#clients.get(clientId);
    if (client === undefined) return;
    // A disconnect is placed at the end of its second, after all messages of that second. A takeover is not: the new
    // connection starts in the same second.
    const disconnectMs = Math.max(client.lastMs, atMs + (cause === 'takeover' ? 0 : REST_OF_SECOND_MS));
    client.lastMs = disconnectMs;
    client.isConnected = false;
    sink.event({ event: { event: 'disconnect', ...client.sender, atMs: disconnectMs, cause } });
  }

  /** Stores that the client is connected. Returns a time that is not before its earlier events. */
  #setConnected(clientId: string, sender: Sender, atMs: number): number {
    const lastMs = Math.max(atMs, this.#clients.get(clientId)?.lastMs ?? Number.NEGATIVE_INFINITY);
    this.#clients.set(clientId, { sender, isConnected: true, lastMs });
    return lastMs;
  }
}
