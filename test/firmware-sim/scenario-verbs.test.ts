// Device events as users type them (docs/scenarios.md), such as "ride 2km", and the directed world that lets them
// happen to a simulated lock. The power model (docs/protocol.md §2) decides what the lock then sends; the expectations
// are derived from its table.
import t from 'tap';
import { type DeviceEvent, parseDeviceEvent, VERBS } from '../../firmware-sim/device-event/device-event.js';
import { parseMeters, parseMoment, parseSpan } from '../../firmware-sim/device-event/quantity-text.js';
import { MemoryGateway } from '../../firmware-sim/link/memory-link.js';
import { Lock } from '../../firmware-sim/lock/lock.js';
import { Prng } from '../../firmware-sim/prng.js';
import { DirectedWorld } from '../../firmware-sim/world/directed-world.js';
import { AMSTERDAM } from '../../firmware-sim/world/routes/city.js';
import { Days, Hours, ManualClock, Minutes, Seconds } from '../../proto/clock.js';
import type { Uplink } from '../../proto/wire/ping.js';
import { MODEL_LOCK_MAC } from '../helpers/pair/model-lock.js';
import { PARKED } from '../helpers/sim/parked-bicycle.js';

const START_MS = Date.UTC(2026, 0, 5, 8);

t.test('durations, distances and moments are read from text', async (t) => {
  const spans: [string, number | undefined][] = [
    ['90 s', Seconds(90)],
    ['10min', Minutes(10)],
    ['1 h 30 min', Minutes(90)],
    ['2h', Hours(2)],
    ['1.5 d', Hours(36)],
    ['0 s', 0],
    ['10', undefined],
    ['-5 s', undefined],
    ['5 parsecs', undefined],
    // At most 3660 days are accepted.
    ['4000 days', undefined],
    ['', undefined],
    // A property that every object has, also the table of units.
    ['constructor', undefined],
    ['1 constructor', undefined],
  ];
  for (const [text, span] of spans) t.equal(parseSpan(text), span, text);
  const meters: [string, number | undefined][] = [
    ['2km', 2000],
    ['400 m', 400],
    ['1.5 km', 1500],
    ['0 m', undefined],
    // At most 200 km are accepted.
    ['201 km', undefined],
    ['2 miles', undefined],
  ];
  for (const [text, length] of meters) t.equal(parseMeters(text), length, text);
  const moments: [string, number | undefined][] = [
    ['08:10', START_MS + Minutes(10)],
    ['08:10:30', START_MS + Minutes(10.5)],
    ['07:00', START_MS - Hours(1)],
    ['day 2 07:00', START_MS - Hours(1) + Days(1)],
    ['+90 s', START_MS + Seconds(90)],
    ['25:10', undefined],
    ['08:60', undefined],
    ['8:10', undefined],
    ['day 0 08:00', undefined],
    ['noon', undefined],
  ];
  for (const [text, atMs] of moments) t.equal(parseMoment(text, START_MS), atMs, text);
});

t.test('every verb is read', async (t) => {
  const cases: [string, DeviceEvent][] = [
    ['unlock', { type: 'lock-state', lockState: 'unlocked' }],
    [' Lock ', { type: 'lock-state', lockState: 'locked' }],
    ['ride 2km', { type: 'ride', destination: { type: 'meters', meters: 2000 } }],
    ['ride to the old harbour', { type: 'ride', destination: { type: 'place', name: 'the old harbour' } }],
    ['ride ways/canal.gpx', { type: 'ride', destination: { type: 'file', file: 'ways/canal.gpx' } }],
    // The distance of a theft if none is typed.
    ['steal', { type: 'theft', destination: { type: 'meters', meters: 1200 } }],
    ['steal to home', { type: 'theft', destination: { type: 'place', name: 'home' } }],
    ['recover', { type: 'found' }],
    ['jostle 3 s', { type: 'jostle', span: Seconds(3) }],
    ['battery 9', { type: 'battery', percent: 9 }],
    ['battery 9 %', { type: 'battery', percent: 9 }],
    ['charge', { type: 'battery', percent: 100 }],
    ['charge to 80%', { type: 'battery', percent: 80 }],
    ['coverage off', { type: 'coverage', covered: false, span: null }],
    ['coverage off 10 min', { type: 'coverage', covered: false, span: Minutes(10) }],
    ['no coverage 10 min', { type: 'coverage', covered: false, span: Minutes(10) }],
    ['coverage on', { type: 'coverage', covered: true, span: null }],
    ['no fix 2 h', { type: 'sky', open: false, span: Hours(2) }],
    ['gps on', { type: 'sky', open: true, span: null }],
    ['ebike 36.5 V', { type: 'ebike', volts: 36.5 }],
    ['ebike off', { type: 'ebike', volts: null }],
    ['tether attached', { type: 'tether', tetherState: 'attached' }],
    ['mode HIGH', { type: 'settings', change: { mode: 'HIGH' } }],
    ['airplane on', { type: 'settings', change: { airplane: true } }],
    ['ride-tracking off', { type: 'settings', change: { rideTracking: false } }],
    ['recovery on', { type: 'settings', change: { recovery: true } }],
    ['reset', { type: 'modem-reset' }],
    ['reboot', { type: 'reboot' }],
    ['phone unlock', { type: 'phone', lockState: 'unlocked' }],
    ['wait 10m', { type: 'wait', span: Minutes(10) }],
    ['unlock by command', { type: 'command', command: { type: 'unlock' } }],
    ['siren 5 s by command', { type: 'command', command: { type: 'siren', seconds: 5 } }],
    ['locate gps by command', { type: 'command', command: { type: 'locate-gps' } }],
    ['locate-cell by command', { type: 'command', command: { type: 'locate-cell' } }],
    ['reset by command', { type: 'command', command: { type: 'reset' } }],
    ['airplane on by command', { type: 'command', command: { type: 'set-power', airplane: true } }],
    [
      'mode HIGH, high window 22:00-06:00 -01:30 by command',
      {
        type: 'command',
        command: {
          type: 'set-power',
          mode: 'HIGH',
          highWindow: { fromMinute: 22 * 60, toMinute: 6 * 60, utcOffsetMinutes: -90 },
        },
      },
    ],
  ];
  for (const [text, value] of cases) t.same(parseDeviceEvent(text), { ok: true, value }, text);
  const testedVerbs = new Set(cases.map(([text]) => text.trim().toLowerCase().split(' ')[0]));
  for (const { word } of VERBS) t.ok(testedVerbs.has(word), word);
});

