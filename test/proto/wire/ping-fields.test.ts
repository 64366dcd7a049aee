// Checks the table of ping fields (proto/wire/ping-fields.ts): it agrees with lock.proto, and all code that handles
// pings handles every field of the table. If some code omits a field, this test fails.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { newBelief } from '../../../proto/power/judge/belief.js';
import { judge } from '../../../proto/power/judge/judge.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import { CanonicalLine } from '../../../proto/trace/canonical-line.js';
import { TraceReader } from '../../../proto/trace/reader.js';
import { traceEventLine } from '../../../proto/trace/writer.js';
import { decodeUplink, describePing, encodeUplink } from '../../../proto/wire/codec.js';
import { fingerprintOf } from '../../../proto/wire/fingerprint.js';
import { parseMac } from '../../../proto/wire/mac.js';
import { DEFAULT_POWER, fieldValue, type Ping, type PingUplink, type Uplink } from '../../../proto/wire/ping.js';
import {
  PING_FIELD_ROWS,
  PING_FIELDS,
  type PingField,
  type PingProperty,
  type PingType,
} from '../../../proto/wire/ping-fields.js';
import { pingFromJson } from '../../../proto/wire/ping-from-json.js';
import { pingToJson } from '../../../proto/wire/ping-json.js';
import { root } from '../../helpers/house/our-files.js';
import { bytesOf, readVectors } from '../../helpers/vectors.js';
import { fieldsOf, fullPing, PING_TYPES, sampleValue, withField } from '../../helpers/wire/full-pings.js';

const SCHEMA = readFileSync(join(root, 'proto/lock.proto'), 'utf8');
const MESSAGES: Readonly<Record<PingType, string>> = {
  cellular: 'CellularPing',
  gps: 'GpsPing',
  close_connection: 'CloseConnectionPing',
};

/** The fields of a message in the schema: name, number, type, and whether the field is optional. */
function schemaFields(message: string): string[] {
  const body = new RegExp(`^message ${message} \\{\\n([^}]*)\\}`, 'm').exec(SCHEMA)?.[1] ?? '';
  const fields = body.matchAll(/^\s*(optional )?(\w+) (\w+) = (\d+);/gm);
  return [...fields].map(([, optional = '', type, name, number]) => `${optional}${type} ${name} = ${number}`);
}

/**
 * The fields of a ping type as the table has them, in the form of `schemaFields`. A signed number may be sint32 or
 * sfixed32.
 */
function tableFields(type: PingType): string[] {
  return fieldsOf(type).map(([, { wire, value, presence }]) => {
    const hasPresence =
      presence === 'nullable' || presence === 'optional' || (presence === 'position' && type === 'cellular');
    const types = { reason: 'Reason', count: 'uint32', text: 'string', number: 'uint32' };
    let wireType: string = value.kind === 'word' ? value.type : types[value.kind];
    if (value.kind === 'number' && value.signed)
      wireType = SCHEMA.includes(`sfixed32 ${wire.name} `) ? 'sfixed32' : 'sint32';
    return `${hasPresence ? 'optional ' : ''}${wireType} ${wire.name} = ${wire.numbers[type]}`;
  });
}

t.test('the table and lock.proto have the same fields, with the same numbers and types', async (t) => {
  for (const type of PING_TYPES) {
    t.strictSame(tableFields(type).sort(), schemaFields(MESSAGES[type]).sort(), type);
    t.ok(fieldsOf(type).length > 0, 'the type has fields');
  }
});

/** The fields of the first version. Older locks send no others. */
const FIRST_VERSION = [
  ...['reason', 'lock_state', 'battery_percent', 'firmware_version', 'ebike_voltage', 'tether_state'],
  ...['latitude', 'longitude', 'speed', 'direction', 'uncertainty'],
];

t.test('a field that was added after the first version is optional', async (t) => {
  const later = PING_FIELD_ROWS.filter(([, { json }]) => !FIRST_VERSION.includes(json));
  for (const [property, { presence }] of later) t.equal(presence, 'optional', property);
  t.equal(PING_FIELD_ROWS.length - later.length, FIRST_VERSION.length, 'all fields of the first version still exist');
});

const PARSED_MAC = parseMac('A4C138F0E1D2');
const AT_MS = Date.UTC(2026, 10, 20, 6);

function uplinkOf(body: Ping): PingUplink {
  return { boot: 4, sequence: 12, timeMs: AT_MS, power: DEFAULT_POWER, kept: 0, dropped: 0, body };
}

