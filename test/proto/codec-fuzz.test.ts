// The codec on what a generator thinks of: nonsense never throws, and what is encoded comes back. A seed is fixed, so
// that a run repeats; a failure prints the smallest case that breaks, to become a line of test/vectors.
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

const SEED = 20_261_120;
const RUNS = 5000;
const REJECTIONS = ['too-long', 'undecodable', 'no-boot', 'no-sequence', 'no-time', 'no-body'];

const uint32 = fc.integer({ min: 0, max: 0xffffffff });
const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
/** Half a surrogate pair has no bytes; the rest of Unicode has. */
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
const highWindow = (lastMinute: number): fc.Arbitrary<HighWindow> => {
  const minute = fc.integer({ min: 0, max: lastMinute });
  return fc.record({ fromMinute: minute, toMinute: minute, utcOffsetMinutes: int32 });
};

/** Any value that the wire can carry in a field, in our units, so that nothing is rounded away. */
function anyValue({ value }: PingField): fc.Arbitrary<unknown> {
  if (value.kind === 'reason') return reason;
  if (value.kind === 'word') return fc.constantFrom(...value.words);
  if (value.kind === 'text') return text;
  if (value.kind === 'count') return uint32;
  return (value.signed ? int32 : uint32).map((count) => count / value.perUnit);
}

/** Any ping of a type: every field of the table that it carries, each of those that may be missing there or not. */
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
  return fc.record(members, { requiredKeys }) as fc.Arbitrary<unknown> as fc.Arbitrary<Ping>;
}
const ping = fc.oneof(...PING_TYPES.map(anyPing));
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

const change = fc.record(
  {
    mode: fc.constantFrom('MID', 'HIGH'),
    rideTracking: fc.boolean(),
    airplane: fc.boolean(),
    recovery: fc.boolean(),
    highWindow: highWindow(1439),
  },
  { requiredKeys: [] },
);
const command: fc.Arbitrary<Command> = fc.oneof(
  fc.constantFrom(...(['unlock', 'lock', 'locate-gps', 'locate-cell', 'reset'] as const)).map((type) => ({ type })),
  uint32.map((seconds) => ({ type: 'siren' as const, seconds })),
  change.map((part) => ({ type: 'set-power' as const, ...part })),
);
const downlink: fc.Arbitrary<Downlink> = fc.record({
  id: uint32,
  expiresMs: fc.maxSafeNat(),
  command,
});

/** Bytes of a sample that were hurt on the way: bits flipped, cut, or with a piece of another sample in them. */
const hurt = (samples: readonly Uint8Array[]): fc.Arbitrary<Uint8Array> => {
  const sample = fc.constantFrom(...samples);
  const place = fc.double({ min: 0, max: 1, noNaN: true });
  const flips = fc.array(fc.tuple(place, fc.integer({ min: 1, max: 255 })), { maxLength: 4 });
  return fc.tuple(sample, sample, flips, place, place).map(([first, second, hits, cut, join]) => {
    const head = first.slice(0, Math.round(first.length * cut));
    const bytes = Uint8Array.from([...head, ...second.slice(Math.round(second.length * join))]);
    for (const [at, bits] of hits) {
      const index = Math.min(bytes.length - 1, Math.floor(bytes.length * at));
      if (index >= 0) bytes[index] = (bytes[index] ?? 0) ^ bits;
    }
    return bytes;
  });
};

const samplesOf = (name: 'pings' | 'downlinks') => readVectors(name).map(({ hex }) => bytesOf(hex));

/** Runs a property so often that it takes about a second; a counterexample is thrown, with its seed and path. */
function always<T>(arbitrary: fc.Arbitrary<T>, holds: (value: T) => boolean, runs = RUNS): void {
  fc.assert(fc.property(arbitrary, holds), { seed: SEED, numRuns: runs });
}

/** A stranger's bytes are refused in words, or are a message that our encoder can say again and people can read. */
function isHandled(bytes: Uint8Array): boolean {
  const result = decodeUplink(bytes);
  if (!result.ok) return REJECTIONS.includes(result.error.code) && result.error.message.length > 0;
  const again = decodeUplink(encodeUplink(result.value));
  return again.ok && isSame(again.value, result.value) && /^[^\p{C}]+$/u.test(describeUplink(result.value));
}

function isSame(a: object, b: object): boolean {
  return JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
}

/** Members in one order; null prototypes of the generator and our own objects are alike. */
function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, member]) => [key, sorted(member)]);
  return Object.fromEntries(entries.sort(([a], [b]) => (String(a) < String(b) ? -1 : 1)));
}

t.test('random bytes are handled', async () => {
  always(fc.uint8Array({ maxLength: 80 }), isHandled);
  always(fc.uint8Array({ minLength: 1000, maxLength: 1100 }), isHandled, 200);
});

t.test('samples that were hurt on the way are handled', async (t) => {
  const samples = samplesOf('pings');
  let taken = 0;
  always(hurt(samples), (bytes) => {
    if (decodeUplink(bytes).ok) taken += 1;
    return isHandled(bytes);
  });
  t.ok(taken > RUNS / 20, 'and enough of them still decode, or nothing but the refusals was tried');
});

t.test('hurt downlinks are refused in words or taken', async () => {
  always(hurt(samplesOf('downlinks')), (bytes) => {
    const result = decodeDownlink(bytes);
    return result.ok || ['undecodable', 'no-command'].includes(result.error.code);
  });
});

t.test('each prefix of each sample is handled', async (t) => {
  for (const { name, hex } of readVectors('pings')) {
    const bytes = bytesOf(hex);
    const lengths = Array.from({ length: Math.min(bytes.length, 100) }, (_, length) => length);
    t.ok(
      lengths.every((length) => isHandled(bytes.subarray(0, length))),
      name,
    );
  }
});

t.test('what is encoded comes back', async () => {
  always(uplink, (value) => {
    const result = decodeUplink(encodeUplink(value));
    return result.ok && isSame(result.value, value);
  });
  always(downlink, (value) => {
    const result = decodeDownlink(encodeDownlink(value));
    return result.ok && isSame(result.value, value);
  });
});

t.test('the bytes depend on the values alone, and whatever we make can be taken', async () => {
  always(uplink, (value) => {
    const bytes = encodeUplink(value);
    const again = encodeUplink(sorted(value) as Uplink);
    return bytes.length <= UPLINK_MAX_BYTES && Buffer.from(bytes).equals(again);
  });
});

t.test('a later field that this build does not know changes nothing', async () => {
  const later = fc.tuple(fc.integer({ min: 11, max: 15 }), fc.integer({ min: 0, max: 127 }));
  always(fc.tuple(uplink, later), ([value, [field, number]]) => {
    const bytes = Uint8Array.from([...encodeUplink(value), field << 3, number]);
    const result = decodeUplink(bytes);
    return result.ok && isSame(result.value, value);
  });
});

t.test('of two uplinks run together the later envelope and body win', async () => {
  always(fc.tuple(uplink, uplink), ([first, second]) => {
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

t.test('a value that does not fit is refused, never cut to fit', async () => {
  const outside = fc.oneof(
    fc.integer({ max: -1 }),
    fc.integer({ min: 2 ** 32, max: 2 ** 53 }),
    fc.constant(Number.NaN),
  );
  const member = fc.constantFrom('boot', 'sequence', 'kept', 'dropped');
  always(fc.tuple(uplink, member, outside), ([value, name, number]) => {
    try {
      encodeUplink({ ...value, [name]: number });
      return false;
    } catch (error) {
      return (error as { code?: string }).code === 'unencodable' && (error as Error).message.startsWith(`${name} `);
    }
  });
});
