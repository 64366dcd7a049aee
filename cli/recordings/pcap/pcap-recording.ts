/**
 * Reads captures of tcpdump: plain MQTT over TCP becomes connects, uplinks (messages of locks), commands and
 * disconnects. TLS can't be read; the error says what to do instead. Several files are the parts of one capture
 * (tcpdump -C).
 */
import { ok, type Result } from '../../../proto/errors.js';
import type { Mac } from '../../../proto/wire/mac.js';
import { isDatable } from '../../../proto/wire/ping-json.js';
import type { RecordingFault, RecordingReader, RecordingSink } from '../recording.js';
import { CaptureFile } from './capture-file.js';
import type { CapturedPacket } from './captured-packet.js';
import { ClientSession, type Moment, type SessionsByClient } from './client-session.js';
import { MqttPackets } from './mqtt-packets.js';
import { segmentOf, type TcpSegment } from './tcp-segment.js';
import { TcpStream } from './tcp-stream.js';

/** IANA's port of MQTT without TLS. */
export const DEFAULT_MQTT_PORT = 1883;
const TLS_PORT = 8883;
/** The maximum number of TCP connections that are followed at once. Beyond it the oldest one is given up. */
const MAX_CONNECTIONS = 100_000;

/** The types of TLS records, and the first byte of their version. No MQTT connection starts like this. */
const TLS_RECORDS = new Set([0x14, 0x15, 0x16, 0x17]);
const TLS_VERSION = 3;

const TLS_REMEDY =
  'the connection is TLS, whose content a capture does not show: record it with "lockgate trace record" or ' +
  '"lockgate trace export" on the gateway, or capture locks of a test bench that connect without TLS (port 1883)';

/** One TCP connection to an MQTT port. */
interface Flow {
  /** The bytes that the client sends, and those that the server sends. */
  readonly client: TcpStream;
  readonly server: TcpStream;
  readonly session: ClientSession;
  hasClientBytes: boolean;
  /** The sequence number of each side's FIN, which follows the side's last byte; null before the FIN. */
  readonly finPositions: Record<Side, number | null>;
  /** How many sides have ended. */
  endedSides: number;
}

/** Who sends. */
type Side = 'client' | 'server';

/** Reads captures. */
export class PcapRecording implements RecordingReader {
  readonly unit = 'packet';
  readonly #ports: ReadonlySet<number>;
  readonly #mac: Mac | null;
  readonly #flows = new Map<string, Flow>();
  readonly #sessions: SessionsByClient = new Map();
  /** The time and number of the current packet. */
  #moment: Moment = { atMs: 0, row: 0 };
  #sink: RecordingSink | null = null;
  /** TLS on an MQTT port, which ends the import. */
  #fault: RecordingFault | null = null;
  /** The first TLS record on the port of MQTT with TLS: the error of a recording without plain MQTT. */
  #firstTls: RecordingFault | null = null;
  /** Whether a client sent bytes to an MQTT port. */
  #hasMqtt = false;

  /** @param mac the lock of connections whose CONNECT was not captured */
  constructor(ports: readonly number[], mac: Mac | null) {
    this.#ports = new Set(ports.length > 0 ? ports : [DEFAULT_MQTT_PORT]);
    this.#mac = mac;
  }

  async read(chunks: AsyncIterable<Uint8Array>, sink: RecordingSink): Promise<Result<number, RecordingFault>> {
    this.#sink = sink;
    let packets = 0;
    const file = new CaptureFile((packet) => {
      packets = packet.number;
      if (this.#fault === null) this.#onPacket(packet, sink);
    });
    for await (const chunk of chunks) {
      const fault = file.push(chunk) ?? this.#fault;
      if (fault !== null) return { ok: false, error: fault };
    }
    const end = file.end();
    if (!end.ok) return end;
    if (end.value !== null) sink.skip('a packet that is not complete', packets + 1, `offset ${end.value}`);
    return ok(packets);
  }

  finish(sink: RecordingSink): RecordingFault | null {
    if (!this.#hasMqtt && this.#firstTls !== null) return this.#firstTls;
    for (const flow of this.#flows.values()) this.#abandon(flow, sink);
    this.#flows.clear();
    return null;
  }

  /** Ends a connection whose end the capture does not show. */
  #abandon(flow: Flow, sink: RecordingSink): void {
    this.#sink = sink;
    flow.client.end();
    flow.server.end();
    flow.session.abandon(this.#moment.row);
  }

  #onPacket(packet: CapturedPacket, sink: RecordingSink): void {
    const segment = segmentOf(packet);
    if (typeof segment === 'string') {
      sink.skip(segment, packet.number);
      return;
    }
    const isToServer = this.#ports.has(segment.toPort);
    if (!isToServer && !this.#ports.has(segment.fromPort)) {
      this.#onOtherPort(segment, packet.number, sink);
      return;
    }
    if (!isDatable(packet.atMs)) {
      sink.skip('a packet without a time', packet.number);
      return;
    }
    this.#moment = { atMs: packet.atMs, row: packet.number };
    const isFromClient = isToServer && !this.#isAnswer(segment);
    const key = isFromClient ? `${segment.from} ${segment.to}` : `${segment.to} ${segment.from}`;
    const flow = this.#flowOf(key, segment, isFromClient, sink);
    if (flow !== null) this.#onSegment(key, flow, segment, isFromClient);
  }

  /**
   * Whether a segment between two MQTT ports is from the server: the answer to a SYN, or a segment of a connection that
   * the other side opened.
   */
  #isAnswer({ from, to, fromPort, isSyn, isAck }: TcpSegment): boolean {
    return this.#ports.has(fromPort) && ((isSyn && isAck) || this.#flows.has(`${to} ${from}`));
  }

  #onOtherPort(segment: TcpSegment, row: number, sink: RecordingSink): void {
    sink.skip('a TCP packet of another port', row, `port ${Math.min(segment.fromPort, segment.toPort)}`);
    if (segment.toPort === TLS_PORT && isTls(segment.payload))
      this.#firstTls ??= { at: `packet ${row}`, message: TLS_REMEDY };
  }