/** The ping after encoding and decoding. */
function throughBytes(ping: Ping): unknown {
  const decoded = decodeUplink(encodeUplink(uplinkOf(ping)));
  return decoded.ok ? decoded.value.body : decoded.error;
}

function throughJson(ping: Ping): unknown {
  const read = pingFromJson(JSON.parse(JSON.stringify(pingToJson(ping))));
  return read.ok ? read.value : read.error;
}

/** The ping after writing a trace line and reading it on the fast path and on the slow path. */
function throughTrace(ping: Ping): unknown[] {
  if (!PARSED_MAC.ok) throw new Error(PARSED_MAC.error.message);
  const uplink = uplinkOf(ping);
  const line = traceEventLine({ event: 'ping', atMs: AT_MS, mac: PARSED_MAC.value, source: 'lock', uplink });
  const bytes = Buffer.from(line);
  const reader = new TraceReader();
  reader.read('{"trace":"lockgate","version":1,"locks":{}}');
  const event = reader.read(line);
  const slow = event.ok && event.value?.event === 'ping' ? event.value.uplink.body : event;
  return [new CanonicalLine().read(bytes, 0, bytes.length)?.body, slow];
}

/** The full ping with another value of the field, and, if the field may be missing, without it. */
function variants(ping: Ping, property: PingProperty, field: PingField): Ping[] {
  // The second sample value (variant 1); the full ping has the first. The offset makes fields differ from each other.
  const index = PING_FIELD_ROWS.findIndex(([name]) => name === property);
  const changed = withField(ping, property, sampleValue(field, 1, index + 1));
  if (field.presence === 'nullable') return [changed, withField(ping, property, null)];
  if (field.presence === 'optional') return [changed, withField(ping, property, undefined)];
  if (field.presence === 'position' && ping.kind === 'cellular') return [changed, { ...ping, position: null }];
  return [changed];
}

t.test('each field survives bytes, JSON and both paths of the trace reader, and changes the fingerprint', async (t) => {
  for (const type of PING_TYPES) {
    const full = fullPing(type);
    for (const [property, field] of fieldsOf(type)) {
      t.not(fieldValue(full, property), undefined, `${type}: ${property} has a value`);
      for (const other of variants(full, property, field)) {
        const what = `${type}: ${property} ${JSON.stringify(fieldValue(other, property))}`;
        t.strictSame(throughBytes(other), other, `${what} in bytes`);
        t.strictSame(throughJson(other), other, `${what} in JSON`);
        t.strictSame(throughTrace(other), [other, other], `${what} in a trace`);
        t.notSame(pingToJson(other), pingToJson(full), `${what} changes the JSON`);
        t.not(fingerprintOf(uplinkOf(other)), fingerprintOf(uplinkOf(full)), `${what} changes the fingerprint`);
      }
    }
    t.strictSame([throughBytes(full), throughJson(full), ...throughTrace(full)], [full, full, full, full], type);
  }
});

t.test('the JSON of a GPS ping has its members in the order of the table', async (t) => {
  const gps = Object.keys(pingToJson(fullPing('gps')));
  t.strictSame(gps, ['ping_type', ...fieldsOf('gps').map(([, { json }]) => json)]);
});

t.test('the line that describes a ping shows each field that the table says to show', async (t) => {
  for (const type of PING_TYPES) {
    const full = fullPing(type);
    for (const [property, field] of fieldsOf(type)) {
      const isShown = field.line !== null || field.presence === 'position';
      for (const other of variants(full, property, field))
        t.equal(describePing(other) !== describePing(full), isShown, `${type}: ${property}`);
    }
  }
});

/** The message of the out-of-range finding about a ping; undefined if there is none. */
function outOfRange(body: Ping): string | undefined {
  if (!PARSED_MAC.ok) throw new Error(PARSED_MAC.error.message);
  const belief = newBelief(POWER_MODEL, PARSED_MAC.value, AT_MS);
  const event = {
    type: 'uplink',
    uplink: uplinkOf(body),
    source: 'lock',
    credential: 1,
    atMs: AT_MS,
    novelty: 'new',
  } as const;
  const { findings } = judge(POWER_MODEL, belief, event);
  return findings.find(({ rule }) => rule === 'out-of-range')?.message;
}

