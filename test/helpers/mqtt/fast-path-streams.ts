/**
 * Random streams of a lock's packets on one connection: mostly uplinks, with other allowed packets between them and
 * sometimes a packet that closes the connection, cut into chunks anywhere. Compares the fast path with the library.
 */

import { connectionFilterOf } from '../../../gateway/mqtt/connection-filter.js';
import { LockgateError } from '../../../proto/errors.js';
import type { Mac } from '../../../proto/wire/mac.js';
import { testMac } from '../gateway/test-gateway.js';
import { SeededChance } from '../pair/seeded-chance.js';
import type { Teardown } from '../store/temp-folder.js';
import { type HandIngest, type HandSocket, handBroker, turns } from './hand-broker.js';
import { lengthOf, PINGREQ, packet, publishPacket, subscribePacket } from './raw-lock.js';

const DISCONNECT = Buffer.from([0xe0, 0]);
/** Flags of a PUBLISH: QoS 1, QoS 1 with DUP, QoS 2, retained. */
const [FIRST, FIRST_DUP, QOS_2, RETAINED] = [0x02, 0x0a, 0x04, 0x03];
/** The first letter of payloads that must not be acknowledged. */
const FAILING_PREFIX = 'f';

/** A PUBLISH to `up`; `id` is undefined at QoS 0. */
interface SentUplink {
  readonly payload: string;
  readonly id: number | undefined;
}

/** The packets of one connection. */
interface RandomStream {
  /** The uplinks up to a packet that closes the connection. */
  readonly uplinks: readonly SentUplink[];
  /** Whether a packet, or an uplink that can't be stored, closes the connection. */
  readonly ends: boolean;
  readonly pieces: readonly Buffer[];
  /** How many uplinks are answered after each chunk; the remaining ones are answered later. */
  readonly answers: readonly number[];
}

/** The result of a stream. */
interface StreamResult {
  /** The payloads that ingest took, in order. */
  readonly taken: readonly string[];
  /** The packet ids of the PUBACKs, in order. */
  readonly pubacks: readonly number[];
  /** The other answers, hex. The library may reorder them: it answers a PINGREQ before a SUBSCRIBE. */
  readonly others: readonly string[];
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
  readonly uplinks: number;
  readonly pieces: number;
  /** Streams whose connection the gateway closed. */
  readonly ended: number;
  /** Chunks that went to the library although there is a fast path. */
  readonly passedToLibrary: number;
  /** Connections that are still open at the end. */
  readonly left: number;
}

/** Sends the same streams through the fast path and through the library only, and compares the results. */
export async function compareFastPath(test: Teardown, seed: number, streams: number): Promise<ComparisonSummary> {
  const fastPath = await handBroker(test);
  const library = await handBroker(test, { fastPath: false });
  const faults: string[] = [];
  let [uplinks, pieces, ended, passedToLibrary] = [0, 0, 0, 0];
  for (let index = 0; index < streams; index++) {
    const stream = makeStream(new SeededChance(seed + index));
    const mac = testMac(index + 1);
    const socket = await fastPath.connect(mac);
    const byFastPath = await playStream(stream, socket, fastPath.ingest, mac);
    const byLibrary = await playStream(stream, await library.connect(mac), library.ingest, mac);
    const fault = faultOf(stream, byFastPath, byLibrary);
    if (fault !== undefined) faults.push(`${seed + index}: ${fault}`);
    uplinks += byFastPath.taken.length;
    pieces += stream.pieces.length;
    ended += byFastPath.isOpen ? 0 : 1;
    passedToLibrary += connectionFilterOf(socket)?.passedToLibrary ?? 0;
  }
  return {
    faults,
    uplinks,
    pieces,
    ended,
    passedToLibrary,
    left: fastPath.broker.connected + library.broker.connected,
  };
}

/** Makes a random stream. One with late answers has no packet that closes it, since what is read before may differ. */
function makeStream(chance: SeededChance): RandomStream {
  const isLate = chance.next() < 0.4;
  const packets: Buffer[] = [];
  const uplinks: SentUplink[] = [];
  const count = chance.between(1, 14);
  let [ends, fails] = [false, false];
  const publish = (letter: string, id: number | undefined, flags: number): Buffer => {
    const length = chance.pick([1, 10, 20, 30, 60, 118, 119, 120, 121, 122, 140]);
    const payload = Buffer.alloc(length, letter + String(chance.between(0, 1000)));
    if (!ends) uplinks.push({ payload: payload.toString('latin1'), id });
    fails ||= letter === FAILING_PREFIX;
    return id === undefined ? publishQos0(payload) : publishPacket('up', payload, id, flags);
  };
  for (let index = 0; index < count; index++) {
    const odds = chance.next();
    if (odds < 0.6)
      packets.push(publish('a', chance.between(1, 65_536), chance.pick([FIRST, FIRST, FIRST, FIRST_DUP])));
    else if (odds < 0.68) packets.push(publish('b', undefined, 0));
    else if (odds < 0.71) packets.push(longLength(publish('c', chance.between(1, 128), FIRST)));
    else if (odds < 0.96 || isLate) packets.push(chance.pick(OTHER_PACKETS));
    else if (odds < 0.98) packets.push(publish(FAILING_PREFIX, 9, FIRST));
    else {
      packets.push(chance.pick(ENDING_PACKETS));
      ends = true;
    }
  }
  const pieces = cut(chance, packets);
  return {
    uplinks,
    ends: ends || fails,
    pieces,
    answers: pieces.map(() => (isLate ? chance.between(0, 4) : ANSWER_ALL)),
  };
}

