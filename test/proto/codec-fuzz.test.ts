// Checks the codec (proto/wire/codec.ts) on random input: decoding never throws, and encoded messages decode to the
// same messages (protocol.md §1). The seed is fixed, so each run is the same. A failure prints the smallest failing
// case, which should become a line of test/vectors.
import fc from 'fast-check';
import t from 'tap';
import {
  decodeDownlink,
  decodeUplink,
  describeUplink,
  encodeDownlink,
  encodeUplink,
  UPLINK_MAX_BYTES,
} from '../../proto/wire/codec.js';
import type { Command, Downlink, HighWindow, Ping, Uplink } from '../../proto/wire/ping.js';
import type { PingField, PingType } from '../../proto/wire/ping-fields.js';
import { REASONS, type Reason, reasonFromNumber } from '../../proto/wire/reasons.js';
import { bytesOf, readVectors } from '../helpers/vectors.js';
import { fieldsOf, PING_TYPES } from '../helpers/wire/full-pings.js';

/** Any number will do; this one is a date. */
const SEED = 20_261_120;
/** The number of random values for each property. */
const RUNS = 5000;
const REJECTIONS = ['too-long', 'undecodable', 'no-boot', 'no-sequence', 'no-time', 'no-body'];

const uint32 = fc.integer({ min: 0, max: 0xffffffff });
const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
/** Any text without half a surrogate pair, which UTF-8 can't represent. */
const text = fc.string({ unit: 'grapheme', maxLength: 40 });
const power = fc.record({
  mode: fc.constantFrom('MID', 'HIGH'),
  rideTracking: fc.boolean(),
  airplane: fc.boolean(),
  recovery: fc.boolean(),
});
const reason: fc.Arbitrary<Reason> = fc.oneof(
  fc.constantFrom(...REASONS.map(({ name }) => name)),
  int32.map(reasonFromNumber),
);
const LAST_MINUTE_OF_DAY = 1439;
/** The daily hours in which a lock in the mode HIGH stays connected. */
const highWindow = (lastMinute: number): fc.Arbitrary<HighWindow> => {
  const minute = fc.integer({ min: 0, max: lastMinute });
  return fc.record({ fromMinute: minute, toMinute: minute, utcOffsetMinutes: int32 });
};

/** Any value that the wire can carry in a field, in our units, so that encoding does not round it. */
function anyValue({ value }: PingField): fc.Arbitrary<unknown> {
  if (value.kind === 'reason') return reason;
  if (value.kind === 'word') return fc.constantFrom(...value.words);
  if (value.kind === 'text') return text;
  if (value.kind === 'count') return uint32;
  return (value.signed ? int32 : uint32).map((count) => count / value.perUnit);
}

/**
 * Any ping of a type, with all fields of the table that the type carries; fields that may be missing may be missing.
 */
function anyPing(kind: PingType): fc.Arbitrary<Ping> {
  const members: Record<string, fc.Arbitrary<unknown>> = {
    kind: fc.constant(kind),
    ...(kind === 'close_connection' && { reason: fc.constant('REASON_CLOSE_CONNECTION') }),
  };
  const inPosition: Record<string, fc.Arbitrary<unknown>> = {};
  const optional: string[] = [];
  for (const [property, field] of fieldsOf(kind)) {
    const value = anyValue(field);
    if (field.presence === 'position') inPosition[property] = value;
    else members[property] = field.presence === 'nullable' ? fc.option(value) : value;
    if (field.presence === 'optional') optional.push(property);
  }
  const position = fc.record(inPosition);
  if (kind === 'cellular') members.position = fc.option(position);
  if (kind === 'gps') members.position = position;
  const requiredKeys = Object.keys(members).filter((member) => !optional.includes(member));
  // The members are those of the table, which the type does not follow.
  return fc.record(members, { requiredKeys }) as fc.Arbitrary<unknown> as fc.Arbitrary<Ping>;
}
const ping = fc.oneof(...PING_TYPES.map(anyPing));
// The wire carries any number as a minute, and acknowledgements are decoded as they come. In commands, below, the
// encoder accepts only minutes of a day.
const ack = fc.record({
  kind: fc.constant('ack'),
  commandId: uint32,
  result: fc.constantFrom('ok', 'rejected', 'failed'),
  detail: text,
  highWindow: fc.option(highWindow(0xffffffff)),
});
const uplink: fc.Arbitrary<Uplink> = fc.record({
  boot: uint32,
  sequence: uint32,
  timeMs: fc.maxSafeInteger(),
  power,
  kept: uint32,
  dropped: uint32,
  body: fc.oneof(ping, ack),
});

