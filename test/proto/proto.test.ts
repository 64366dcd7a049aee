// Checks the small parts of the protocol: MACs, reasons, JSON members, dates and clocks. The expected values are
// written out from the specification's tables and protocol.md.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  afterThisTurn,
  Days,
  Hours,
  ManualClock,
  Minutes,
  monotonicMs,
  RunClock,
  Seconds,
  systemClock,
} from '../../proto/clock.js';
import { formatMac, macFromWire, parseMac } from '../../proto/wire/mac.js';
import { formatDate, highWindowToJson, isDatable, pingToJson, powerToJson } from '../../proto/wire/ping-json.js';
import { isKnownReason, REASONS, reasonFromNumber, reasonNumber } from '../../proto/wire/reasons.js';
import { root } from '../helpers/house/our-files.js';

t.test('a MAC is read in any common spelling and printed in a fixed one', async (t) => {
  const spellings = [
    ...['a4:c1:38:f0:e1:d2', 'A4:C1:38:F0:E1:D2', 'a4:C1:38:f0:E1:d2', 'A4-C1-38-F0-E1-D2', 'a4-c1-38-f0-e1-d2'],
    ...['a4c1.38f0.e1d2', 'A4C1.38F0.E1D2', 'A4C138F0E1D2', 'a4c138f0e1d2', '  A4C138F0E1D2\n'],
  ];
  for (const spelling of spellings) {
    const result = parseMac(spelling);
    t.equal(result.ok && result.value, 'A4C138F0E1D2', JSON.stringify(spelling));
    t.equal(result.ok && formatMac(result.value), 'A4:C1:38:F0:E1:D2');
  }
});

t.test('the error for a text that is no MAC quotes the text', async (t) => {
  const invalid = [
    ...['', ' ', 'A4', 'A4C138F0E1D', 'A4C138F0E1D2F', 'G4C138F0E1D2', 'A4:C1:38:F0:E1', 'A4:C1:38:F0:E1:D2:00'],
    ...['A4:C1-38:F0-E1:D2', 'A4C1:38F0:E1D2', 'A4 C1 38 F0 E1 D2', 'a4.c1.38.f0.e1.d2', ':A4C138F0E1D2'],
    // The second text is of Arabic digits.
    ...['A4C138F0E1D2\nA4C138F0E1D3', '٠٠٠٠٠٠٠٠٠٠٠٠', '0xA4C138F0E1', 'a4c138-f0e1d2', 'A4:C1:38:F0:E1:D'],
  ];
  for (const text of invalid) {
    const result = parseMac(text);
    t.equal(result.ok ? 'taken' : result.error.code, 'bad-mac', JSON.stringify(text));
  }
  const sentence = (text: string) => {
    const result = parseMac(text);
    return result.ok ? 'taken' : result.error.message;
  };
  t.equal(sentence('lock "7"'), '"lock \\"7\\"" is no MAC: expected 12 hex digits, such as A4:C1:38:F0:E1:D2');
  // The error shows 40 characters.
  t.equal(sentence('x'.repeat(5000)).length, sentence('x'.repeat(41)).length, 'a long text is cut');
  t.match(sentence('x'.repeat(41)), `"${'x'.repeat(40)}…"`);
});

t.test('on the wire only one spelling of a MAC is accepted', async (t) => {
  t.equal(macFromWire('A4C138F0E1D2'), 'A4C138F0E1D2');
  for (const text of ['a4c138f0e1d2', 'A4:C1:38:F0:E1:D2', ' A4C138F0E1D2', 'A4C138F0E1D2\n', 'A4C138F0E1D', '']) {
    t.equal(macFromWire(text), undefined, JSON.stringify(text));
  }
});

/** The specification's table "Ping reason values", in its order. */
const SPECIFIED_REASONS = [
  ['REASON_THEFT', /Theft Mode/],
  ['REASON_PERIOD_TRACKING', /Period Ping/],
  ['REASON_STATE_PING', /State Change ping/],
  ['REASON_UNLOCKED_PING', /Ride Tracking ping/],
  ['REASON_UNLOCKED_MOVEMENT', /Cellular ON while unlocked and in motion/],
  ['REASON_GPS_PING', /GPS location data/],
  ['REASON_CELL_PING', /cellular positioning/],
  ['REASON_NETWORK_PING', /waiting for remote commands/],
  ['REASON_RESET', /cellular reset/],
  ['REASON_CLOSE_CONNECTION', /disconnecting from the network/],
  ['PHONE', /phone instead of the device.*coordinates/],
] as const;