  /** The connection of a segment. A SYN or a segment with payload starts a new one; returns null for other segments. */
  #flowOf(key: string, segment: TcpSegment, isFromClient: boolean, sink: RecordingSink): Flow | null {
    const known = this.#flows.get(key);
    const isStart = isFromClient && segment.isSyn;
    // A SYN that is repeated before the first byte belongs to the connection that it started.
    if (known !== undefined && !(isStart && (known.hasClientBytes || known.endedSides > 0))) return known;
    if (!isStart && segment.payloadBytes === 0) return null;
    if (known !== undefined) {
      this.#flows.delete(key);
      this.#abandon(known, sink);
    }
    const [oldest] = this.#flows;
    if (oldest !== undefined && this.#flows.size >= MAX_CONNECTIONS) {
      sink.skip('a connection that is given up, because too many are open', this.#moment.row);
      this.#flows.delete(oldest[0]);
      this.#abandon(oldest[1], sink);
    }
    const flow = this.#newFlow(sink);
    this.#flows.set(key, flow);
    return flow;
  }

  #newFlow(sink: RecordingSink): Flow {
    const assumedSender = this.#mac === null ? null : ({ mac: this.#mac, source: 'lock' } as const);
    // Passes on to the sink of the file that is being read: the connection may continue in a later file.
    const currentSink: RecordingSink = {
      event: (recorded) => (this.#sink ?? sink).event(recorded),
      skip: (reason, row, detail) => (this.#sink ?? sink).skip(reason, row, detail),
      note: (sentence) => (this.#sink ?? sink).note(sentence),
    };
    const session = new ClientSession(this.#sessions, currentSink, assumedSender);
    const unread = (reason: string, detail?: string): void => currentSink.skip(reason, this.#moment.row, detail);
    const up = new MqttPackets({ packet: (packet) => session.fromClient(packet, this.#moment), unread });
    const down = new MqttPackets({ packet: (packet) => session.fromServer(packet, this.#moment), unread });
    const flow: Flow = {
      client: new TcpStream((bytes, isAfterGap) => {
        if (!flow.hasClientBytes && isTls(bytes)) this.#fault ??= this.#tlsFault();
        flow.hasClientBytes = true;
        this.#hasMqtt = true;
        up.push(bytes, isAfterGap);
      }),
      server: new TcpStream((bytes, isAfterGap) => down.push(bytes, isAfterGap)),
      session,
      hasClientBytes: false,
      finPositions: { client: null, server: null },
      endedSides: 0,
    };
    return flow;
  }

  #tlsFault(): RecordingFault {
    return { at: `packet ${this.#moment.row}`, message: TLS_REMEDY };
  }

  #onSegment(key: string, flow: Flow, segment: TcpSegment, isFromClient: boolean): void {
    const side: Side = isFromClient ? 'client' : 'server';
    const [sender, receiver] = isFromClient ? [flow.client, flow.server] : [flow.server, flow.client];
    if (segment.isSyn) sender.start(segment.sequence);
    if (segment.isAck) receiver.acknowledge(segment.acknowledged);
    // A SYN takes one sequence number, so a payload with it starts at the next. Sequence numbers are modulo 2³² (`>>>
    // 0`).
    sender.add(segment.isSyn ? (segment.sequence + 1) >>> 0 : segment.sequence, segment.payload, segment.payloadBytes);
    if (segment.isFin) flow.finPositions[side] ??= (segment.sequence + segment.payloadBytes) >>> 0;
    if (segment.isReset) {
      sender.end();
      flow.session.end(side, 'reset', this.#moment);
      this.#flows.delete(key);
    } else this.#endAtFin(key, flow);
  }

  /** A side has ended once all bytes before its FIN are there. */
  #endAtFin(key: string, flow: Flow): void {
    for (const side of ['client', 'server'] as const) {
      const fin = flow.finPositions[side];
      if (fin === null || fin === ENDED || !flow[side].hasAllBefore(fin)) continue;
      flow.finPositions[side] = ENDED;
      flow.endedSides += 1;
      flow.session.end(side, 'fin', this.#moment);
    }
    if (flow.endedSides === 2) this.#flows.delete(key);
  }
}

/** Replaces the position of a FIN that has been handled. */
const ENDED = -1;

function isTls(bytes: Uint8Array): boolean {
  return TLS_RECORDS.has(bytes[0] as number) && bytes[1] === TLS_VERSION;
}
