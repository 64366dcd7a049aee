/**
 * Makes mutated packets: valid packets of a lock with bits flipped, bytes changed, inserted, removed or repeated, wrong
 * lengths, and cut-off packets. A stream has the packets of one connection; a quarter of the streams start with a
 * mutated CONNECT, the other streams with a valid one. A reference decoder reads the same bytes in a simple, slow way,
 * directly after MQTT 3.1.1, and determines the reactions that a gateway may show.
 */
import { TextDecoder } from 'node:util';
import type { SeededChance } from '../pair/seeded-chance.js';
import { connectPacket, encodeLength, PINGREQ, packet, publishPacket, subscribePacket } from './raw-lock.js';

/** The packets of one connection. */
export interface MutatedStream {
  /** Whether the client is authenticated before the mutated packets. */
  readonly isAuthenticated: boolean;
  readonly bytes: Buffer;
  readonly packets: readonly Buffer[];
  /** Number of mutated packets up to the first that closes the connection; the gateway does not read later ones. */
  readonly mutated: number;
}

/** The identity of the lock that connects. */
export interface Identity {
  readonly user: string;
  readonly secret: string;
}

const MAX_PACKETS = 24;
/** Share of mutated packets that are uplinks with changes only in the payload, so that the connection stays open. */
const PAYLOAD_ONLY_SHARE = 0.75;
const MAX_MUTATIONS = 3;
const EXTREME_BYTES = [0, 1, 2, 0x7f, 0x80, 0xff] as const;
/** The longest packet that the gateway accepts. */
const MAX_PACKET_BYTES = 65_536;

/** Makes a random stream. */
export function makeMutated(chance: SeededChance, identity: Identity): MutatedStream {
  const isAuthenticated = chance.next() < 0.75;
  const connect = connectPacket({ ...identity, keepalive: chance.pick([0, 10, 300]), will: chance.next() < 0.1 });
  const mutated = new Set<number>();
  const packets: Buffer[] = [];
  const mutate = (original: Buffer): Buffer => {
    mutated.add(packets.length);
    let bytes = original;
    for (let times = chance.between(1, MAX_MUTATIONS + 1); times > 0; times--) bytes = mutateOnce(chance, bytes);
    return bytes;
  };
  packets.push(isAuthenticated ? connectPacket(identity) : mutate(connect));
  for (let count = chance.between(isAuthenticated ? 1 : 0, isAuthenticated ? MAX_PACKETS : 3); count > 0; count--) {
    const valid = validPacket(chance);
    if (chance.next() > 0.7) packets.push(valid);
    else if (chance.next() > PAYLOAD_ONLY_SHARE) packets.push(mutate(valid));
    else {
      mutated.add(packets.length);
      packets.push(mutatePayload(chance, publishPacket('up', Buffer.alloc(40, count), count)));
    }
  }
  const bytes = Buffer.concat(packets);
  // The CONNECT, the packets before the one that closes the connection, and that one.
  const reached = isAuthenticated ? 2 + allowedReaction(bytes.subarray(endOfConnect(bytes))).packetCount : 1;
  return { isAuthenticated, bytes, packets, mutated: [...mutated].filter((index) => index < reached).length };
}

/** Cuts a stream into chunks at random: between packets, anywhere, or nowhere. */
export function cutAnywhere(chance: SeededChance, { bytes, packets }: MutatedStream): Buffer[] {
  // 0 stands for a chunk for each packet.
  const maxChunkBytes = chance.pick([0, 0, 1e6, 200, 20]);
  if (maxChunkBytes === 0) return packets.map((each) => Buffer.from(each));
  const chunks: Buffer[] = [];
  for (let position = 0; position < bytes.length; ) {
    const length = chance.between(1, maxChunkBytes + 1);
    chunks.push(Buffer.from(bytes.subarray(position, position + length)));
    position += length;
  }
  return chunks;
}

/**
 * A random packet that a lock may send: an uplink at QoS 1 (flags 0x02; 0x0a for a repetition) or 0 (0x30), SUBSCRIBE,
 * UNSUBSCRIBE (0xa2), PUBACK (0x40), PINGREQ or DISCONNECT (0xe0).
 */