const powerChange = fc.record(
  {
    mode: fc.constantFrom('MID', 'HIGH'),
    rideTracking: fc.boolean(),
    airplane: fc.boolean(),
    recovery: fc.boolean(),
    highWindow: highWindow(LAST_MINUTE_OF_DAY),
  },
  { requiredKeys: [] },
);
const command: fc.Arbitrary<Command> = fc.oneof(
  fc.constantFrom(...(['unlock', 'lock', 'locate-gps', 'locate-cell', 'reset'] as const)).map((type) => ({ type })),
  uint32.map((seconds) => ({ type: 'siren' as const, seconds })),
  powerChange.map((settings) => ({ type: 'set-power' as const, ...settings })),
);
const downlink: fc.Arbitrary<Downlink> = fc.record({
  id: uint32,
  expiresMs: fc.maxSafeNat(),
  command,
});

/** Corrupted bytes: the start of one sample and the end of another, with up to four bytes changed. */
const corrupted = (samples: readonly Uint8Array[]): fc.Arbitrary<Uint8Array> => {
  const sample = fc.constantFrom(...samples);
  const fraction = fc.double({ min: 0, max: 1, noNaN: true });
  const changes = fc.array(fc.tuple(fraction, fc.integer({ min: 1, max: 255 })), { maxLength: 4 });
  return fc.tuple(sample, sample, changes, fraction, fraction).map(([first, second, flips, cut, join]) => {
    const head = first.slice(0, Math.round(first.length * cut));
    const bytes = Uint8Array.from([...head, ...second.slice(Math.round(second.length * join))]);
    for (const [place, bits] of flips) {
      const index = Math.min(bytes.length - 1, Math.floor(bytes.length * place));
      if (index >= 0) bytes[index] = (bytes[index] ?? 0) ^ bits;
    }
    return bytes;
  });
};

const samplesOf = (name: 'pings' | 'downlinks') => readVectors(name).map(({ hex }) => bytesOf(hex));

/** Checks a property with many random values, for about a second. Throws a counterexample with its seed and path. */
function checkAlways<T>(arbitrary: fc.Arbitrary<T>, holds: (value: T) => boolean, runs = RUNS): void {
  fc.assert(fc.property(arbitrary, holds), { seed: SEED, numRuns: runs });
}

/**
 * Whether bytes are rejected with a message, or decode to an uplink that can be encoded again, and described in a line
 * without control characters.
 */
function isHandled(bytes: Uint8Array): boolean {
  const result = decodeUplink(bytes);
  if (!result.ok) return REJECTIONS.includes(result.error.code) && result.error.message.length > 0;
  const again = decodeUplink(encodeUplink(result.value));
  return again.ok && isSame(again.value, result.value) && /^[^\p{C}]+$/u.test(describeUplink(result.value));
}

function isSame(a: object, b: object): boolean {
  return JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
}

/**
 * The value with its members sorted. Objects with a null prototype, as the generator makes, become ordinary objects.
 */
function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, member]) => [key, sorted(member)]);
  return Object.fromEntries(entries.sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)));
}

t.test('random bytes are rejected, or decode to an uplink that can be encoded again', async () => {
  checkAlways(fc.uint8Array({ maxLength: 80 }), isHandled);
  // Around the maximum length of an uplink, 1024 bytes.
  checkAlways(fc.uint8Array({ minLength: 1000, maxLength: 1100 }), isHandled, 200);
});

