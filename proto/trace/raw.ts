/**
 * A ping of a trace may carry the bytes of its uplink, base64 (protocol.md §4). The bytes win, and a member of the JSON
 * that says something else is an error: one of the two is not what happened.
 */

import { isObject, type JsonObject, type JsonReader, showJson } from '../json-reader.js';
import { decodeUplink, encodeUplink } from '../wire/codec.js';
import { isPingUplink, type Uplink } from '../wire/ping.js';
import { readAckUplink, readPingUplink } from '../wire/ping-from-json.js';
import { ackUplinkToJson, pingUplinkToJson } from '../wire/ping-json.js';

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Stands for an uplink that can't be read, until the line is refused. */
const STAND_IN: Uplink = Object.freeze({
  boot: 0,
  sequence: 0,
  timeMs: 0,
  power: Object.freeze({ mode: 'MID', rideTracking: false, airplane: false, recovery: false }),
  kept: 0,
  dropped: 0,
  body: Object.freeze({ kind: 'ack', commandId: 0, result: 'failed', detail: '', highWindow: null }),
});

/**
 * Reads the bytes and holds them against the JSON beside them; what is wrong is in the reader.
 *
 * @param value the member `raw`
 * @param beside the line's `ping` or `ack`, which may be left out
 */
export function readRaw(reader: JsonReader, value: unknown, beside: unknown, event: 'ping' | 'ack'): Uplink {
  if (typeof value !== 'string' || !BASE64.test(value)) {
    reader.expect(value, event, 'raw', 'the base64 of an uplink');
    return STAND_IN;
  }
  const decoded = decodeUplink(Buffer.from(value, 'base64'));
  if (!decoded.ok) {
    reader.error ??= `${event}.raw can't be taken: ${decoded.error.message}`;
    return STAND_IN;
  }
  const uplink = decoded.value;
  if (isPingUplink(uplink) !== (event === 'ping')) {
    reader.error ??= `${event}.raw is ${event === 'ping' ? 'an acknowledgement' : 'a ping'}: expected the event's own`;
    return STAND_IN;
  }
  if (beside !== undefined) compare(reader, uplink, reader.object(beside, event, ''), event);
  return uplink;
}

/** Only what the JSON says is compared: members left out are those of the bytes. */
function compare(reader: JsonReader, uplink: Uplink, beside: JsonObject, event: 'ping' | 'ack'): void {
  const ofBytes = toJson(uplink);
  const ofJson = asSent(reader, { ...ofBytes, ...withoutOtherTime(beside, ofBytes) }, event);
  if (ofJson === null) return;
  for (const member of new Set([...Object.keys(ofBytes), ...Object.keys(ofJson)])) {
    const [bytes, json] = [ofBytes[member], ofJson[member]];
    if (JSON.stringify(bytes) === JSON.stringify(json)) continue;
    const shown = [bytes, json].map((one) => (isObject(one) ? JSON.stringify(one) : showJson(one)));
    reader.error ??= `${event}.${member} is ${shown[1]}, but raw has ${shown[0]}: expected the same`;
    return;
  }
}

/** The JSON's members after they went over the wire, where numbers are rounded; null where they can't go over it. */
function asSent(reader: JsonReader, json: JsonObject, event: 'ping' | 'ack'): JsonObject | null {
  const defaults = { boot: undefined, nextSequence: () => undefined, timeMs: undefined, power: STAND_IN.power };
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

/** A time stands as `date` or as `time_ms`; the one that is given takes the place of the other. */
function withoutOtherTime(beside: JsonObject, ofBytes: JsonObject): JsonObject {
  if (beside.date !== undefined) return { ...beside, time_ms: undefined };
  return beside.time_ms !== undefined && ofBytes.date !== undefined ? { ...beside, date: undefined } : beside;
}

function toJson(uplink: Uplink): JsonObject {
  const { body } = uplink;
  const json = body.kind === 'ack' ? ackUplinkToJson({ ...uplink, body }) : pingUplinkToJson({ ...uplink, body });
  return json as unknown as JsonObject;
}