function validPacket(chance: SeededChance): Buffer {
  const random = chance.next();
  const id = chance.between(1, 65_536);
  const payload = Buffer.alloc(chance.pick([0, 1, 40, 120, 130, 1030]), chance.between(0, 256));
  if (random < 0.45) return publishPacket('up', payload, id, chance.pick([0x02, 0x02, 0x0a]));
  if (random < 0.55) return packet(0x30, Buffer.concat([Buffer.from([0, 2]), Buffer.from('up'), payload]));
  if (random < 0.7) return subscribePacket(chance.pick(['down', 'down', '#', 'é€😀']), chance.between(0, 3));
  if (random < 0.8) return packet(0xa2, Buffer.from([id >> 8, id & 255, 0, 4, ...Buffer.from('down')]));
  if (random < 0.9) return packet(0x40, Buffer.from([id >> 8, id & 255]));
  return chance.pick([PINGREQ, PINGREQ, Buffer.from([0xe0, 0])]);
}

/** Flips a bit in the second half of an uplink, which is only payload. */
function mutatePayload(chance: SeededChance, bytes: Buffer): Buffer {
  const changed = Buffer.from(bytes);
  const position = chance.between(bytes.length >> 1, bytes.length);
  changed[position] = (changed[position] as number) ^ (1 << chance.between(0, 8));
  return changed;
}

/** Inserts, flips, replaces, removes, repeats or cuts off bytes at a random position, or changes the length. */
function mutateOnce(chance: SeededChance, bytes: Buffer): Buffer {
  const position = chance.between(0, bytes.length);
  const until = Math.min(bytes.length, position + chance.between(1, 9));
  const [before, within, after] = [bytes.subarray(0, position), bytes.subarray(position, until), bytes.subarray(until)];
  const changed = Buffer.from(bytes);
  const random = chance.next();
  if (bytes.length === 0 || random < 0.1) return Buffer.concat([before, randomBytes(chance), bytes.subarray(position)]);
  if (random < 0.3) changed[position] = (changed[position] as number) ^ (1 << chance.between(0, 8));
  else if (random < 0.5) changed[position] = chance.pick(EXTREME_BYTES);
  else if (random < 0.6) return Buffer.concat([before, after]);
  else if (random < 0.7) return Buffer.concat([before, within, within, after]);
  else if (random < 0.8) return before;
  else if (random < 0.9)
    changed[1] = chance.pick([0, 1, 2, 3, 4, 5, (changed[1] as number) - 1, (changed[1] as number) + 1]);
  else
    return Buffer.concat([bytes.subarray(0, 1), Buffer.from(encodeLength(chance.between(0, 300))), bytes.subarray(2)]);
  return changed;
}

function randomBytes(chance: SeededChance): Buffer {
  return Buffer.from(Array.from({ length: chance.between(1, 9) }, () => chance.between(0, 256)));
}

/** The allowed reactions of a gateway to the bytes after an accepted CONNECT. */
export interface AllowedReaction {
  /** Packet ids of the uplinks at QoS 1, in order, up to the packet that closes the connection. */
  readonly pubacks: readonly number[];
  /** Number of packets before the packet that closes the connection, and number of uplinks among them. */
  readonly packetCount: number;
  readonly uplinks: number;
  /** Whether a packet may close the connection. */
  readonly mayClose: boolean;
}

/** Reads the bytes after a CONNECT. */
export function allowedReaction(sentBytes: Buffer): AllowedReaction {
  const pubacks: number[] = [];
  let [packetCount, uplinks] = [0, 0];
  for (let remaining = sentBytes; ; packetCount++) {
    const nextRead = nextPacket(remaining);
    if (nextRead === 'ends') return { pubacks, packetCount, uplinks, mayClose: true };
    // An incomplete packet may or may not close the connection.
    if (nextRead === undefined) return { pubacks, packetCount, uplinks, mayClose: remaining.length > 0 };
    const { header, body } = nextRead;
    const uplinkId = readUplink(header, body);
    if (uplinkId === undefined && !isValid(header, body)) return { pubacks, packetCount, uplinks, mayClose: true };
    if (uplinkId !== undefined) uplinks += 1;
    // An uplink at QoS 0, with the id 0 here, gets no PUBACK.
    if (uplinkId !== undefined && uplinkId > 0) pubacks.push(uplinkId);
    remaining = nextRead.remaining;
  }
}