/** A PUBLISH at QoS 0, without a packet id. */
function publishQos0(payload: Buffer): Buffer {
  return packet(0x30, Buffer.concat([Buffer.from([0, 2]), Buffer.from('up'), payload]));
}

/** The same packet with one more length byte than needed. */
function longLength(whole: Buffer): Buffer {
  const headBytes = whole.length < 130 ? 2 : 3;
  const length = [...whole.subarray(1, headBytes)];
  length[length.length - 1] = (length.at(-1) as number) | 0x80;
  return Buffer.concat([whole.subarray(0, 1), Buffer.from([...length, 0]), whole.subarray(headBytes)]);
}

/** The other packets that a lock may send. */
const OTHER_PACKETS: readonly Buffer[] = [
  PINGREQ,
  subscribePacket('down'),
  subscribePacket('other'),
  packet(0xa2, Buffer.from([0, 9, 0, 4, ...Buffer.from('down')])),
  packet(0x40, Buffer.from([0, 5])),
];

/** Packets that close a connection. */
const ENDING_PACKETS: readonly Buffer[] = [
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
  Buffer.from([0x32, ...lengthOf(70_000)]),
  Buffer.from([0x32, 0xff, 0xff, 0xff, 0xff]),
];

/** Cuts the packets into chunks at their ends, inside them, or nowhere. */
function cut(chance: SeededChance, packets: readonly Buffer[]): Buffer[] {
  const whole = Buffer.concat(packets);
  const pieces: Buffer[] = [];
  const way = chance.next();
  if (way < 0.3) return [...packets];
  const most = way < 0.32 ? 4 : way < 0.8 ? 300 : 2000;
  for (let at = 0; at < whole.length; ) {
    const length = chance.between(1, most + 1);
    pieces.push(whole.subarray(at, at + length));
    at += length;
  }
  return pieces;
}

/** Sends a stream over an authenticated connection, closes it, and returns the result. */
async function playStream(stream: RandomStream, socket: HandSocket, ingest: HandIngest, mac: Mac) {
  ingest.fails = (payload) =>
    payload.startsWith(FAILING_PREFIX) ? new LockgateError('test', 'it can’t be stored') : undefined;
  const before = ingest.taken.length;
  const from = socket.received.length;
  for (const [index, piece] of stream.pieces.entries()) {
    // A separate buffer, as sockets have.
    socket.send(Buffer.from(piece));
    await turns(2);
    ingest.answer(Math.min(ingest.waiting, stream.answers[index] as number));
    await turns(2);
  }
  while (ingest.waiting > 0) {
    ingest.answer();
    await turns();
  }
  await turns();
  const isOpen = !socket.destroyed;
  socket.endSending();
  await turns();
  const { pubacks, others } = packetsOf(Buffer.from(socket.received.slice(from), 'hex'));
  const end = ingest.recordedEvents.findLast((each) => each.mac === mac && each.event.type === 'disconnect')?.event;
  const taken = ingest.taken.slice(before).map(({ payload }) => payload);
  const cause = end?.type === 'disconnect' ? end.cause : undefined;
  return { taken, pubacks, others, cause, isOpen } satisfies StreamResult;
}

/**
 * The fault of a stream's result on the fast path: it differs from the library's result or from the stream. Undefined
 * if there is none. A packet that closes the connection may do so before earlier packets are answered, so then as many
 * answers as the library gave are enough.
 */
function faultOf(
  { uplinks, ends }: RandomStream,
  byFastPath: StreamResult,
  byLibrary: StreamResult,
): string | undefined {
  const payloads = uplinks.map(({ payload }) => payload);
  const failing = uplinks.findIndex(({ payload }) => payload.startsWith(FAILING_PREFIX));
  const ids = uplinks.slice(0, failing === -1 ? uplinks.length : failing).flatMap(({ id }) => id ?? []);
  const fits = ends ? isPrefix : isSame;
  if (byFastPath.isOpen === ends) return ends ? 'it was not closed' : 'it was closed';
  if (byLibrary.isOpen !== byFastPath.isOpen || byLibrary.cause !== byFastPath.cause) return 'another close';
  // Uplinks after one that can't be stored are accepted if they were read before its answer.
  const hasOthers =
    failing === -1 ? !isSame(byFastPath.taken, byLibrary.taken) : !agree(byFastPath.taken, byLibrary.taken);
  if (hasOthers) return 'other uplinks';
  if (!fits(byFastPath.taken, payloads)) return 'uplinks that were not sent';
  if (!fits(byFastPath.pubacks, ids)) return 'wrong PUBACKs';
  if (!fits(byLibrary.pubacks, byFastPath.pubacks)) return 'other PUBACKs';
  // The library answers concurrently, so the order of its other answers may vary.
  const isAnswered = ends || isSame([...byFastPath.others].sort(), [...byLibrary.others].sort());
  return isAnswered ? undefined : 'other answers';
}

function isSame(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && isPrefix(one, other);
}

function isPrefix(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.every((each, index) => each === other[index]);
}

/** Whether one is a prefix of the other. */
function agree(one: readonly unknown[], other: readonly unknown[]): boolean {
  return isPrefix(one, other) || isPrefix(other, one);
}

/** Splits the gateway's packets. They are short, so their length has one byte. */
function packetsOf(heard: Buffer): { pubacks: number[]; others: string[] } {
  const [pubacks, others]: [number[], string[]] = [[], []];
  for (let at = 0; at < heard.length; ) {
    const end = at + 2 + (heard[at + 1] as number);
    if (heard[at] === 0x40) pubacks.push(heard.readUInt16BE(at + 2));
    else others.push(heard.subarray(at, end).toString('hex'));
    at = end;
  }
  return { pubacks, others };
}
