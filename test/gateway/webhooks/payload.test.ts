/**
 * Every webhook body that a lock or phone can cause matches the JSON Schema for merchants (interfaces.md §3).
 * test/check/payload-types.test.ts checks the merchants' TypeScript types.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import t from 'tap';
import { runVirtual } from '../../../firmware-sim/fleet/virtual-run.js';
import { Prng } from '../../../firmware-sim/prng.js';
import type { StoredUplink } from '../../../gateway/store/contract/log/stored-uplink.js';
import { uplinkDigest } from '../../../gateway/webhooks/event-id.js';
import { webhookBody } from '../../../gateway/webhooks/payload/body.js';
import { payloadSchemaText, payloadTypesText } from '../../../gateway/webhooks/payload/documents.js';
import { Days, Minutes, Seconds } from '../../../proto/clock.js';
import { encodeUplink } from '../../../proto/wire/codec.js';
import { DEFAULT_POWER, isPingUplink, type Ping, type Uplink } from '../../../proto/wire/ping.js';
import { REASONS, type Reason } from '../../../proto/wire/reasons.js';
import { runLockgate } from '../../helpers/cli/program.js';
import { fleetUplinks } from '../../helpers/durability/fleet-uplinks.js';
import { testMac } from '../../helpers/gateway/test-gateway.js';
import { root } from '../../helpers/house/our-files.js';
import { fieldsOf, fullPing, PING_TYPES } from '../../helpers/wire/full-pings.js';

/** Checks a body by the merchants' schema, and that it has no member that the schema does not name. */
function strictValidator() {
  const document = JSON.parse(readFileSync(join(root, 'docs/webhook-payload.schema.json'), 'utf8'));
  for (const variant of document.oneOf) variant.additionalProperties = false;
  const ajv = new Ajv2020({ strict: true, allErrors: true });
  addFormats.default(ajv);
  return ajv.compile(document);
}

const isPayload = strictValidator();

/** How an uplink (a message of a lock or phone) arrives. */
interface Arrival {
  readonly receivedAtMs: number;
  readonly source?: 'lock' | 'phone';
  readonly simulated?: boolean;
}

/** An uplink's bytes as the store has them. An uplink that arrives over a minute after it was made is buffered. */
function storedOf(bytes: Buffer, { boot, sequence, timeMs }: Uplink, arrival: Arrival): StoredUplink {
  const { receivedAtMs, source = 'lock', simulated = false } = arrival;
  const key = { mac: testMac(), credentialId: 7, boot, sequence, digest: uplinkDigest(bytes) };
  const buffered = receivedAtMs - timeMs > Seconds(60);
  return {
    ...key,
    id: 1,
    deviceId: 1,
    merchantId: 1,
    simulated,
    source,
    bytes,
    receivedAtMs,
    buffered,
    kind: 1,
    isDamaged: false,
  };
}

/** The schema's errors for the body of an uplink's bytes, serialised as it is sent; undefined if there are none. */
function faultOf(bytes: Buffer, uplink: Uplink, arrival: Arrival): unknown {
  const body = JSON.parse(JSON.stringify({ ...webhookBody(storedOf(bytes, uplink, arrival)), test: false }));
  return isPayload(body) ? undefined : { body, errors: isPayload.errors };
}

function uplinkWith(body: Ping, members: Partial<Uplink> = {}): Uplink {
  return { boot: 1, sequence: 1, timeMs: START_MS, power: DEFAULT_POWER, kept: 0, dropped: 0, ...members, body };
}

const START_MS = Date.UTC(2026, 10, 20, 6);
const POSITION = { latitudeDegrees: 52.3702157, longitudeDegrees: 4.8951679, uncertaintyMeters: 8 };

/** Each ping type with a reason, with and without its optional members. */
function pingsWith(reason: Reason): Ping[] {
  const head = { reason, lockState: 'locked', batteryPercent: 81, tetherState: 'unknown' } as const;
  const cellular = { kind: 'cellular', ...head, firmwareVersion: '2.4.1' } as const;
  const gps = {
    kind: 'gps',
    ...head,
    speedMetersPerSecond: 4.2,
    directionDegrees: 359.99,
    position: POSITION,
  } as const;
  return [
    { ...cellular, ebikeVolts: null, position: null },
    { ...cellular, ebikeVolts: 36.5, position: POSITION, firmwareVersion: '', lockState: 'unknown' },
    { ...gps, ebikeVolts: null, lockState: 'unlocked' },
    { ...gps, ebikeVolts: 0, tetherState: 'attached' },
  ];
}

const UNRECOGNIZED: Reason[] = ['REASON_UNRECOGNIZED_0', 'REASON_UNRECOGNIZED_77', 'REASON_UNRECOGNIZED_-2147483648'];

