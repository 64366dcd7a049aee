// Checks the codec (proto/wire/codec.ts) against lock.proto and protocol.md §1, by samples in test/vectors that were
// made without the codec. A sample is canonical if the codec would write the same bytes; protobuf allows others, such
// as fields in another order.
import t from 'tap';
import {
  decodeDownlink,
  decodeUplink,
  describePing,
  describeUplink,
  encodeDownlink,
  encodeUplink,
  UPLINK_MAX_BYTES,
} from '../../proto/wire/codec.js';
import type { Downlink, GpsPing, Ping, Uplink } from '../../proto/wire/ping.js';
import { DEFAULT_POWER, isPingUplink } from '../../proto/wire/ping.js';
import { bytesOf, downlinkToJson, hexOf, readVectors, uplinkToJson } from '../helpers/vectors.js';

const pings = readVectors('pings');
const downlinks = readVectors('downlinks');
const accepted = pings.filter((vector) => vector.uplink !== undefined);

/** Decodes the bytes of a sample, or throws. */
function uplinkOf(hex: string): Uplink {
  const result = decodeUplink(bytesOf(hex));
  if (!result.ok) throw new Error(`${hex}: ${result.error.message}`);
  return result.value;
}

function vectorNamed(name: string): Uplink {
  const vector = pings.find((candidate) => candidate.name === name);
  if (vector === undefined) throw new Error(`no vector is named ${name}`);
  return uplinkOf(vector.hex);
}

t.test('the samples are consistent', async (t) => {
  for (const vectors of [pings, downlinks]) {
    t.equal(new Set(vectors.map(({ name }) => name)).size, vectors.length, 'all names are different');
    for (const { name, hex, uplink, downlink, rejection } of vectors) {
      t.match(hex, /^([0-9a-f]{2})*$/, `${name}: whole bytes in lower case`);
      t.equal(
        [uplink, downlink, rejection].filter((outcome) => outcome !== undefined).length,
        1,
        `${name}: one outcome`,
      );
    }
  }
  t.ok(pings.length >= 40, 'there are at least 40 samples of pings');
});

t.test('each uplink sample decodes to its expected JSON or rejection', async (t) => {
  for (const { name, hex, uplink, rejection } of pings) {
    const result = decodeUplink(bytesOf(hex));
    if (uplink === undefined) t.equal(result.ok ? 'accepted' : result.error.code, rejection, name);
    else t.strictSame(result.ok ? uplinkToJson(result.value) : result.error, uplink, name);
  }
});

t.test('each decoded uplink sample encodes to the same bytes, or to equivalent canonical bytes', async (t) => {
  for (const { name, hex, canonical } of accepted) {
    const uplink = uplinkOf(hex);
    const encodedHex = hexOf(encodeUplink(uplink));
    if (canonical === false) t.not(encodedHex, hex, `${name}: the sample is correctly marked as not canonical`);
    else t.equal(encodedHex, hex, name);
    t.strictSame(uplinkOf(encodedHex), uplink, `${name}: the encoded bytes decode to the same uplink`);
  }
});

t.test('each downlink sample decodes to its expected JSON and encodes to the same or equivalent bytes', async (t) => {
  for (const { name, hex, canonical, downlink, rejection } of downlinks) {
    const result = decodeDownlink(bytesOf(hex));
    if (!result.ok || downlink === undefined) {
      t.equal(result.ok ? 'accepted' : result.error.code, rejection, name);
      continue;
    }
    t.strictSame(downlinkToJson(result.value), downlink, name);
    const encodedHex = hexOf(encodeDownlink(result.value));
    if (canonical === false) t.not(encodedHex, hex, `${name}: the sample is correctly marked as not canonical`);
    else t.equal(encodedHex, hex, `${name}: the same bytes`);
    t.strictSame(decodeDownlink(bytesOf(encodedHex)), result, `${name}: the encoded bytes decode to the same downlink`);
  }
});