/** The values of an enum in the schema: a small parser for `NAME = 7;` between the braces. */
function schemaEnum(name: string): [string, number][] {
  const schema = readFileSync(join(root, 'proto/lock.proto'), 'utf8');
  const body = new RegExp(`^enum ${name} \\{\\n([^}]*)\\}`, 'm').exec(schema)?.[1] ?? '';
  return [...body.matchAll(/^\s*(\w+) = (\d+);/gm)].map(([, value, number]) => [String(value), Number(number)]);
}

t.test('the reasons are those of the specification, in its order', async (t) => {
  t.strictSame(
    REASONS.map(({ name }) => name),
    SPECIFIED_REASONS.map(([name]) => name),
  );
  for (const [index, [name, meaning]] of SPECIFIED_REASONS.entries()) t.match(REASONS[index]?.meaning, meaning, name);
  t.ok(Object.isFrozen(REASONS));
});

t.test('the reasons have the same numbers as in the schema', async (t) => {
  const [unspecified, ...rows] = schemaEnum('Reason');
  t.strictSame(unspecified, ['REASON_UNSPECIFIED', 0], 'zero is not a reason');
  // The style rules for the schema require a prefix that the specification does not have.
  const ours = REASONS.map(({ name, number }) => [name === 'PHONE' ? 'REASON_PHONE' : name, number]);
  t.strictSame(rows, ours);
  t.equal(schemaEnum('Nonsense').length, 0, 'an unknown enum has no values');
});

t.test('a reason has one number and one name', async (t) => {
  for (const { name, number } of REASONS) {
    t.equal(reasonFromNumber(number), name);
    t.equal(reasonNumber(name), number);
    t.ok(isKnownReason(name));
    t.equal(reasonNumber(`REASON_UNRECOGNIZED_${number}`), undefined, `${name} has no second name`);
  }
  for (const number of [0, 12, 99, 2 ** 31 - 1, -1, -(2 ** 31)]) {
    const reason = reasonFromNumber(number);
    t.equal(reason, `REASON_UNRECOGNIZED_${number}`);
    t.equal(reasonNumber(reason), number);
    t.notOk(isKnownReason(reason));
  }
  const notReasons = [
    '',
    'theft',
    'reason_theft',
    'REASON_PHONE',
    'REASON_UNSPECIFIED',
    'toString',
    '__proto__',
    ' PHONE',
  ];
  for (const tail of ['', '-0', '012', '00', '1.5', '1e2', '2147483648', '-2147483649', '99999999999', '12 ']) {
    notReasons.push(`REASON_UNRECOGNIZED_${tail}`);
  }
  for (const text of notReasons) t.equal(reasonNumber(text), undefined, JSON.stringify(text));
});

t.test('a ping in JSON has the members of its type, in the documented order', async (t) => {
  const position = { latitudeDegrees: 1.5, longitudeDegrees: -2.5, uncertaintyMeters: 7 };
  const shared = { lockState: 'locked', batteryPercent: 81, ebikeVolts: null, tetherState: 'detached' } as const;
  const cellular = { ...shared, kind: 'cellular', reason: 'PHONE', firmwareVersion: '2.4.1' } as const;
  const common = 'ping_type,reason,lock_state,battery_percent';
  const members = (ping: Parameters<typeof pingToJson>[0]) => Object.keys(pingToJson(ping)).join();
  t.equal(members({ ...cellular, position: null }), `${common},firmware_version,ebike_voltage,tether_state`);
  t.equal(
    members({ ...cellular, position }),
    `${common},firmware_version,ebike_voltage,tether_state,latitude,longitude,uncertainty`,
  );
  t.strictSame(
    pingToJson({
      ...shared,
      kind: 'gps',
      reason: 'REASON_THEFT',
      position,
      speedMetersPerSecond: 3,
      directionDegrees: 4,
    }),
    {
      ...{ ping_type: 'gps', reason: 'REASON_THEFT', lock_state: 'locked', battery_percent: 81, ebike_voltage: null },
      ...{ tether_state: 'detached', latitude: 1.5, longitude: -2.5, speed: 3, direction: 4, uncertainty: 7 },
    },
  );
  t.equal(members({ ...shared, kind: 'close_connection', reason: 'REASON_CLOSE_CONNECTION' }), common);
  t.strictSame(powerToJson({ mode: 'HIGH', rideTracking: true, airplane: false, recovery: true }), {
    mode: 'HIGH',
    ride_tracking: true,
    airplane: false,
    recovery: true,
  });
  t.strictSame(highWindowToJson({ fromMinute: 0, toMinute: 1439, utcOffsetMinutes: -90 }), {
    from: '00:00',
    to: '23:59',
    utc_offset_minutes: -90,
  });
});

