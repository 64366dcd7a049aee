/**
 * Reads the member `raw` of a trace's ping or acknowledgement: the bytes of its uplink in base64 (protocol.md §4). The
 * bytes take precedence over the JSON members. A JSON member that differs from the bytes is an error, since one of the
 * two is not what the lock sent. Errors are left in the `JsonReader`. Pure.
 */

import { isObject, type JsonObject, type JsonReader, showJson } from '../json-reader.js';
import { decodeUplink, encodeUplink } from '../wire/codec.js';
import { isPingUplink, type Uplink } from '../wire/ping.js';
import { readAckUplink, readPingUplink } from '../wire/ping-from-json.js';
import { ackUplinkToJson, pingUplinkToJson } from '../wire/ping-json.js';

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Returned for an uplink that can't be read. The caller must not use it, because the reader has an error. */
const PLACEHOLDER: Uplink = Object.freeze({
  boot: 0,
  sequence: 0,
  timeMs: 0,
  power: Object.freeze({ mode: 'MID', rideTracking: false, airplane: false, recovery: false }),
  kept: 0,
  dropped: 0,
  body: Object.freeze({ kind: 'ack', commandId: 0, result: 'failed', detail: '', highWindow: null }),
});

/**
 * Reads the bytes and compares them with the JSON. An error is left in `reader`.
 *
 * @param value the member `raw`
 * @param json the line's `ping` or `ack`, which may be omitted
 */
export function readRaw(reader: JsonReader, value: unknown, json: unknown, event: 'ping' | 'ack'): Uplink {
  if (typeof value !== 'string' || !BASE64.test(value)) {
    reader.reject(value, event, 'raw', 'the base64 of an uplink');
    return PLACEHOLDER;
  }
  const decoded = decodeUplink(Buffer.from(value, 'base64'));
  if (!decoded.ok) {
    reader.error ??= `${event}.raw can't be read: ${decoded.error.message}`;
    return PLACEHOLDER;
  }
  const uplink = decoded.value;
  if (isPingUplink(uplink) !== (event === 'ping')) {
    reader.error ??= `${event}.raw is ${event === 'ping' ? 'an acknowledgement' : 'a ping'}: expected the event's own`;
    return PLACEHOLDER;
  }
  if (json !== undefined) compareWithJson(reader, uplink, reader.object(json, event, ''), event);
  return uplink;
}

/** Compares the members that the JSON has; omitted members are taken from the bytes. */
function compareWithJson(reader: JsonReader, uplink: Uplink, json: JsonObject, event: 'ping' | 'ack'): void {
  const membersOfBytes = toJson(uplink);
  const membersOfJson = afterTransmission(
    reader,
    { ...membersOfBytes, ...withoutOtherTime(json, membersOfBytes) },
    event,
  );
  if (membersOfJson === null) return;
  for (const member of new Set([...Object.keys(membersOfBytes), ...Object.keys(membersOfJson)])) {
    const [valueOfBytes, valueOfJson] = [membersOfBytes[member], membersOfJson[member]];
    if (JSON.stringify(valueOfBytes) === JSON.stringify(valueOfJson)) continue;
    const show = (value: unknown): string => (isObject(value) ? JSON.stringify(value) : showJson(value));
    reader.error ??= `${event}.${member} is ${show(valueOfJson)}, but raw has ${show(valueOfBytes)}: expected the same`;
    return;
  }
}

/** The JSON's members after encoding and decoding, which rounds numbers; null if they can't be encoded. */
function afterTransmission(reader: JsonReader, json: JsonObject, event: 'ping' | 'ack'): JsonObject | null {
  // Members that the JSON leaves out are those of the bytes, so no default is used.
  const defaults = { boot: undefined, nextSequence: () => undefined, timeMs: undefined, power: PLACEHOLDER.power };
  const read = event === 'ping' ? readPingUplink : readAckUplink;
  const uplink = read(reader, json, event, defaults);
  if (reader.error !== null) return null;
  try {
    const decoded = decodeUplink(encodeUplink(uplink));
    return decoded.ok ? toJson(decoded.value) : null;
  } catch (error) {
    reader.error = `${event} is not what raw has: ${(error as Error).message}`;
    return null;
  }
}

/** A time is given as `date` or as `time_ms`. If the JSON gives one of them, the other is removed. */
function withoutOtherTime(json: JsonObject, membersOfBytes: JsonObject): JsonObject {
  if (json.date !== undefined) return { ...json, time_ms: undefined };
  return json.time_ms !== undefined && membersOfBytes.date !== undefined ? { ...json, date: undefined } : json;
}

function toJson(uplink: Uplink): JsonObject {
  const { body } = uplink;
  const json = body.kind === 'ack' ? ackUplinkToJson({ ...uplink, body }) : pingUplinkToJson({ ...uplink, body });
  // Its type has no index signature, as an interface has none.
  return json as unknown as JsonObject;
}
