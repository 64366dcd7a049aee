/**
 * Reads the log of a lock's modem: its AT commands and results (at-line.ts). An uplink (a message of the lock) is
 * imported when the modem reports that it was sent. Each file is the log of one modem.
 */
import { ok, type Result } from '../../../proto/errors.js';
import type { DisconnectCause } from '../../../proto/power/judge/event.js';
import { commandEvent, UNKNOWN_SENDER, UNREADABLE_COMMAND, UNREADABLE_UPLINK, uplinkEvent } from '../payload-event.js';
import type { RecordingFault, RecordingOptions, RecordingReader, RecordingSink } from '../recording.js';
import { directionOf, type Sender, senderOf } from '../sender.js';
import { LINE_TOO_LONG, visitLines } from '../text-lines.js';
import { type AtEvent, type AtLine, parseAtLine } from './at-line.js';

/** Codes of +QMTSTAT: a PINGREQ got no answer; the modem closed the connection on purpose. */
const STATUS_PING_TIMEOUT = 2;
const STATUS_CLOSED = new Set([5, 8]);
/** Limits for a malformed log: a modem has at most 6 links (MQTT connections), and few messages wait for a result. */
const MAX_LINKS = 64;
const MAX_WAITING_MESSAGES = 64;

/** A message that the modem was told to publish. */
interface Publish {
  /** When it was told, ms since the epoch. */
  readonly atMs: number;
  /** The number of the command's line. */
  readonly row: number;
  readonly messageId: number;
  readonly topic: string;
  /** Undefined until the payload's line comes. */
  payload: Uint8Array | undefined;
}

/** One of the modem's MQTT connections. */
interface Link {
  sender: Sender | null;
  isConnected: boolean;
  /** Messages that wait for their result. */
  readonly publishes: Publish[];
}

/** Reads modem logs. */
export class AtRecording implements RecordingReader {
  readonly unit = 'line';
  readonly #options: RecordingOptions;

  constructor(options: RecordingOptions) {
    this.#options = options;
  }

  async read(chunks: AsyncIterable<Uint8Array>, sink: RecordingSink): Promise<Result<number, RecordingFault>> {
    const modem = new Modem(this.#options, sink);
    const lines = await visitLines(chunks, (text, line) => {
      if (text === null) return sink.skip(LINE_TOO_LONG, line);
      const parsed = parseAtLine(text, this.#options.utcOffsetMs);
      if (parsed === undefined) sink.skip('a line without a time', line, text);
      else modem.onLine(parsed, line);
    });
    modem.finish();
    return ok(lines);
  }

  finish(): null {
    return null;
  }
}

/** One modem with its MQTT connections. */
class Modem {
  readonly #options: RecordingOptions;
  readonly #sink: RecordingSink;
  readonly #links = new Map<number, Link>();
  /** The message whose payload is expected in the next line of hex. */
  #awaitingPayload: Publish | null = null;

  constructor(options: RecordingOptions, sink: RecordingSink) {
    this.#options = options;
    this.#sink = sink;
  }

  onLine({ atMs, event }: AtLine, row: number): void {
    if (event.kind === 'other') {
      this.#sink.skip('other traffic of the modem', row);
      return;
    }
    if (event.kind === 'unreadable') {
      this.#sink.skip('a line about MQTT that can’t be read', row);
      return;
    }
    if (event.kind === 'payload') {
      this.#onPayload(event.payload, row);
      return;
    }
    const link = this.#link(event.link);
    if (link === null) {
      this.#sink.skip('a line about MQTT that can’t be read', row, `link ${event.link}`);
      return;
    }
    this.#onLinkEvent(link, event, atMs, row);
  }

  /** Reports messages without a result. */
  finish(): void {
    for (const { publishes } of this.#links.values()) for (const publish of publishes) this.#reportUnsent(publish);
  }

  #onLinkEvent(
    link: Link,
    event: Exclude<AtEvent, { kind: 'other' | 'unreadable' | 'payload' }>,
    atMs: number,
    row: number,
  ): void {
    switch (event.kind) {
      case 'connect-command':
        link.sender = senderOf(event.clientId) ?? null;
        if (link.sender === null) this.#sink.skip('a connection of a client that is not a lock', row, event.clientId);
        return;
      case 'connected':
        if (event.isAccepted) this.#connect(link, atMs, row);
        else this.#sink.skip('a refused CONNECT', row, event.detail);
        return;
      case 'publish-command':
        this.#publish(link, { atMs, row, messageId: event.messageId, topic: event.topic, payload: event.payload });
        return;
      case 'published':
        this.#onResult(link, event.messageId, event.result, row);
        return;
      case 'received':
        this.#onCommand(link, event.topic, event.payload, atMs, row);
        return;
      case 'disconnected':
        this.#disconnect(link, atMs, 'closed');
        return;
      case 'status':
        this.#disconnect(link, atMs, causeOf(event.code));
        return;
    }
  }

  /** The connection with this number; null if there are too many. */
  #link(number: number): Link | null {
    let link = this.#links.get(number);
    if (link === undefined && this.#links.size < MAX_LINKS) {
      link = { sender: null, isConnected: false, publishes: [] };
      this.#links.set(number, link);
    }
    return link ?? null;
  }

  /** The lock or phone that the link's client id names; otherwise the lock that the user named; null without one. */
  #senderOf(link: Link): Sender | null {
    const { mac } = this.#options;
    return link.sender ?? (mac === null ? null : { mac, source: 'lock' });
  }