t.test('an error quotes what was typed and says what was expected', async (t) => {
  const cases: [string, RegExp][] = [
    ['', /does not start with a verb: expected one of unlock, lock, ride/],
    ['fly to home', /"fly to home" does not start with a verb/],
    ['unlock now', /"unlock now" can't be read: expected unlock/],
    ['ride', /expected ride 2km, ride to PLACE, or ride FILE.gpx/],
    ['ride 2 miles', /expected ride 2km/],
    ['battery 101', /whole number from 0 to 100/],
    ['battery low', /whole number from 0 to 100/],
    ['coverage maybe', /expected coverage off, coverage off 10 min, or coverage on/],
    ['no patience', /no coverage 10 min or no fix 10 min/],
    ['wait 0 s', /expected wait 10 min/],
    ['mode LOW', /expected mode HIGH or mode MID/],
    ['ebike 500 V', /expected ebike 36.5 V, of 0 to 100 V/],
    ['siren 5 s', /reaches a lock only as a command: expected siren 5 s by command/],
    ['battery 9 by command', /is not a command: expected unlock, lock, siren 5 s/],
    ['airplane on, airplane off by command', /is not a command/],
    ['siren 11 min by command', /is not a command/],
    ['high window 25:00-06:00 by command', /is not a command/],
    ['x'.repeat(301), /301 characters: expected at most 300/],
  ];
  for (const [text, expectedError] of cases) {
    const read = parseDeviceEvent(text);
    t.match(read.ok ? read.value : read.error.message, expectedError, text);
  }
});

/** A lock in a directed world, with the uplinks that it sent. */
function startBench() {
  const clock = new ManualClock(START_MS);
  /** Each uplink, with the ms from the start to its arrival. */
  const sent: [afterStartMs: number, Uplink][] = [];
  const gateway = new MemoryGateway({ uplink: (_mac, uplink) => sent.push([clock.now() - START_MS, uplink]) }, clock);
  const origin = { eastMeters: 0, northMeters: 0 };
  const world = new DirectedWorld({
    prng: new Prng('told'),
    city: AMSTERDAM,
    initialState: PARKED,
    place: origin,
    places: new Map([
      ['here', origin],
      ['harbour', { eastMeters: 1500, northMeters: 400 }],
    ]),
  });
  const lock = new Lock({
    mac: MODEL_LOCK_MAC,
    firmwareVersion: '2.4.1',
    clock,
    world,
    openLink: gateway.open,
    jitterSeed: 1,
  });
  const reasons = (): string[] => sent.map(([, { body }]) => (body.kind === 'ack' ? 'ack' : body.reason));
  const schedule = (text: string, atMs = clock.now()): void => {
    const read = parseDeviceEvent(text);
    if (!read.ok) throw new Error(read.error.message);
    if (read.value.type === 'command' || read.value.type === 'wait') throw new Error('the world can’t do this');
    world.schedule(read.value, atMs);
  };
  return { clock, world, lock, sent, reasons, schedule, gateway };
}

t.test('a ride opens the lock, arrives, and closes it; the lock reports its new place', async (t) => {
  const { clock, lock, sent, reasons, schedule } = startBench();
  schedule('ride to harbour', START_MS + Minutes(1));
  lock.start();
  clock.advance(Minutes(30));
  const sentReasons = reasons();
  t.same(
    sentReasons.slice(0, 2),
    ['REASON_STATE_PING', 'REASON_UNLOCKED_MOVEMENT'],
    'the lock reports opening, then moving',
  );
  t.equal(
    sentReasons.filter((reason) => reason === 'REASON_STATE_PING').length,
    4,
    'each change has a cellular and a GPS ping',
  );
  const moving = sent.find(([, { body }]) => body.kind === 'cellular' && body.reason === 'REASON_UNLOCKED_MOVEMENT');
  t.equal(moving?.[0], Minutes(1) + Seconds(10), 'the ride starts ten seconds after opening');
  const last = sent.map(([, { body }]) => body).findLast(({ kind }) => kind === 'gps');
  t.match(last, { kind: 'gps', reason: 'REASON_STATE_PING', lockState: 'locked', speedMetersPerSecond: 0 });
  if (last?.kind === 'gps') {
    // The harbour is 400 m north and 1500 m east (0.022°) of the start. A degree of latitude has 111,195 m.
    t.ok(Math.abs(last.position.latitudeDegrees - (AMSTERDAM.latitudeDegrees + 400 / 111_195)) < 1e-5);
    t.ok(last.position.longitudeDegrees > AMSTERDAM.longitudeDegrees + 0.02);
  }
});

t.test('a ride on an open lock leaves it open', async (t) => {
  const { clock, lock, reasons, schedule } = startBench();
  lock.start();
  schedule('unlock');
  clock.advance(Minutes(1));
  schedule('ride 1km');
  clock.advance(Minutes(20));
  t.equal(lock.state.lockState, 'unlocked');
  t.equal(reasons().filter((reason) => reason === 'REASON_STATE_PING').length, 2, 'only the manual change is reported');
});

t.test('an event during the run is applied at once: a theft, and its end by recover', async (t) => {
  const { clock, lock, sent, reasons, schedule } = startBench();
  lock.start();
  clock.advance(Minutes(5));
  schedule('steal 5 km');
  clock.advance(Seconds(7));
  t.equal(reasons()[0], 'REASON_THEFT', 'locked and moving for more than 6 s');
  clock.advance(Minutes(1));
  schedule('recover');
  clock.advance(Seconds(1));
  const sentBefore = sent.length;
  clock.advance(Minutes(1));
  t.notOk(reasons().slice(sentBefore).includes('REASON_THEFT'), 'a lock that stands still sends no more theft pings');
  clock.advance(Minutes(5));
  t.equal(reasons().at(-1), 'REASON_CLOSE_CONNECTION');
});

t.test('closing the lock ends a ride; a new outage of coverage replaces the old one', async (t) => {
  const { clock, lock, reasons, schedule } = startBench();
  lock.start();
  schedule('ride 5km');
  clock.advance(Minutes(2));
  schedule('lock');
  clock.advance(Minutes(3));
  t.notOk(reasons().includes('REASON_THEFT'), 'closing ended the ride: a locked lock that moves would report a theft');
  schedule('no coverage 1 min');
  clock.advance(Seconds(30));
  schedule('no coverage 10 min');
  clock.advance(Minutes(5));
  t.equal(lock.state.covered, false);
  clock.advance(Minutes(6));
  t.equal(lock.state.covered, true);
  schedule('jostle 3 s');
  clock.advance(Minutes(1));
  t.notOk(reasons().includes('REASON_THEFT'), 'three seconds are no theft');
});

t.test('each verb of the world reaches the lock', async (t) => {
  const { clock, lock, schedule } = startBench();
  lock.start();
  const cases: [string, () => unknown, unknown][] = [
    ['battery 42', () => lock.state.batteryPercent, 42],
    ['charge', () => lock.state.batteryPercent, 100],
    ['ebike 36.5 V', () => lock.state.ebikeVolts, 36.5],
    ['ebike off', () => lock.state.ebikeVolts, null],
    ['tether attached', () => lock.state.tetherState, 'attached'],
    ['gps off', () => lock.state.skyOpen, false],
    ['gps on', () => lock.state.skyOpen, true],
    ['mode HIGH', () => lock.state.power.mode, 'HIGH'],
    ['ride-tracking on', () => lock.state.power.rideTracking, true],
    ['recovery on', () => lock.state.power.recovery, true],
    ['airplane on', () => lock.state.stateName, 'AIRPLANE'],
    ['airplane off', () => lock.state.stateName, 'RECOVERY'],
    ['phone unlock', () => lock.state.lockState, 'unlocked'],
    ['reboot', () => lock.state.boot, 2],
  ];
  for (const [text, readState, expected] of cases) {
    schedule(text);
    clock.advance(Seconds(2));
    t.equal(readState(), expected, text);
  }
});

t.test('a world refuses impossible events with a sentence', async (t) => {
  const { world, schedule } = startBench();
  t.throws(() => schedule('ride to nowhere'), {
    code: 'input-happening',
    message: /"nowhere": expected one of here, harb/,
  });
  t.throws(() => schedule('ride way.gpx'), { code: 'input-happening', message: /"way.gpx" has not been read/ });
  t.equal(world.nextAtMs(), Number.POSITIVE_INFINITY, 'no event is pending');
});