/** The offset after the first CONNECT; undefined if it is incomplete. */
export function endOfConnect(sentBytes: Buffer): number | undefined {
  const nextRead = nextPacket(sentBytes);
  return nextRead === 'ends' || nextRead === undefined ? undefined : sentBytes.length - nextRead.remaining.length;
}

/** The first packet; undefined if it is incomplete, `ends` if its length is malformed or too large. */
function nextPacket(bytes: Buffer): { header: number; body: Buffer; remaining: Buffer } | 'ends' | undefined {
  let length = 0;
  // The length has at most four bytes, with 7 bits each, the lowest first; the eighth bit says that another follows.
  for (let index = 1; index <= 4; index++) {
    const byte = bytes[index];
    if (byte === undefined) return undefined;
    length += (byte & 0x7f) * 128 ** (index - 1);
    if (byte >= 0x80) continue;
    if (length > MAX_PACKET_BYTES) return 'ends';
    const from = 1 + index;
    if (bytes.length < from + length) return undefined;
    return {
      header: bytes[0] as number,
      body: bytes.subarray(from, from + length),
      remaining: bytes.subarray(from + length),
    };
  }
  return 'ends';
}

/**
 * The packet id of an uplink, 0 at QoS 0; undefined for any other packet. The header of a PUBLISH is 0x30 at QoS 0,
 * 0x32 at QoS 1, and 0x3a for a repetition.
 */
function readUplink(header: number, body: Buffer): number | undefined {
  if (header !== 0x30 && header !== 0x32 && header !== 0x3a) return undefined;
  if (body.length < 4 || body.readUInt16BE(0) !== 2 || body.toString('latin1', 2, 4) !== 'up') return undefined;
  if (header === 0x30) return 0;
  const id = body.length < 6 ? 0 : body.readUInt16BE(4);
  return id === 0 ? undefined : id;
}

/**
 * Whether a packet other than an uplink is valid and leaves the connection open: PINGREQ (0xc0), PUBACK (0x40),
 * SUBSCRIBE (0x82) or UNSUBSCRIBE (0xa2).
 */
function isValid(header: number, body: Buffer): boolean {
  if (header === 0xc0) return body.length === 0;
  if (header === 0x40) return body.length === 2 && body.readUInt16BE(0) > 0;
  if (header !== 0x82 && header !== 0xa2) return false;
  if (body.length < 5 || body.readUInt16BE(0) === 0) return false;
  for (let position = 2; position < body.length; ) {
    if (position + 2 > body.length) return false;
    const end = position + 2 + body.readUInt16BE(position);
    if (end === position + 2 || end > body.length || !isFilter(body.subarray(position + 2, end))) return false;
    position = end;
    // A SUBSCRIBE has a QoS of at most 2 after each topic filter.
    if (header === 0x82 && (body[position++] ?? 3) > 2) return false;
  }
  return true;
}

/** Whether the bytes are a valid topic filter: UTF-8 without a null character. */
function isFilter(bytes: Buffer): boolean {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return !text.includes('\0');
  } catch {
    return false;
  }
}

/** Splits the gateway's packets, which are short; undefined if the received bytes are not complete packets. */
export function packetsOf(receivedBytes: Buffer): Buffer[] | undefined {
  const packets: Buffer[] = [];
  for (let position = 0; position < receivedBytes.length; ) {
    const end = position + 2 + (receivedBytes[position + 1] ?? 0);
    if (end > receivedBytes.length) return undefined;
    packets.push(receivedBytes.subarray(position, end));
    position = end;
  }
  return packets;
}