  #connect(link: Link, atMs: number, row: number): void {
    const sender = this.#senderOf(link);
    if (sender === null) {
      this.#sink.skip(UNKNOWN_SENDER, row);
      return;
    }
    link.isConnected = true;
    this.#sink.event({ event: { event: 'connect', ...sender, atMs } });
  }

  #disconnect(link: Link, atMs: number, cause: DisconnectCause): void {
    const sender = this.#senderOf(link);
    // The modem may report the end of a connection twice, as +QMTDISC and as +QMTSTAT.
    if (sender === null || !link.isConnected) return;
    link.isConnected = false;
    this.#sink.event({ event: { event: 'disconnect', ...sender, atMs, cause } });
  }

  #publish(link: Link, publish: Publish): void {
    if (directionOf(publish.topic) !== 'up') {
      this.#sink.skip('a PUBLISH to another topic than up', publish.row, publish.topic);
      return;
    }
    if (link.publishes.length >= MAX_WAITING_MESSAGES) this.#reportUnsent(link.publishes.shift() as Publish);
    link.publishes.push(publish);
    this.#awaitingPayload = publish.payload === undefined ? publish : null;
  }

  #onPayload(payload: Uint8Array, row: number): void {
    if (this.#awaitingPayload === null) {
      this.#sink.skip('a line of hex that follows no AT+QMTPUB', row);
      return;
    }
    this.#awaitingPayload.payload = payload;
    this.#awaitingPayload = null;
  }

  #onResult(link: Link, messageId: number, result: 'sent' | 'retry' | 'failed', row: number): void {
    if (result === 'retry') return;
    const index = link.publishes.findIndex((each) => each.messageId === messageId);
    const [publish] = index === -1 ? [] : link.publishes.splice(index, 1);
    if (publish === undefined) {
      this.#sink.skip('a result of +QMTPUB without its command', row);
      return;
    }
    const sender = this.#senderOf(link);
    if (result === 'failed') {
      this.#reportUnsent(publish);
      return;
    }
    if (sender === null) {
      this.#sink.skip(UNKNOWN_SENDER, publish.row);
      return;
    }
    // Without its payload in the log, the uplink is reported as one that can't be read.
    const event = uplinkEvent(sender, publish.atMs, publish.payload ?? new Uint8Array());
    if (event.ok) this.#sink.event(event.value);
    else this.#sink.skip(UNREADABLE_UPLINK, publish.row, event.error.message);
  }

  #onCommand(link: Link, topic: string, payload: Uint8Array, atMs: number, row: number): void {
    const sender = this.#senderOf(link);
    if (directionOf(topic) !== 'down') {
      this.#sink.skip('a message of another topic than down', row, topic);
      return;
    }
    if (sender === null) {
      this.#sink.skip(UNKNOWN_SENDER, row);
      return;
    }
    const event = commandEvent(sender.mac, atMs, payload);
    if (event.ok) this.#sink.event(event.value);
    else this.#sink.skip(UNREADABLE_COMMAND, row, event.error.message);
  }

  #reportUnsent({ row }: Publish): void {
    this.#sink.skip('an uplink that the modem did not report as sent', row);
  }
}

function causeOf(status: number): DisconnectCause {
  if (status === STATUS_PING_TIMEOUT) return 'keepalive';
  return STATUS_CLOSED.has(status) ? 'closed' : 'dropped';
}
