/**
 * Random streams of a lock's packets on one connection: mostly uplinks (PUBLISH to `up`), with other allowed packets
 * between them and sometimes a packet that closes the connection, cut into chunks at random. Compares two ways to read
 * them: the gateway's fast path, which reads uplinks itself, and the broker library, which reads all packets.
 */

import { connectionFilterOf } from '../../../gateway/mqtt/connection-filter.js';
import { LockgateError } from '../../../proto/errors.js';
import type { Mac } from '../../../proto/wire/mac.js';
import { testMac } from '../gateway/test-gateway.js';
import { SeededChance } from '../pair/seeded-chance.js';
import type { Teardown } from '../store/temp-folder.js';
import { type ManualIngest, runLoopTurns, type SimulatedSocket, startManualBroker } from './manual-broker.js';
import { encodeLength, PINGREQ, packet, publishPacket, subscribePacket } from './raw-lock.js';

const DISCONNECT = Buffer.from([0xe0, 0]);
/** Flags of a PUBLISH, its first byte's low half. DUP marks a repetition; retained is QoS 1 with the flag RETAIN. */
const [QOS_1, QOS_1_DUP, QOS_2, RETAINED] = [0x02, 0x0a, 0x04, 0x03];
/** The first letter of payloads that must not be acknowledged. */
const FAILING_PREFIX = 'f';

/** A PUBLISH to `up`; `id` is undefined at QoS 0. */
interface SentUplink {
  readonly payload: string;
  readonly id: number | undefined;
}

/** The packets of one connection. */
interface PacketStream {
  /** The uplinks up to a packet that closes the connection. */
  readonly uplinks: readonly SentUplink[];
  /** Whether a packet, or an uplink that can't be stored, closes the connection. */
  readonly closesConnection: boolean;
  readonly chunks: readonly Buffer[];
  /** For each chunk, how many uplinks are answered after it; the remaining ones are answered at the end. */
  readonly answers: readonly number[];
}

/** The result of a stream. */
interface StreamResult {
  /** The payloads that the gateway's ingest (the part that stores uplinks) received, in order. */
  readonly taken: readonly string[];
  /** The packet ids of the PUBACKs, in order. */
  readonly pubacks: readonly number[];
  /** The other answers, hex. The library may reorder them: it answers a PINGREQ before a SUBSCRIBE. */
  readonly otherAnswers: readonly string[];
  /** The recorded cause of the disconnect. */
  readonly cause: string | undefined;
  /** Whether the gateway left the connection open. */
  readonly isOpen: boolean;
}

/** A value of `answers`: all waiting uplinks are answered. */
const ANSWER_ALL = 1e6;

/** The totals of all streams. */
export interface ComparisonSummary {
  /** The seeds and faults of streams with wrong results. */
  readonly faults: readonly string[];
  /** Uplinks that the broker with the fast path took. */
  readonly uplinks: number;
  /** Chunks that were sent to it. */
  readonly chunks: number;
  /** Streams whose connection the gateway closed. */
  readonly closed: number;
  /** Chunks that went to the library although there is a fast path. */
  readonly passedToLibrary: number;
  /** Connections that are still open at the end. */
  readonly openConnections: number;
}

/**
 * Sends the same streams to a broker with the fast path and to a broker with only the library, and compares the
 * results. Each stream has the next seed, starting with `seed`.
 */
export async function compareFastPath(test: Teardown, seed: number, streams: number): Promise<ComparisonSummary> {
  const fastPath = await startManualBroker(test);
  const library = await startManualBroker(test, { fastPath: false });
  const faults: string[] = [];
  let [uplinks, chunks, closed, passedToLibrary] = [0, 0, 0, 0];
  for (let index = 0; index < streams; index++) {
    const stream = makeStream(new SeededChance(seed + index));
    const mac = testMac(index + 1);
    const socket = await fastPath.connect(mac);
    const byFastPath = await playStream(stream, socket, fastPath.ingest, mac);
    const byLibrary = await playStream(stream, await library.connect(mac), library.ingest, mac);
    const fault = faultOf(stream, byFastPath, byLibrary);
    if (fault !== undefined) faults.push(`${seed + index}: ${fault}`);
    uplinks += byFastPath.taken.length;
    chunks += stream.chunks.length;
    closed += byFastPath.isOpen ? 0 : 1;
    passedToLibrary += connectionFilterOf(socket)?.passedToLibrary ?? 0;
  }
  return {
    faults,
    uplinks,
    chunks,
    closed,
    passedToLibrary,
    openConnections: fastPath.broker.connected + library.broker.connected,
  };
}

/**
 * Makes a random stream. A stream with late answers has no packet that closes the connection, since the fast path and
 * the library may have read different numbers of packets before the close.
 */