t.test('a rejected uplink gets an error message that names what is wrong', async (t) => {
  const sentence = (hex: string) => {
    const result = decodeUplink(bytesOf(hex));
    return result.ok ? 'accepted' : result.error.message;
  };
  t.equal(sentence('00'.repeat(UPLINK_MAX_BYTES + 1)), 'the uplink has 1025 bytes: at most 1024 are taken');
  // 08 01 is boot 1, 10 01 is sequence number 1, and 18 01 is the time 1 ms after the epoch.
  t.equal(sentence(''), 'the uplink has no boot');
  t.equal(sentence('0801'), 'the uplink has no sequence');
  t.equal(sentence('08011001'), 'the uplink has no time');
  t.equal(sentence('080110011801'), 'the uplink carries neither a ping nor an acknowledgement');
  t.match(sentence('ff'.repeat(20)), /^the bytes are no protobuf Uplink: ./);
});

t.test('bytes in a Buffer, as the broker passes them, decode as in a Uint8Array', async (t) => {
  for (const { name, hex } of pings) {
    t.strictSame(decodeUplink(Buffer.from(hex, 'hex')), decodeUplink(bytesOf(hex)), name);
  }
});

t.test('a typical GPS ping has at most 50 bytes', async (t) => {
  const theft = vectorNamed('gps: a theft under way on an e-bike, the typical size');
  t.equal(theft.body.kind, 'gps');
  t.ok(encodeUplink(theft).length <= 50);
  t.ok(encodeUplink(vectorNamed('gps: the daily ping at rest')).length <= 50);
});

t.test('an uplink is described in one line, which ends with its boot and sequence', async (t) => {
  const line = (name: string) => describeUplink(vectorNamed(name));
  t.equal(
    line('gps: a theft under way on an e-bike, the typical size'),
    'gps REASON_THEFT locked 64% 52.3702157,4.8951679 ±5m 6.12 m/s 87.45° e-bike 36.7 V tethered  #41/14',
  );
  t.equal(line('cellular: the daily ping'), 'cellular REASON_PERIOD_TRACKING locked 81%  #41/12');
  t.equal(
    line('cellular with a position: located by cell'),
    'cellular REASON_CELL_PING locked 81% 52.3702157,4.8951679 ±850m  #41/12',
  );
  t.equal(line('close: unlocked, nearly empty'), 'close REASON_CLOSE_CONNECTION unlocked 9%  #41/12');
  t.equal(line('ack: ok'), 'ack of command 7: ok  #41/12');
  t.equal(line('ack: rejected, and why'), 'ack of command 7: rejected (expired)  #41/12');
  const ping = vectorNamed('close: unlocked, nearly empty');
  t.ok(isPingUplink(ping) && describePing(ping.body) === 'close REASON_CLOSE_CONNECTION unlocked 9%');
});

t.test('line breaks and control characters in an acknowledgement are replaced in its description', async (t) => {
  const detail = 'no fix\n#9/9 ok\r\u001b[2J\u0085\u2028\u202e';
  const uplink: Uplink = { ...vectorNamed('ack: ok'), body: ackWith(detail) };
  t.equal(describeUplink(uplink), 'ack of command 7: failed (no fix #9/9 ok [2J )  #41/12');
});

function ackWith(detail: string): Uplink['body'] {
  return { kind: 'ack', commandId: 7, result: 'failed', detail, highWindow: null };
}

const GPS: GpsPing = {
  kind: 'gps',
  reason: 'REASON_THEFT',
  lockState: 'locked',
  batteryPercent: 64,
  ebikeVolts: 36.7,
  tetherState: 'unknown',
  position: { latitudeDegrees: 52, longitudeDegrees: 4, uncertaintyMeters: 5 },
  speedMetersPerSecond: 1,
  directionDegrees: 2,
};
const ENVELOPE = { boot: 1, sequence: 1, timeMs: 1, power: DEFAULT_POWER, kept: 0, dropped: 0 };

