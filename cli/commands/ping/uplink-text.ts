/**
 * `lockgate ping decode|encode`: converts one uplink (a lock's ping or acknowledgement of a command) between its bytes
 * (hex or base64) and JSON.
 */

import { LockgateError } from '../../../proto/errors.js';
import { isObject } from '../../../proto/json-reader.js';
import { decodeUplink, describeUplink, encodeUplink } from '../../../proto/wire/codec.js';
import type { Uplink } from '../../../proto/wire/ping.js';
import { uplinkFromJson } from '../../../proto/wire/ping-from-json.js';
import { ackUplinkToJson, pingUplinkToJson } from '../../../proto/wire/ping-json.js';
import { paint, print, printJson, printNote, sanitizeLine } from '../../terminal/output.js';

/** The flags of `lockgate ping decode`. */
export interface DecodeFlags {
  readonly from?: 'hex' | 'base64';
  readonly json?: boolean;
}

/** The flags of `lockgate ping encode`. */
export interface EncodeFlags {
  readonly to: 'hex' | 'base64';
  readonly json?: boolean;
}

/** The maximum length of the input; no uplink is longer in any encoding. */
const MAX_INPUT_BYTES = 64 * 1024;

/**
 * Prints the uplink that the bytes encode. @param given the bytes as text; undefined to read the standard input
 * @throws LockgateError `input-…` if they are neither hex nor base64, or not an uplink
 */
export async function decodePing(given: string | undefined, flags: DecodeFlags): Promise<void> {
  const bytes = readBytes(given ?? (await readInput()), flags.from);
  const uplink = decodeUplink(bytes);
  if (!uplink.ok) throw new LockgateError('input-uplink', uplink.error.message);
  const json = toJson(uplink.value);
  const sizes = sizesOf(bytes);
  if (flags.json) return printJson({ ...json, ...sizes });
  print(paint('bold', sanitizeLine(describeUplink(uplink.value))));
  print(JSON.stringify(json.ping ?? json.ack, null, 2));
  print(describeSizes(sizes));
}

/**
 * Prints the bytes of an uplink. @param given the uplink's JSON; undefined to read the standard input
 * @throws LockgateError `input-…` if it is not JSON, not an uplink, or can't be encoded
 */
export async function encodePing(given: string | undefined, flags: EncodeFlags): Promise<void> {
  const bytes = encode(readJson(given ?? (await readInput())));
  const buffer = Buffer.from(bytes);
  const sizes = sizesOf(bytes);
  if (flags.json) return printJson({ hex: buffer.toString('hex'), base64: buffer.toString('base64'), ...sizes });
  print(buffer.toString(flags.to));
  printNote(describeSizes(sizes));
}

function toJson(uplink: Uplink): { readonly ping?: object; readonly ack?: object } {
  const { body } = uplink;
  if (body.kind === 'ack') return { ack: ackUplinkToJson({ ...uplink, body }) };
  return { ping: pingUplinkToJson({ ...uplink, body }) };
}

const HEX = /^(?:[0-9a-f]{2})*$/i;
/** Base64 in the ordinary or the URL alphabet, with or without the `=` at the end. */
const BASE64 = /^(?:[A-Za-z0-9+/_-]{4})*(?:[A-Za-z0-9+/_-]{2}(?:==)?|[A-Za-z0-9+/_-]{3}=?)?$/;

/** Text that is both valid hex and valid base64 counts as hex, because most logs print hex. */
function readBytes(text: string, encoding: DecodeFlags['from']): Buffer {
  // Hex is also written as `08 29`, `08:29` or `0x08 0x29`.
  const compact = text.replace(/[\s:]|0x/g, '');
  if (compact === '') throw new LockgateError('input-bytes', 'there are no bytes: expected hex or base64');
  if (encoding !== 'base64' && HEX.test(compact)) return Buffer.from(compact, 'hex');
  const trimmed = text.replace(/\s/g, '');
  if (encoding !== 'hex' && BASE64.test(trimmed)) return Buffer.from(trimmed, 'base64');
  throw new LockgateError(
    'input-bytes',
    `the text is not ${encoding ?? 'hex or base64'}: expected the bytes of an uplink`,
  );
}

/** Also accepts the output of `ping decode --json` and a line of a trace, which have the uplink in `ping` or `ack`. */
function readJson(text: string): Uplink {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new LockgateError('input-json', `the text is not JSON (${(error as Error).message})`);
  }
  const uplinkJson = isObject(json) ? (json.ping ?? json.ack ?? json) : json;
  const uplink = uplinkFromJson(uplinkJson);
  if (!uplink.ok) throw new LockgateError('input-uplink', uplink.error.message);
  return uplink.value;
}

/** Encodes the uplink. @throws LockgateError `input-uplink` if a value is out of range */
function encode(uplink: Uplink): Uint8Array {
  try {
    return encodeUplink(uplink);
  } catch (error) {
    if (error instanceof LockgateError) throw new LockgateError('input-uplink', error.message);
    throw error;
  }
}

/** The size of an encoded uplink, and of the MQTT packet with it. */
interface Sizes {
  readonly protobuf_bytes: number;
  readonly publish_bytes: number;
}

/** Bytes of the topic `up` with its length, and of the packet identifier of QoS 1 (MQTT 3.1.1 §3.3). */
const TOPIC_BYTES = 2 + 2;
const PACKET_ID_BYTES = 2;

function sizesOf(bytes: Uint8Array): Sizes {
  const remainingBytes = TOPIC_BYTES + PACKET_ID_BYTES + bytes.length;
  // The remaining length takes a byte for each 7 bits (MQTT 3.1.1 §2.2.3).
  const lengthBytes = remainingBytes < 2 ** 7 ? 1 : remainingBytes < 2 ** 14 ? 2 : 3;
  return { protobuf_bytes: bytes.length, publish_bytes: 1 + lengthBytes + remainingBytes };
}

function describeSizes(sizes: Sizes): string {
  const { protobuf_bytes: protobuf, publish_bytes: publish } = sizes;
  return `${protobuf} bytes of protobuf; ${publish} bytes as an MQTT PUBLISH at QoS 1, before TLS and TCP/IP.`;
}

async function readInput(): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of process.stdin) {
    size += (chunk as Buffer).length;
    if (size > MAX_INPUT_BYTES)
      throw new LockgateError('input-long', 'the input is longer than 64 KiB: expected one uplink');
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString('utf8');
}
