/**
 * Builds the packets of tests of MQTT 3.1.1's normative statements from hex digits and texts, sends them to a broker
 * with simulated sockets, and compares the gateway's answer with the expected one. Numbers such as (1.5.3) are sections
 * of MQTT 3.1.1.
 */
import type { Test } from 'tap';
import { testMac } from '../gateway/test-gateway.js';
import { MANUAL_SECRET, runLoopTurns, type SimulatedSocket, startManualBroker } from './manual-broker.js';
import { packet } from './raw-lock.js';

/** The lock that sends the packets, and its secret. */
export const MAC = testMac();
export const SECRET = MANUAL_SECRET;
/** A CONNACK with this return code. */
export const connack = (code: number): string => `200200${code.toString(16).padStart(2, '0')}`;
/** These packets, complete and in hex. */
export const [PINGREQ, PINGRESP, DISCONNECT] = ['c000', 'd000', 'e000'];

/** Hex digits, or a text. */
type Part = string | { readonly text: string | Buffer };

/** Bytes of hex digits and texts: a text gets its length in two bytes before it (1.5.3). */
export function bytes(...parts: readonly Part[]): Buffer {
  return Buffer.concat(
    parts.map((part) => {
      if (typeof part === 'string') return Buffer.from(part.replaceAll(' ', ''), 'hex');
      const text = Buffer.from(part.text);
      return Buffer.concat([Buffer.from([text.length >> 8, text.length & 0xff]), text]);
    }),
  );
}

/** A text as an MQTT string, for {@link bytes}. */
export const text = (value: string | Buffer) => ({ text: value });
/** A packet: a header in hex, the length, and the parts after it. */
export const makePacket = (header: string, ...parts: readonly Part[]): Buffer =>
  packet(Number.parseInt(header, 16), bytes(...parts));

/** The parts of a CONNECT: texts, or bytes in hex. */
interface ConnectParts {
  /** The protocol's name, and its level (4 is MQTT 3.1.1). */
  readonly name?: string;
  readonly level?: string;
  /** Which fields the payload has; c2: a user name and a password, and the session is clean. */
  readonly flags?: string;
  readonly header?: string;
  /** The payload: client id, user name and password. */
  readonly payload?: readonly Part[];
}

/** 300 s. */
const KEEPALIVE = '012c';

/** A valid CONNECT of the lock, with these members replaced. */
export function connect({
  name = 'MQTT',
  level = '04',
  flags = 'c2',
  header = '10',
  payload = [text(MAC), text(MAC), text(SECRET)],
}: ConnectParts = {}): Buffer {
  return makePacket(header, text(name), level, flags, KEEPALIVE, ...payload);
}

/** A PUBLISH; `flags` is the second hex digit of the header, `id` the packet id in hex. */
export const publish = (flags: string, topic: string, id: string, payload = 'p'): Buffer =>
  makePacket(`3${flags}`, text(topic), id, Buffer.from(payload).toString('hex'));
/** The answers to a packet with this id in hex. `codes` are the granted QoS of each subscription, 80 for a refusal. */
export const puback = (id: string): string => `4002${id}`;
export const suback = (id: string, ...codes: string[]): string => packet(0x90, bytes(id, ...codes)).toString('hex');
export const unsuback = (id: string): string => `b002${id}`;

/** Packets to send, and the expected reaction of the gateway. */
export interface PacketCase {
  /** The statements, as MQTT 3.1.1's appendix B numbers them. */
  readonly statements: string;
  readonly title: string;
  readonly send: Buffer | readonly Buffer[];
  /** The expected answer, hex; none if undefined. */
  readonly answer?: string;
  /** Whether the gateway closes the connection; false if undefined. */
  readonly closes?: true;
  /** The payloads that are stored; none if undefined. */
  readonly stores?: readonly string[];
  /** The reason that operators see if something is refused. */
  readonly reportedReason?: RegExp;
}

/** Texts that must not occur in MQTT strings (1.5.3): not UTF-8, half of a surrogate pair, a null character. */
export const ILL_FORMED = Buffer.from([0x64, 0xc0, 0x80]);
export const SURROGATE = Buffer.from([0xed, 0xa0, 0x80]);
export const NUL = 'do\0wn';

/**
 * Sends the packets of a case over a connection. Returns the difference from the expected result; undefined if there is
 * none.
 */
async function faultOf(
  packetCase: PacketCase,
  {
    socket,
    isOneChunk,
    broker,
  }: { socket: SimulatedSocket; isOneChunk: boolean; broker: Awaited<ReturnType<typeof startManualBroker>> },
): Promise<string | undefined> {
  const { ingest, events } = broker;
  const reported: string[] = [];
  const listener = ({ why }: { why: string }): void => void reported.push(why);
  events.on('refused', listener);
  const [receivedBefore, takenBefore] = [socket.received.length, ingest.taken.length];
  const sentBytes = Buffer.concat(Array.isArray(packetCase.send) ? packetCase.send : [packetCase.send as Buffer]);
  for (const chunk of isOneChunk ? [sentBytes] : Array.from(sentBytes, (byte) => Buffer.from([byte]))) {
    socket.send(Buffer.from(chunk));
    await runLoopTurns(1);
  }
  await runLoopTurns(12);
  ingest.answer();
  await runLoopTurns();
  events.off('refused', listener);
  const result = {
    answer: socket.received.slice(receivedBefore),
    closes: socket.destroyed,
    stores: ingest.taken.slice(takenBefore).map(({ payload }) => payload),
  };
  const { answer = '', closes = false, stores = [], reportedReason } = packetCase;
  const expected = { answer, closes, stores };
  socket.endSending();
  await runLoopTurns(2);
  if (JSON.stringify(result) !== JSON.stringify(expected))
    return `${JSON.stringify(result)} and not ${JSON.stringify(expected)}; reported ${JSON.stringify(reported)}`;
  const isReported =
    reportedReason === undefined ? reported.length === 0 : reported.some((each) => reportedReason.test(each));
  return isReported ? undefined : `operators see ${JSON.stringify(reported)}`;
}

/** Asserts each case, over the fast path and without it, in one chunk and byte by byte. */
export async function testCases(t: Test, cases: readonly PacketCase[], isAuthenticated: boolean): Promise<void> {
  for (const fastPath of [true, false]) {
    const broker = await startManualBroker(t, { fastPath });
    for (const packetCase of cases)
      for (const isOneChunk of [true, false]) {
        const socket = isAuthenticated ? await broker.connect(MAC) : broker.open();
        const fault = await faultOf(packetCase, { socket, isOneChunk, broker });
        const mode = `${fastPath ? 'fast path' : 'library'}, ${isOneChunk ? 'one chunk' : 'byte by byte'}`;
        t.equal(fault, undefined, `[MQTT-${packetCase.statements}] ${packetCase.title} (${mode})`);
      }
  }
}