t.test('values are rounded to the units of the wire, and a direction just below 360° becomes 0°', async (t) => {
  const sendGps = (change: Partial<GpsPing>) => {
    const decoded = uplinkOf(hexOf(encodeUplink({ ...ENVELOPE, body: { ...GPS, ...change } })));
    return decoded.body as GpsPing;
  };
  t.equal(sendGps({ directionDegrees: 359.999 }).directionDegrees, 0);
  t.equal(sendGps({ directionDegrees: 359.994 }).directionDegrees, 359.99);
  t.equal(sendGps({ directionDegrees: 360 }).directionDegrees, 360, 'a value out of range is not wrapped');
  t.equal(sendGps({ speedMetersPerSecond: 1.236 }).speedMetersPerSecond, 1.24);
  t.equal(sendGps({ ebikeVolts: 36.7004 }).ebikeVolts, 36.7);
  const position = { latitudeDegrees: 52.37021574, longitudeDegrees: -4.89516786, uncertaintyMeters: 7.6 };
  t.strictSame(sendGps({ position }).position, {
    latitudeDegrees: 52.3702157,
    longitudeDegrees: -4.8951679,
    uncertaintyMeters: 8,
  });
});

t.test('encoding a value that does not fit throws an error with the value and what was expected', async (t) => {
  const encodesGps = (change: Partial<GpsPing>) => () => encodeUplink({ ...ENVELOPE, body: { ...GPS, ...change } });
  const encodesEnvelope = (change: object) => () => encodeUplink({ ...ENVELOPE, ...change, body: GPS });
  const encodesDownlink = (command: Downlink['command'], change = {}) => {
    return () => encodeDownlink({ id: 1, expiresMs: 1, command, ...change });
  };
  const positionWith = (change: object) => ({ position: { ...GPS.position, ...change } });
  // Half a surrogate pair, which UTF-8 can't represent.
  const firmware: Ping = { ...GPS, kind: 'cellular', firmwareVersion: 'a\ud800' };
  const highWindow = { fromMinute: 1440, toMinute: 0, utcOffsetMinutes: 0 };
  const cases: [() => unknown, RegExp][] = [
    [encodesEnvelope({ boot: -1 }), /^boot -1 can't be sent: expected a whole number, 0 to 4294967295$/],
    [encodesEnvelope({ sequence: 2 ** 32 }), /^sequence 4294967296 /],
    [encodesEnvelope({ timeMs: 0.5 }), /^time 0\.5 /],
    [encodesEnvelope({ timeMs: Number.POSITIVE_INFINITY }), /^time Infinity /],
    [encodesEnvelope({ kept: Number.NaN }), /^kept NaN /],
    [encodesEnvelope({ dropped: 1.5 }), /^dropped 1\.5 /],
    [encodesGps({ batteryPercent: -1 }), /^battery -1 /],
    [encodesGps({ ebikeVolts: -1 }), /^e-bike voltage -1 can't be sent: expected 0 to 4294967\.295$/],
    [
      encodesGps(positionWith({ latitudeDegrees: 300 })),
      /^latitude 300 can't be sent: expected -214\.7483648 to 214\.7483647$/,
    ],
    [encodesGps(positionWith({ longitudeDegrees: Number.NaN })), /^longitude NaN /],
    [
      encodesGps(positionWith({ uncertaintyMeters: 1e10 })),
      /^uncertainty 10000000000 can't be sent: expected -2147483648 to /,
    ],
    [encodesGps({ speedMetersPerSecond: 1e9 }), /^speed 1000000000 /],
    [encodesGps({ directionDegrees: Number.NEGATIVE_INFINITY }), /^direction -Infinity /],
    [encodesGps({ reason: 'REASON_UNRECOGNIZED_1' }), /^"REASON_UNRECOGNIZED_1" is no ping reason$/],
    [() => encodeUplink({ ...ENVELOPE, body: firmware }), /^firmware version "a\\ud800" can't be sent: expected /],
    [() => encodeUplink({ ...ENVELOPE, body: ackWith('\udc00') }), /^detail "\\udc00" can't be sent: expected /],
    [encodesDownlink({ type: 'siren', seconds: -1 }), /^siren seconds -1 /],
    [
      encodesDownlink({ type: 'set-power', highWindow }),
      /^window from 1440 can't be sent: expected a whole number, 0 to 1439$/,
    ],
    [encodesDownlink({ type: 'unlock' }, { id: 2 ** 32 }), /^command id 4294967296 /],
    [encodesDownlink({ type: 'unlock' }, { expiresMs: -1 }), /^expiry -1 /],
  ];
  for (const [act, message] of cases) t.throws(act, { name: 'LockgateError', code: 'unencodable', message });
});
