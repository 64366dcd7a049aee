// Checks the power model's table against the specification's "Device power modes and switches" and protocol.md §2 and
// §3. The expected values are written out here, so that an accidental change of the model fails.
import t from 'tap';
import { Days, Hours, Minutes, Seconds } from '../../../proto/clock.js';
import { POWER_MODEL, type StateRow, type TriggerRow } from '../../../proto/power/model.js';
import { isKnownReason } from '../../../proto/wire/reasons.js';

/** State, condition, theft, period, state change, cell on in a ride, ride tracking, commands, connection kept. */
const EXPECTED_STATES = [
  'AIRPLANE    | airplane switch on  | - | - | - | - | - | - | never',
  'LOW_BATTERY | battery below 10    | x | - | - | - | - | - | never',
  'RECOVERY    | recovery switch on  | x | x | x | x | x | x | always',
  'HIGH        | mode HIGH           | x | x | x | x | x | x | in-window',
  'MID         | mode MID            | x | x | x | x | x | x | never',
];

/** protocol.md §2: each trigger with the reason of its cellular ping and of its GPS pings, in order of rank. */
const EXPECTED_TRIGGERS = [
  'theft           | REASON_THEFT             | REASON_THEFT',
  'state-change    | REASON_STATE_PING        | REASON_STATE_PING',
  'ride            | REASON_UNLOCKED_MOVEMENT | REASON_UNLOCKED_PING',
  'period          | REASON_PERIOD_TRACKING   | REASON_PERIOD_TRACKING',
  'kept-connection | REASON_NETWORK_PING      | -',
  'locate-gps      | -                        | REASON_GPS_PING',
  'locate-cell     | REASON_CELL_PING         | -',
  'reset           | REASON_RESET             | -',
];

/** The row without the blanks that align its cells. */
function cells(row: string): string {
  return row
    .split('|')
    .map((cell) => cell.trim())
    .join('|');
}

function stateInWords(row: StateRow): string {
  const { when } = row;
  let condition: string;
  if ('switch' in when) condition = `${when.switch} switch on`;
  else if ('mode' in when) condition = `mode ${when.mode}`;
  else condition = `battery below ${when.batteryBelowPercent}`;
  const switches = [row.theft, row.period, row.stateChange, row.cellOnInRide, row.rideTracking, row.commands];
  return [row.state, condition, ...switches.map((on) => (on ? 'x' : '-')), row.connectionKept].join('|');
}

function triggerInWords(row: TriggerRow): string {
  return [row.trigger, row.cellularReason ?? '-', row.gpsReason ?? '-'].join('|');
}

t.test('the states are those of the protocol, in order of rank', async (t) => {
  t.strictSame(POWER_MODEL.states.map(stateInWords), EXPECTED_STATES.map(cells));
  for (const { state, sentence } of POWER_MODEL.states) t.match(sentence, /^[A-Z].*\.$/, `${state}: a sentence`);
});

t.test('the triggers are those of the protocol, in order of rank', async (t) => {
  t.strictSame(POWER_MODEL.triggers.map(triggerInWords), EXPECTED_TRIGGERS.map(cells));
  for (const { trigger, starts, ends, cellularReason, gpsReason } of POWER_MODEL.triggers) {
    t.ok(starts.length > 0 && ends.length > 0, `${trigger}: says when it starts and ends`);
    for (const reason of [cellularReason, gpsReason]) t.ok(reason === null || isKnownReason(reason));
  }
});

t.test('the timings are those of the protocol', async (t) => {
  t.strictSame(POWER_MODEL.timings, {
    theftAfterMotion: Seconds(6),
    theftGpsEvery: Seconds(10),
    theftEndsAfterStill: Minutes(2),
    rideGpsEvery: Seconds(30),
    rideEndsAfterStill: Minutes(2),
    refreshEvery: Minutes(5),
    networkPingEvery: Minutes(15),
    fixSearchEnds: Seconds(120),
    coldFixTakes: Seconds(30),
    warmFixTakes: Seconds(5),
    warmFixWithin: Hours(2),
    closeAfterIdle: Seconds(20),
    retryAfter: [Seconds(10), Seconds(30), Seconds(60)],
    retryThenEvery: Minutes(5),
    retryJitter: 0.2,
    lockWarningTone: Seconds(5),
    keepalive: Seconds(300),
  });
  t.strictSame(POWER_MODEL.highWindow, { fromMinute: 420, toMinute: 1140, utcOffsetMinutes: 0 }, '07:00–19:00 at 0');
  t.equal(POWER_MODEL.bufferUplinks, 256);
});

// In the order of model.ts, which names each bound's rule and unit. Speeds are in m/s.
t.test('the bounds are those of the rules', async (t) => {
  t.strictSame(POWER_MODEL.bounds, {
    periodSequenceSpan: Minutes(10),
    periodTooSoonUnder: Hours(23),
    periodOverdueAfter: Hours(25),
    clockAheadOver: Minutes(5),
    connectionUnexplainedOver: Minutes(10),
    windowOfflineOver: Minutes(10),
    recoveryOfflineOver: Minutes(10),
    bootBackOver: Minutes(5),
    gapPatienceUplinks: 100,
    gapPatience: Hours(24),
    bufferedOver: Seconds(60),
    lateWithin: Days(30),
    clockBackOver: Minutes(5),
    clockBehindOver: Minutes(5),
    cellularBeforeGpsWithin: Minutes(10),
    theftGpsUnder: Seconds(8),
    rideGpsUnder: Seconds(25),
    networkPingUnder: Minutes(13),
    runGapOver: Minutes(2),
    refreshOver: Minutes(6),
    networkPingMissingOver: Minutes(17),
    networkPingOutsideOver: Minutes(2),
    locateWithin: Hours(24),
    locateSlack: Minutes(5),
    ignoredAfter: Minutes(3),
    stillOver: Minutes(10),
    frozenPings: 20,
    frozenOverSpeed: 1,
    jumpWithin: Minutes(10),
    jumpOverSpeed: 100,
  });
});

t.test('the model is deeply frozen', async (t) => {
  let objects = 0;
  const check = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return;
    objects += 1;
    t.ok(Object.isFrozen(value), path);
    for (const [key, member] of Object.entries(value)) check(member, `${path}.${key}`);
  };
  check(POWER_MODEL, 'POWER_MODEL');
  t.ok(objects > 20, 'the test has visited nested objects');
  t.throws(() => Object.assign(POWER_MODEL.timings, { refreshEvery: 0 }), TypeError);
});