t.test('corrupted samples are rejected, or decode to an uplink that can be encoded again', async (t) => {
  const samples = samplesOf('pings');
  let accepted = 0;
  checkAlways(corrupted(samples), (bytes) => {
    if (decodeUplink(bytes).ok) accepted += 1;
    return isHandled(bytes);
  });
  t.ok(accepted > RUNS / 20, 'over 5 % of them still decode, so both cases are tested');
});

t.test('corrupted downlinks are rejected with a code, or accepted', async () => {
  checkAlways(corrupted(samplesOf('downlinks')), (bytes) => {
    const result = decodeDownlink(bytes);
    return result.ok || ['undecodable', 'no-command'].includes(result.error.code);
  });
});

t.test('each prefix of each sample is rejected, or decodes to an uplink that can be encoded again', async (t) => {
  for (const { name, hex } of readVectors('pings')) {
    const bytes = bytesOf(hex);
    const lengths = Array.from({ length: Math.min(bytes.length, 100) }, (_, length) => length);
    t.ok(
      lengths.every((length) => isHandled(bytes.subarray(0, length))),
      name,
    );
  }
});

t.test('an encoded message decodes to the same message', async () => {
  checkAlways(uplink, (value) => {
    const result = decodeUplink(encodeUplink(value));
    return result.ok && isSame(result.value, value);
  });
  checkAlways(downlink, (value) => {
    const result = decodeDownlink(encodeDownlink(value));
    return result.ok && isSame(result.value, value);
  });
});

t.test('the order of an uplink’s members does not change its bytes, and it fits the maximum length', async () => {
  checkAlways(uplink, (value) => {
    const bytes = encodeUplink(value);
    const again = encodeUplink(sorted(value) as Uplink);
    return bytes.length <= UPLINK_MAX_BYTES && Buffer.from(bytes).equals(again);
  });
});

t.test('an unknown field of a later version is ignored', async () => {
  // The fields of an uplink have the numbers 1 to 10. Up to 15, the number shifted by 3 bits is one byte; its low bits,
  // 0, say that a varint follows, and values up to 127 are one byte too.
  const unknownField = fc.tuple(fc.integer({ min: 11, max: 15 }), fc.integer({ min: 0, max: 127 }));
  checkAlways(fc.tuple(uplink, unknownField), ([value, [field, number]]) => {
    const bytes = Uint8Array.from([...encodeUplink(value), field << 3, number]);
    const result = decodeUplink(bytes);
    return result.ok && isSame(result.value, value);
  });
});

t.test('if the bytes of two uplinks are joined, the envelope and body of the second count', async () => {
  checkAlways(fc.tuple(uplink, uplink), ([first, second]) => {
    const bytes = Uint8Array.from([...encodeUplink(first), ...encodeUplink(second)]);
    if (bytes.length > UPLINK_MAX_BYTES) return true;
    const result = decodeUplink(bytes);
    if (!result.ok) return false;
    const { boot, sequence, timeMs, body } = result.value;
    return (
      [boot, sequence, timeMs].join() === [second.boot, second.sequence, second.timeMs].join() &&
      body.kind === second.body.kind
    );
  });
});

t.test('encoding a value that does not fit throws instead of truncating it', async () => {
  const outOfRange = fc.oneof(
    fc.integer({ max: -1 }),
    fc.integer({ min: 2 ** 32, max: 2 ** 53 }),
    fc.constant(Number.NaN),
  );
  const member = fc.constantFrom('boot', 'sequence', 'kept', 'dropped');
  checkAlways(fc.tuple(uplink, member, outOfRange), ([value, name, number]) => {
    try {
      encodeUplink({ ...value, [name]: number });
      return false;
    } catch (error) {
      return (error as { code?: string }).code === 'unencodable' && (error as Error).message.startsWith(`${name} `);
    }
  });
});