t.test(
  'bodies match for every ping type and reason, of lock, phone and simulated lock, in time and late',
  async (t) => {
    const reasons: Reason[] = [...REASONS.map(({ name }) => name), ...UNRECOGNIZED];
    const closing = { kind: 'close_connection', reason: 'REASON_CLOSE_CONNECTION', batteryPercent: 4 } as const;
    const pings = reasons.flatMap(pingsWith);
    for (const lockState of ['locked', 'unlocked', 'unknown'] as const) pings.push({ ...closing, lockState });
    for (const body of pings) {
      const uplink = uplinkWith(body);
      const bytes = Buffer.from(encodeUplink(uplink));
      for (const source of ['lock', 'phone'] as const)
        for (const delayMs of [0, Days(30)])
          t.equal(
            faultOf(bytes, uplink, { receivedAtMs: START_MS + delayMs, source, simulated: delayMs > 0 }),
            undefined,
          );
    }
  },
);

t.test('bodies match for wrong clocks and for the extreme numbers of the wire format', async (t) => {
  const cellular = pingsWith('REASON_THEFT')[0] as Ping;
  const maxUint32 = 2 ** 32 - 1;
  const year10000Ms = Date.UTC(10000, 0);
  const uplinks = [-1, 0, year10000Ms - 1, year10000Ms, -(2 ** 62), 2 ** 62].map((timeMs) =>
    uplinkWith(cellular, { timeMs, boot: maxUint32, sequence: maxUint32 }),
  );
  const extremePosition = {
    latitudeDegrees: -214.7483648,
    longitudeDegrees: 214.7483647,
    uncertaintyMeters: -(2 ** 31),
  };
  const gps = {
    ...(pingsWith('REASON_THEFT')[2] as Ping & { kind: 'gps' }),
    position: extremePosition,
    batteryPercent: maxUint32,
  };
  uplinks.push(
    uplinkWith({ ...gps, speedMetersPerSecond: -21474836.48, directionDegrees: -0.01, ebikeVolts: 4294967.295 }),
  );
  for (const uplink of uplinks)
    t.equal(faultOf(Buffer.from(encodeUplink(uplink)), uplink, { receivedAtMs: START_MS }), undefined);
});

t.test('the body of a ping with every field matches and has each field', async (t) => {
  for (const type of PING_TYPES) {
    const uplink = uplinkWith(fullPing(type));
    const bytes = Buffer.from(encodeUplink(uplink));
    t.equal(faultOf(bytes, uplink, { receivedAtMs: START_MS }), undefined, type);
    const body: Record<string, unknown> = { ...webhookBody(storedOf(bytes, uplink, { receivedAtMs: START_MS })) };
    for (const [, field] of fieldsOf(type)) t.not(body[field.json], undefined, `${type}: ${field.json}`);
  }
});

t.test('bodies match for the pings of locks that restart often and of a fleet of simulated locks', async (t) => {
  let count = 0;
  const faults: unknown[] = [];
  const check = (bytes: Buffer, uplink: Uplink, receivedAtMs: number): void => {
    if (!isPingUplink(uplink)) return;
    count += 1;
    const fault = faultOf(bytes, uplink, { receivedAtMs });
    if (fault !== undefined) faults.push(fault);
  };
  const random = new Prng('payload');
  for (let lock = 0; lock < 40; lock++)
    for (const { bytes, uplink, trueMs } of fleetUplinks(random, START_MS)) check(bytes, uplink, trueMs + Minutes(2));
  const sink = {
    uplink: (_mac: unknown, atMs: number, uplink: Uplink) => check(Buffer.from(encodeUplink(uplink)), uplink, atMs),
  };
  runVirtual({ seed: 'payload', locks: 12, days: 0.4, startMs: START_MS, pace: 'lively', sink });
  t.ok(count > 1000, `${count} bodies`);
  t.same(faults.slice(0, 3), []);
});

t.test('the check finds an additional member, a missing member and a wrong type', async (t) => {
  const uplink = uplinkWith(pingsWith('REASON_GPS_PING')[2] as Ping);
  const bytes = Buffer.from(encodeUplink(uplink));
  const body: Record<string, unknown> = { ...webhookBody(storedOf(bytes, uplink, { receivedAtMs: START_MS })) };
  t.ok(isPayload(body), 'the body itself is valid');
  t.notOk(isPayload({ ...body, altitude: 3 }), 'a member that the schema does not have');
  t.notOk(isPayload({ ...body, ping_type: 'cellular' }), 'a GPS ping has no firmware version');
  t.notOk(isPayload({ ...body, date: '2026-11-20 06:00:00' }), 'a date without “T” and “Z”');
  t.notOk(isPayload({ ...body, reason: 'REASON_ALARM' }), 'a reason that the protocol does not have');
  for (const name of Object.keys(body)) {
    const { [name]: _removed, ...others } = body;
    t.notOk(isPayload(others), `without ${name}`);
    t.notOk(isPayload({ ...body, [name]: ['7'] }), `${name} of another type`);
  }
});

t.test('the committed files and the CLI’s output match the schema', async (t) => {
  const file = (name: string): string => readFileSync(join(root, 'docs', name), 'utf8');
  t.equal(file('webhook-payload.schema.json'), payloadSchemaText(), 'npm run gen writes it');
  t.equal(file('webhook-payload.d.ts'), payloadTypesText(), 'npm run gen writes it');
  for (const [flags, text] of [
    [[], payloadSchemaText()],
    [['--types'], payloadTypesText()],
  ] as const) {
    const program = await runLockgate(['webhook', 'schema', ...flags]);
    t.equal(`${program.stdout.join('\n')}\n`, text);
  }
});