function makeStream(chance: SeededChance): PacketStream {
  const answersLate = chance.next() < 0.4;
  const packets: Buffer[] = [];
  const uplinks: SentUplink[] = [];
  const count = chance.between(1, 14);
  let [closesConnection, fails] = [false, false];
  /** A PUBLISH whose payload starts with `letter`; at QoS 0 if `id` is undefined. */
  const publish = (letter: string, id: number | undefined, flags: number): Buffer => {
    // From 122 bytes on, the packet's length takes two bytes.
    const length = chance.pick([1, 10, 20, 30, 60, 118, 119, 120, 121, 122, 140]);
    const payload = Buffer.alloc(length, letter + String(chance.between(0, 1000)));
    if (!closesConnection) uplinks.push({ payload: payload.toString('latin1'), id });
    fails ||= letter === FAILING_PREFIX;
    return id === undefined ? publishQos0(payload) : publishPacket('up', payload, id, flags);
  };
  for (let index = 0; index < count; index++) {
    const random = chance.next();
    // The letters only make the payloads of the kinds differ: a at QoS 1, b at QoS 0, c with an overlong length.
    if (random < 0.6)
      packets.push(publish('a', chance.between(1, 65_536), chance.pick([QOS_1, QOS_1, QOS_1, QOS_1_DUP])));
    else if (random < 0.68) packets.push(publish('b', undefined, 0));
    else if (random < 0.71) packets.push(withOverlongLength(publish('c', chance.between(1, 65_536), QOS_1)));
    else if (random < 0.96 || answersLate) packets.push(chance.pick(OTHER_PACKETS));
    else if (random < 0.98) packets.push(publish(FAILING_PREFIX, 9, QOS_1));
    else {
      packets.push(chance.pick(CLOSING_PACKETS));
      closesConnection = true;
    }
  }
  const chunks = cutIntoChunks(chance, packets);
  return {
    uplinks,
    closesConnection: closesConnection || fails,
    chunks,
    answers: chunks.map(() => (answersLate ? chance.between(0, 4) : ANSWER_ALL)),
  };
}

/** A PUBLISH at QoS 0, without a packet id. */
function publishQos0(payload: Buffer): Buffer {
  return packet(0x30, Buffer.concat([Buffer.from([0, 2]), Buffer.from('up'), payload]));
}

/**
 * The same packet with one more length byte than needed. In each length byte but the last the highest bit is set; a
 * last byte 0 adds nothing.
 */
function withOverlongLength(allBytes: Buffer): Buffer {
  // The type and a length of one byte, up to 127, or of two.
  const headBytes = allBytes.length < 130 ? 2 : 3;
  const length = [...allBytes.subarray(1, headBytes)];
  length[length.length - 1] = (length.at(-1) as number) | 0x80;
  return Buffer.concat([allBytes.subarray(0, 1), Buffer.from([...length, 0]), allBytes.subarray(headBytes)]);
}

/** Allowed packets that are not uplinks: PINGREQ, SUBSCRIBE, UNSUBSCRIBE, PUBACK. */
const OTHER_PACKETS: readonly Buffer[] = [
  PINGREQ,
  subscribePacket('down'),
  subscribePacket('other'),
  packet(0xa2, Buffer.from([0, 9, 0, 4, ...Buffer.from('down')])),
  packet(0x40, Buffer.from([0, 5])),
];

/**
 * Packets that close a connection. The first byte of a packet is its type and flags: 0x32 is a PUBLISH at QoS 1, 0x82 a
 * SUBSCRIBE, 0xa2 an UNSUBSCRIBE, 0x40 a PUBACK, 0x10 a CONNECT, 0x62 a PUBREL.
 */
const CLOSING_PACKETS: readonly Buffer[] = [
  DISCONNECT,
  publishPacket('up', Buffer.from('twice'), 3, QOS_2),
  publishPacket('up', Buffer.from('kept'), 3, RETAINED),
  publishPacket('down', Buffer.from('foreign'), 3),
  publishPacket('uq', Buffer.from('foreign'), 3),
  publishPacket('up/', Buffer.from('foreign'), 3),
  publishPacket('', Buffer.from('nowhere'), 3),
  publishPacket('up', Buffer.from('both bits of QoS'), 3, 0x06),
  publishPacket('up', Buffer.from('packet id 0'), 0),
  packet(0x32, Buffer.from([0, 2, ...Buffer.from('up')])),
  packet(0x32, Buffer.from([0, 9, ...Buffer.from('up')])),
  packet(0x82, Buffer.from([0, 1])),
  packet(0xa2, Buffer.from([0, 1])),
  packet(0x40, Buffer.from([0])),
  packet(0x10, Buffer.from('a second CONNECT')),
  packet(0x80, Buffer.from('a SUBSCRIBE with wrong flags')),
  packet(0x62, Buffer.from([0, 1])),
  Buffer.from([0x32, ...encodeLength(70_000)]),
  Buffer.from([0x32, 0xff, 0xff, 0xff, 0xff]),
];