t.test('out-of-range reports a value just outside its range by its name, but not the limits themselves', async (t) => {
  for (const type of PING_TYPES) {
    const full = fullPing(type);
    t.equal(outOfRange(full), undefined, type);
    for (const [property, { plausible, label, unit, value }] of fieldsOf(type)) {
      if (plausible === undefined) continue;
      const { min, max, exclusiveMax } = plausible;
      const step = value.kind === 'number' ? 1 / value.perUnit : 1;
      const outside = [
        min - step,
        ...(max === undefined ? [] : [max + step]),
        ...(exclusiveMax === undefined ? [] : [exclusiveMax]),
      ];
      // A field has one of the two upper limits, or none; for a missing one, the lower limit is tested again.
      for (const limit of [min, max ?? min, (exclusiveMax ?? min + step) - step])
        t.equal(outOfRange(withField(full, property, limit)), undefined, `${type}: ${property} ${limit}`);
      for (const wrong of [...outside, Number.NaN])
        t.equal(outOfRange(withField(full, property, wrong)), `Out of range: ${label} ${wrong}${unit}.`);
    }
  }
});

t.test(
  'some sample in test/vectors has each field with a value, and some sample lacks each field that may be missing',
  async (t) => {
    const seen = new Set<string>();
    for (const { hex, uplink } of readVectors('pings')) {
      const ping = (uplink as { readonly ping?: Readonly<Record<string, unknown>> } | undefined)?.ping;
      if (ping === undefined || bytesOf(hex).length === 0) continue;
      for (const [, { json }] of PING_FIELD_ROWS) {
        const isThere = ping[json] !== undefined && ping[json] !== null;
        // 'unknown' is the word for the number 0 on the wire.
        const isZero = [0, '', 'unknown'].includes(ping[json] as string);
        seen.add(`${ping.ping_type} ${json} ${isThere ? (isZero ? 'zero' : 'there') : 'missing'}`);
      }
    }
    for (const type of PING_TYPES)
      for (const [, { json, presence }] of fieldsOf(type)) {
        t.ok(seen.has(`${type} ${json} there`), `${type}: ${json} with a value`);
        if (presence !== 'nullable' && presence !== 'optional') continue;
        t.ok(seen.has(`${type} ${json} zero`), `${type}: ${json} as zero`);
        t.ok(seen.has(`${type} ${json} missing`), `${type}: ${json} omitted`);
      }
  },
);

/** The path of each value in an object, such as `power.mode`. */
function paths(value: object, above: readonly string[] = []): string[][] {
  return Object.entries(value).flatMap(([name, member]) =>
    typeof member === 'object' && member !== null ? paths(member, [...above, name]) : [[...above, name]],
  );
}

/** A copy of the object with another value at the path, of the same type. */
function changedAt(value: object, [name = '', ...rest]: readonly string[]): object {
  const member = (value as Record<string, unknown>)[name];
  if (rest.length > 0) return { ...value, [name]: changedAt(member as object, rest) };
  const words: Readonly<Record<string, string>> = { MID: 'HIGH', ok: 'failed' };
  const other =
    typeof member === 'string' ? (words[member] ?? `${member}x`) : typeof member === 'boolean' ? !member : 99;
  return { ...value, [name]: other };
}

t.test('the fingerprint covers the envelope and acknowledgements, but not the key: boot and sequence', async (t) => {
  const highWindow = { fromMinute: 1, toMinute: 2, utcOffsetMinutes: 3 };
  const ack: Uplink = {
    ...uplinkOf(fullPing('gps')),
    body: { kind: 'ack', commandId: 7, result: 'ok', detail: 'done', highWindow },
  };
  for (const path of paths(ack)) {
    if (path.join('.') === 'body.kind') continue;
    const isKey = ['boot', 'sequence'].includes(path.join('.'));
    const changed = changedAt(ack, path) as Uplink;
    t.equal(fingerprintOf(changed) === fingerprintOf(ack), isKey, path.join('.'));
  }
  t.not(fingerprintOf({ ...ack, body: { ...ack.body, highWindow: null } as Uplink['body'] }), fingerprintOf(ack));
});

t.test('the table explains each field in a sentence', async (t) => {
  for (const [property, { doc, json }] of PING_FIELD_ROWS) {
    t.match(doc, /^[A-Z].*\.$/, property);
    t.match(json, /^[a-z_]+$/, property);
  }
  t.ok(Object.isFrozen(PING_FIELDS));
});