t.test('a time is a date in the years 1970–9999', async (t) => {
  t.strictSame([-1, 0, 253_402_300_799_999, 253_402_300_800_000].map(isDatable), [false, true, true, false]);
  t.notOk(isDatable(Number.NaN));
  t.equal(formatDate(0), '1970-01-01T00:00:00.000Z');
  t.equal(formatDate(253_402_300_799_999), '9999-12-31T23:59:59.999Z');
  t.equal(formatDate(1_795_154_401_000), '2026-11-20T06:00:01.000Z');
});

t.test('Seconds, Minutes, Hours and Days return milliseconds', async (t) => {
  t.strictSame([Seconds(30), Minutes(2), Hours(3), Days(1)], [30_000, 120_000, 10_800_000, 86_400_000]);
});

/** A manual clock that starts at 1000, and a list of the calls: `name@time`. */
function startClock() {
  const clock = new ManualClock(1000);
  const calls: string[] = [];
  const call = (name: string, then?: () => void) => () => {
    calls.push(`${name}@${clock.now()}`);
    then?.();
  };
  return { clock, calls, call };
}

t.test('a manual clock calls in the order of time, then of registration', async (t) => {
  const { clock, calls, call } = startClock();
  clock.after(30, call('c'));
  clock.after(10, call('a'));
  clock.after(30, call('d'));
  clock.after(20, call('b'));
  clock.after(41, call('later'));
  t.strictSame([clock.now(), clock.pending, clock.nextDueMs], [1000, 5, 1010]);
  clock.advance(9);
  t.strictSame(calls, [], 'nothing is called early');
  clock.advance(31);
  t.strictSame(calls, ['a@1010', 'b@1020', 'c@1030', 'd@1030']);
  t.strictSame([clock.now(), clock.pending, clock.nextDueMs], [1040, 1, 1041]);
});

t.test('a manual clock also calls callbacks that are added by callbacks, each at its own time', async (t) => {
  const { clock, calls, call } = startClock();
  clock.after(
    10,
    call('outer', () => {
      clock.after(5, call('inner'));
      clock.after(0, call('at once'));
      clock.after(-7, call('overdue'));
      clock.after(100, call('too late'));
    }),
  );
  clock.after(12, call('between'));
  clock.after(0, call('soon'));
  t.strictSame(calls, [], 'a delay of 0 never calls at once');
  clock.advance(50);
  t.strictSame(calls, ['soon@1000', 'outer@1010', 'at once@1010', 'overdue@1010', 'between@1012', 'inner@1015']);
  t.equal(clock.pending, 1);
});

t.test('a timer on a manual clock can be cancelled, even twice', async (t) => {
  const { clock, calls, call } = startClock();
  const first = clock.after(10, call('first'));
  const second = clock.after(
    10,
    call('second', () => first.cancel()),
  );
  clock.after(
    5,
    call('before', () => second.cancel()),
  );
  clock.advance(10);
  t.strictSame(calls, ['before@1005', 'first@1010']);
  for (const timer of [first, second, second]) timer.cancel();
  t.strictSame([clock.pending, clock.nextDueMs], [0, undefined]);
});

t.test('a manual clock never goes back', async (t) => {
  const { clock, call } = startClock();
  clock.after(
    10,
    call('advances the clock', () => clock.advance(100)),
  );
  clock.advance(20);
  t.equal(clock.now(), 1110);
  clock.advance(-50);
  t.equal(clock.now(), 1110);
});

t.test('the run clock and the monotonic time never go back', async (t) => {
  const clock = new RunClock(5000, 60);
  t.equal(clock.speed, 60);
  for (const read of [() => clock.now(), monotonicMs]) {
    const readings = Array.from({ length: 1000 }, read);
    t.strictSame(
      readings,
      [...readings].sort((a, b) => a - b),
    );
  }
  t.ok(Number.isInteger(clock.now()) && clock.now() >= 5000, 'a run clock starts at the given time, in whole ms');
});

t.test(
  'a timer of the system clock and a run clock is called once, not at once, and not after cancelling',
  async (t) => {
    for (const clock of [systemClock, new RunClock(0, 1e9)]) {
      const calls: string[] = [];
      const timer = clock.after(0, () => calls.push('cancelled'));
      // Node calls back after 1 ms if a delay is over 2³¹ − 1 ms, and so before a delay of 0 that was started later.
      const long = systemClock.after(Days(40), () => calls.push('40 days'));
      timer.cancel();
      timer.cancel();
      const called = new Promise<void>((resolve) => {
        clock.after(0, () => {
          calls.push('called');
          resolve();
        });
      });
      t.strictSame(calls, []);
      await called;
      await new Promise<void>((resolve) => afterThisTurn(resolve));
      t.strictSame(calls, ['called']);
      long.cancel();
    }
  },
);