/** Cuts the packets into chunks at their ends, or after random numbers of bytes. */
function cutIntoChunks(chance: SeededChance, packets: readonly Buffer[]): Buffer[] {
  const allBytes = Buffer.concat(packets);
  const chunks: Buffer[] = [];
  const cutKind = chance.next();
  if (cutKind < 0.3) return [...packets];
  const maxChunkBytes = cutKind < 0.32 ? 4 : cutKind < 0.8 ? 300 : 2000;
  for (let at = 0; at < allBytes.length; ) {
    const length = chance.between(1, maxChunkBytes + 1);
    chunks.push(allBytes.subarray(at, at + length));
    at += length;
  }
  return chunks;
}

/** Sends a stream over an authenticated connection, closes the connection, and returns the result. */
async function playStream(stream: PacketStream, socket: SimulatedSocket, ingest: ManualIngest, mac: Mac) {
  ingest.failureOf = (payload) =>
    payload.startsWith(FAILING_PREFIX) ? new LockgateError('test', 'it can’t be stored') : undefined;
  const takenBefore = ingest.taken.length;
  const receivedBefore = socket.received.length;
  for (const [index, chunk] of stream.chunks.entries()) {
    // A separate buffer, as sockets have.
    socket.send(Buffer.from(chunk));
    await runLoopTurns(2);
    ingest.answer(Math.min(ingest.waitingCount, stream.answers[index] as number));
    await runLoopTurns(2);
  }
  while (ingest.waitingCount > 0) {
    ingest.answer();
    await runLoopTurns();
  }
  await runLoopTurns();
  const isOpen = !socket.destroyed;
  socket.endSending();
  await runLoopTurns();
  const { pubacks, otherAnswers } = packetsOf(Buffer.from(socket.received.slice(receivedBefore), 'hex'));
  const end = ingest.recordedEvents.findLast((each) => each.mac === mac && each.event.type === 'disconnect')?.event;
  const taken = ingest.taken.slice(takenBefore).map(({ payload }) => payload);
  const cause = end?.type === 'disconnect' ? end.cause : undefined;
  return { taken, pubacks, otherAnswers, cause, isOpen } satisfies StreamResult;
}

/**
 * The fault of a stream's result on the fast path: it differs from the library's result or from the stream. Undefined
 * if there is none. A packet that closes the connection may do so before earlier packets are answered, so then as many
 * answers as the library gave are enough.
 */
function faultOf(
  { uplinks, closesConnection }: PacketStream,
  byFastPath: StreamResult,
  byLibrary: StreamResult,
): string | undefined {
  const payloads = uplinks.map(({ payload }) => payload);
  const failing = uplinks.findIndex(({ payload }) => payload.startsWith(FAILING_PREFIX));
  const ids = uplinks.slice(0, failing === -1 ? uplinks.length : failing).flatMap(({ id }) => id ?? []);
  const isExpected = closesConnection ? isPrefix : isSame;
  if (byFastPath.isOpen === closesConnection) return closesConnection ? 'it was not closed' : 'it was closed';
  if (byLibrary.isOpen !== byFastPath.isOpen || byLibrary.cause !== byFastPath.cause) return 'another close';
  // Uplinks after one that can't be stored are accepted if they were read before its answer.
  const takesOtherUplinks =
    failing === -1 ? !isSame(byFastPath.taken, byLibrary.taken) : !isEitherPrefix(byFastPath.taken, byLibrary.taken);
  if (takesOtherUplinks) return 'other uplinks';
  if (!isExpected(byFastPath.taken, payloads)) return 'uplinks that were not sent';
  if (!isExpected(byFastPath.pubacks, ids)) return 'wrong PUBACKs';
  if (!isExpected(byLibrary.pubacks, byFastPath.pubacks)) return 'other PUBACKs';
  // The library answers concurrently, so the order of its other answers may vary.
  const isAnswered =
    closesConnection || isSame([...byFastPath.otherAnswers].sort(), [...byLibrary.otherAnswers].sort());
  return isAnswered ? undefined : 'other answers';
}

function isSame(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && isPrefix(one, other);
}

function isPrefix(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.every((each, index) => each === other[index]);
}

/** Whether one list is a prefix of the other list. */
function isEitherPrefix(one: readonly unknown[], other: readonly unknown[]): boolean {
  return isPrefix(one, other) || isPrefix(other, one);
}

/** Splits the gateway's packets. They are short, so their length has one byte. */
function packetsOf(received: Buffer): { pubacks: number[]; otherAnswers: string[] } {
  const [pubacks, otherAnswers]: [number[], string[]] = [[], []];
  for (let at = 0; at < received.length; ) {
    const end = at + 2 + (received[at + 1] as number);
    if (received[at] === 0x40) pubacks.push(received.readUInt16BE(at + 2));
    else otherAnswers.push(received.subarray(at, end).toString('hex'));
    at = end;
  }
  return { pubacks, otherAnswers };
}
