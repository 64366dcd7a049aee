// The parts of the simulator together, without MQTT: the random generator, the world (what happens to a lock), one lock
// on a manual clock, fleets and virtual runs. Tests of `step` prove that a lock follows the protocol. These tests prove
// that the parts work together.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import type { FaultName } from '../../firmware-sim/faults/faults.js';
import { fleetMacs } from '../../firmware-sim/fleet/fleet.js';
import { runVirtual, VirtualRun } from '../../firmware-sim/fleet/virtual-run.js';
import type { VirtualSink } from '../../firmware-sim/fleet/virtual-sink.js';
import { MemoryGateway } from '../../firmware-sim/link/memory-link.js';
import type { DiaryEntry } from '../../firmware-sim/lock/diary.js';
import { DirectoryFlash, type Flash, MemoryFlash } from '../../firmware-sim/lock/flash.js';
import { Lock } from '../../firmware-sim/lock/lock.js';
import { Prng } from '../../firmware-sim/prng.js';
import { VirtualClock } from '../../firmware-sim/virtual-clock.js';
import { DEMO_SCRIPTS } from '../../firmware-sim/world/demo-script.js';
import { EVERYDAY, LIVELY } from '../../firmware-sim/world/pace.js';
import { PlannedWorld } from '../../firmware-sim/world/planned-world.js';
import { cosineOf, sineOf } from '../../firmware-sim/world/routes/angle.js';
import { AMSTERDAM, metersAlong, placeAlong } from '../../firmware-sim/world/routes/city.js';
import { StreetRoute } from '../../firmware-sim/world/routes/street-route.js';
import { ScriptedWorld, type WorldEvent } from '../../firmware-sim/world/world.js';
import { Hours, ManualClock, Minutes, Seconds } from '../../proto/clock.js';
import { periodMinuteOf } from '../../proto/power/step/reading.js';
import { encodeUplink } from '../../proto/wire/codec.js';
import { DEFAULT_POWER, type Uplink } from '../../proto/wire/ping.js';
import { MIDNIGHT_MS, MODEL_LOCK_MAC, macOf } from '../helpers/pair/model-lock.js';
import { readGoldenTraces, repeatRun } from '../helpers/sim/golden-traces.js';

const RENEW_HINT = 'after an intended change renew with node dist/test/helpers/sim/golden-traces.js --write';
const NOON_MS = MIDNIGHT_MS + Hours(12);

/** One lock on a manual clock, with the uplinks that its gateway received and the entries of its diary. */
interface Bench {
  readonly clock: ManualClock;
  readonly gateway: MemoryGateway;
  readonly lock: Lock;
  readonly entries: { atMs: number; entry: DiaryEntry }[];
  readonly received: Uplink[];
}

/** What happens to the lock a span after noon, when its clock starts. */
const after = (span: number, change: WorldEvent['change']): WorldEvent => ({ atMs: NOON_MS + span, change });

function startBench(
  events: WorldEvent[],
  flash: Flash = new MemoryFlash(),
  lockState: 'locked' | 'unlocked' = 'locked',
): Bench {
  const clock = new ManualClock(NOON_MS);
  const received: Uplink[] = [];
  const entries: Bench['entries'] = [];
  const gateway = new MemoryGateway({ uplink: (_mac, uplink) => received.push(uplink) });
  const initialState = {
    lockState,
    batteryPercent: 70,
    power: DEFAULT_POWER,
    ebikeVolts: 36.5,
    tetherState: 'detached',
    covered: true,
    skyOpen: true,
  } as const;
  const position = { latitudeDegrees: 52.1, longitudeDegrees: 4.5, uncertaintyMeters: 6 };
  const world = new ScriptedWorld(initialState, events, { position, speedMetersPerSecond: 0, directionDegrees: 0 });
  const diary = (_mac: string, atMs: number, entry: DiaryEntry) => entries.push({ atMs, entry });
  const openLink = gateway.open;
  const lock = new Lock({
    mac: MODEL_LOCK_MAC,
    firmwareVersion: '2.4.1',
    clock,
    world,
    openLink,
    flash,
    jitterSeed: 1,
    diary,
  });
  lock.start();
  return { clock, gateway, lock, entries, received };
}

t.test('the random generator is repeatable, forks by name, and is uniform', async (t) => {
  const draw = (prng: Prng) => Array.from({ length: 5 }, () => prng.uint32());
  t.same(draw(new Prng('a')), draw(new Prng('a')));
  t.notSame(draw(new Prng('a')), draw(new Prng('b')));
  const prng = new Prng(7);
  const before = draw(prng.fork('x'));
  prng.uint32();
  t.same(draw(prng.fork('x')), before, 'a fork does not depend on the numbers drawn before');
  t.notSame(draw(prng.fork('y')), before);
  const counts = new Array<number>(10).fill(0);
  for (let drawn = 0; drawn < 20_000; drawn++) {
    const tenth = prng.integer(0, 9);
    counts[tenth] = (counts[tenth] ?? 0) + 1;
  }
  t.ok(Math.min(...counts) > 1800 && Math.max(...counts) < 2200, 'each tenth is drawn about equally often');
  t.throws(() => prng.pick([]));
});

t.test('sine and cosine are as accurate as those of Math, and exact for quarter turns', async (t) => {
  const radians = (degrees: number): number => (degrees * Math.PI) / 180;
  let maxError = 0;
  for (let degrees = -720; degrees <= 720; degrees += 0.37) {
    maxError = Math.max(maxError, Math.abs(sineOf(degrees) - Math.sin(radians(degrees))));
    maxError = Math.max(maxError, Math.abs(cosineOf(degrees) - Math.cos(radians(degrees))));
  }
  t.ok(maxError < 4e-15, `at most ${maxError} off`);
  t.same([0, 90, 180, 270, 360, -90].map(sineOf).map(plain), [0, 1, 0, -1, 0, -1]);
  t.same([0, 90, 180, 270, 360, -90].map(cosineOf).map(plain), [1, 0, -1, 0, 1, 0]);
});

/** Turns −0 into 0. */
const plain = (value: number): number => value + 0;

t.test('a route follows the streets: position, speed and heading are consistent', async (t) => {
  for (let seed = 0; seed < 20; seed++) {
    const to = { eastMeters: 900 - 100 * seed, northMeters: 1500 - 170 * seed };
    const from = { eastMeters: 0, northMeters: 0 };
    const route = new StreetRoute(new Prng(seed), { city: AMSTERDAM, from, to, startMs: 0, speedMetersPerSecond: 5 });
    let mistakes = 0;
    for (let atMs = 0; atMs + 200 < route.endMs; atMs += 700) {
      const current = route.at(atMs);
      const later = route.at(atMs + 200);
      const expected = placeAlong(current.place, current.directionDegrees, current.speedMetersPerSecond * 0.2);
      const distance = Math.hypot(
        expected.eastMeters - later.place.eastMeters,
        expected.northMeters - later.place.northMeters,
      );
      if (current.directionDegrees === later.directionDegrees && distance > 1.5) mistakes++;
      if (current.directionDegrees < 0 || current.directionDegrees >= 360) mistakes++;
    }
    t.equal(mistakes, 0, `seed ${seed}`);
    const last = route.at(route.endMs - 1).place;
    t.ok(
      Math.abs(metersAlong(last, to, 0)) < 3 && Math.abs(metersAlong(last, to, 90)) < 3,
      'the route ends at its destination',
    );
  }
});

t.test('a planned world has events in order of time within the city, the same for the same seed', async (t) => {
  const allKinds = new Set<string>();
  for (const pace of [EVERYDAY, LIVELY]) {
    const makeWorld = () => new PlannedWorld({ prng: new Prng(3), city: AMSTERDAM, startMs: NOON_MS, pace });
    const [world, sameSeedWorld] = [makeWorld(), makeWorld()];
    const kinds = new Set<string>();
    let beforeMs = NOON_MS;
    for (let taken = 0; taken < 3000; taken++) {
      if (world.nextAtMs() < beforeMs) t.fail(`back in time: ${beforeMs}`);
      beforeMs = world.nextAtMs();
      const event = world.takeEvent();
      if (event === undefined) throw new Error('the world has no more events');
      kinds.add(event.change.type);
      if (JSON.stringify(sameSeedWorld.takeEvent()) !== JSON.stringify(event))
        t.fail('the same seed gives another event');
      const { position } = world.fixAt(event.atMs);
      // 0.2° of latitude are 22 km.
      if (Math.abs(position.latitudeDegrees - AMSTERDAM.latitudeDegrees) > 0.2) t.fail(`far away: ${event.atMs}`);
    }
    for (const kind of kinds) allKinds.add(kind);
  }
  t.same([...allKinds].sort(), ALL_KINDS, 'every kind of change happens');
});

const ALL_KINDS = [
  'battery',
  'boot',
  'coverage',
  'ebike',
  'lock-state',
  'modem-reset',
  'motion',
  'settings',
  'sky',
  'tether',
];

t.test('a lock over a memory link does everything at its due time', async (t) => {
  const { clock, received, entries } = startBench([after(Minutes(1), { type: 'lock-state', lockState: 'unlocked' })]);
  clock.advance(Hours(1));
  // It is unlocked after 60 s, its search for a GPS fix takes 30 s, and it closes the connection 20 s after that.
  t.same(
    received.map(({ timeMs, body }) => [(timeMs - NOON_MS) / 1000, body.kind]),
    [
      [60, 'cellular'],
      [90, 'gps'],
      [110, 'close_connection'],
    ],
  );
  const types = entries.map(({ entry }) => (entry.type === 'did' ? entry.effect.type : entry.type));
  // GPS is switched on too; its place in this order does not matter here.
  const entryTypes = types.filter((type) => type !== 'gps-on');
  t.same(entryTypes.slice(0, 8), [
    'booted',
    'whereabouts',
    'world',
    'made',
    'connect',
    'connected',
    'publish',
    'acknowledged',
  ]);
});

t.test('without coverage all uplinks are retained, and arrive afterwards in order', async (t) => {
  const { clock, received, lock } = startBench([
    after(0, { type: 'coverage', covered: false }),
    after(Minutes(1), { type: 'lock-state', lockState: 'unlocked' }),
    after(Minutes(20), { type: 'lock-state', lockState: 'locked' }),
    after(Minutes(30), { type: 'coverage', covered: true }),
  ]);
  clock.advance(Minutes(30));
  t.same(received, []);
  t.equal(lock.state.waiting.length, 4, 'a cellular and a GPS ping for each of the two changes');
  clock.advance(Minutes(10));
  t.same(
    received.map(({ sequence }) => sequence),
    [1, 2, 3, 4, 5],
    'the last is the close-connection ping',
  );
  t.equal(received[0]?.timeMs, NOON_MS + Minutes(1));
});

t.test('an unacknowledged uplink is sent again after the connection is lost, with the same bytes', async (t) => {
  const { clock, received, gateway } = startBench([after(Minutes(1), { type: 'lock-state', lockState: 'unlocked' })]);
  gateway.acknowledges = false;
  clock.advance(Minutes(2));
  gateway.cut(MODEL_LOCK_MAC);
  gateway.acknowledges = true;
  clock.advance(Minutes(2));
  t.ok(received.length > 2);
  const [first, again] = received.map(encodeUplink);
  t.same(again, first);
});

t.test('a command is received, executed, acknowledged, and logged in the diary', async (t) => {
  const { clock, received, gateway, entries } = startBench([
    after(Minutes(1), { type: 'settings', change: { recovery: true } }),
  ]);
  const downlink = { id: 5, expiresMs: NOON_MS + Hours(1), command: { type: 'unlock' } } as const;
  t.notOk(gateway.send(MODEL_LOCK_MAC, downlink), 'asleep');
  clock.advance(Minutes(2));
  t.ok(gateway.send(MODEL_LOCK_MAC, downlink));
  clock.advance(Minutes(2));
  t.match(received.find(({ body }) => body.kind === 'ack')?.body, { commandId: 5, result: 'ok' });
  t.ok(entries.some(({ entry }) => entry.type === 'received'));
  t.ok(entries.some(({ entry }) => entry.type === 'did' && entry.effect.type === 'unlock'));
});

t.test('a connection that the lock abandons ends one and a half keepalives after its last packet', async (t) => {
  const ends: number[] = [];
  const clock = new ManualClock(NOON_MS);
  const gateway = new MemoryGateway({ disconnected: () => ends.push(clock.now() - NOON_MS) }, clock);
  const nothing = (): void => undefined;
  const events = { connected: nothing, failed: nothing, acknowledged: nothing, command: nothing, unreadable: nothing };
  const link = gateway.open(MODEL_LOCK_MAC, { ...events, disconnected: nothing });
  link.connect();
  clock.advance(Seconds(12));
  gateway.send(MODEL_LOCK_MAC, { id: 1, expiresMs: NOON_MS + Hours(1), command: { type: 'unlock' } });
  // The keepalive is 5 min. The lock gives up when a PINGREQ is due, 5 min after its last packet, the acknowledgement
  // of the command. The connection ends 7.5 min after that packet.
  clock.advance(Minutes(5));
  link.abandon();
  clock.advance(Minutes(10));
  t.same(ends, [Seconds(12) + Minutes(7.5)]);
});

t.test(
  'a lock that is stopped and started again has the next boot number, and sends retained uplinks unchanged',
  async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'lockgate-flash-'));
    t.teardown(() => rmSync(directory, { recursive: true }));
    const events = [
      after(0, { type: 'coverage', covered: false }),
      after(Minutes(1), { type: 'lock-state', lockState: 'unlocked' }),
    ];
    const first = startBench(events, new DirectoryFlash(directory));
    first.clock.advance(Minutes(5));
    await first.lock.stop();
    // A second stop does nothing.
    await first.lock.stop();
    t.equal(first.clock.pending, 0, 'no timer is pending');
    const second = startBench([], new DirectoryFlash(directory), 'unlocked');
    second.clock.advance(Minutes(5));
    t.same(
      second.received.map(({ boot, sequence, body }) => `${boot}/${sequence} ${body.kind}`),
      ['1/1 cellular', '1/2 gps', '2/1 close_connection'],
    );
    await second.lock.stop();
    // The lock was unlocked when it stopped, and is locked when it starts: it reports that at once.
    const third = startBench([], new DirectoryFlash(directory), 'locked');
    t.match(third.received[0], { boot: 3, sequence: 1, body: { reason: 'REASON_STATE_PING', lockState: 'locked' } });
    writeFileSync(join(directory, `${MODEL_LOCK_MAC}.json`), '{"boot":');
    t.throws(() => startBench([], new DirectoryFlash(directory)), { code: 'bad-flash' });
  },
);

t.test('a virtual clock runs timers in order of time, in whatever order they were set', async (t) => {
  const clock = new VirtualClock(1000);
  const prng = new Prng(1);
  const ran: number[] = [];
  const delays = Array.from({ length: 500 }, () => prng.integer(0, 300));
  for (const delay of delays) clock.after(delay, () => ran.push(clock.now()));
  clock.after(50, () => t.fail('a cancelled timer ran')).cancel();
  // Some timers are due later than this.
  clock.run(1200);
  const due = delays.map((delay) => 1000 + delay).filter((atMs) => atMs <= 1200);
  t.same(
    ran,
    due.sort((a, b) => a - b),
  );
  t.equal(clock.now(), 1200);
});

t.test('the same seed gives the same uplinks, another seed gives other uplinks', async (t) => {
  const run = (seed: number): string[] => {
    const lines: string[] = [];
    const uplink = (mac: string, atMs: number, made: Uplink) => {
      lines.push(`${mac} ${atMs} ${Buffer.from(encodeUplink(made)).toString('hex')}`);
    };
    runVirtual({ seed, locks: 5, days: 3, startMs: MIDNIGHT_MS, sink: { uplink } });
    return lines;
  };
  const [first, again, otherSeed] = [run(1), run(1), run(2)];
  t.ok(first.length > 100);
  t.same(again, first);
  t.notSame(otherSeed, first);
});

t.test('a seed gives the same bytes with every version of Node and in every build', async (t) => {
  for (const golden of readGoldenTraces()) {
    const { lines, sha256 } = golden;
    t.ok(lines > 50, 'the trace has events');
    t.same(repeatRun(golden), { lines, sha256 }, `seed ${golden.seed}, ${golden.pace}: ${RENEW_HINT}`);
  }
});

t.test('locks that are simulated one by one send the same uplinks as locks that share a clock', async (t) => {
  /**
   * The events of each lock, in order, and how often the next event is of another lock. With `anyOrder` the events of
   * different locks may come in any order, so the locks are simulated one by one.
   */
  const run = (anyOrder: boolean, faults: readonly FaultName[] = []) => {
    const eventsOf = new Map<string, string[]>();
    let [changes, latest] = [0, ''];
    const note = (mac: string, event: string) => {
      eventsOf.set(mac, [...(eventsOf.get(mac) ?? []), event]);
      if (mac !== latest) changes += 1;
      latest = mac;
    };
    const sink: VirtualSink = {
      connect: (mac, atMs) => note(mac, `${atMs} connect`),
      uplink: (mac, atMs, made) => note(mac, `${atMs} ${Buffer.from(encodeUplink(made)).toString('hex')}`),
      disconnect: (mac, atMs, cause) => note(mac, `${atMs} ${cause}`),
    };
    const fleet = new VirtualRun({ seed: 'order', locks: 6, days: 1, startMs: MIDNIGHT_MS, faults, anyOrder, sink });
    fleet.advance(MIDNIGHT_MS + Hours(9));
    t.equal(fleet.nowMs, MIDNIGHT_MS + Hours(9));
    fleet.advance(fleet.endMs);
    return { eventsOf, changes };
  };
  const [together, apart] = [run(false), run(true)];
  t.ok([...together.eventsOf.values()].flat().length > 100, 'there are events');
  t.same(apart.eventsOf, together.eventsOf);
  t.ok(apart.changes <= 2 * 6, `one lock after another, in each step: ${apart.changes} changes`);
  t.ok(together.changes > apart.changes, 'on one clock the locks take turns');
  t.same(run(true, ['storm']), run(false, ['storm']), 'a storm hits all locks at once, so they share a clock');
});

t.test('locks that are made one by one, and forgotten, send the same uplinks as locks that are kept', async (t) => {
  const run = (isKept: boolean) => {
    const events: string[] = [];
    const sink: VirtualSink = {
      connect: (mac, atMs) => events.push(`${mac} ${atMs} connect`),
      uplink: (mac, atMs, made) => events.push(`${mac} ${atMs} ${Buffer.from(encodeUplink(made)).toString('hex')}`),
      disconnect: (mac, atMs, cause) => events.push(`${mac} ${atMs} ${cause}`),
    };
    const fleet = new VirtualRun({ seed: 'made', locks: 6, days: 1, startMs: MIDNIGHT_MS, anyOrder: true, sink });
    if (isKept) t.equal(fleet.locks.length, 6);
    fleet.advance(fleet.endMs);
    fleet.advance(fleet.endMs);
    return { fleet, events };
  };
  const [kept, forgotten] = [run(true), run(false)];
  t.ok(kept.events.length > 100, 'there are events');
  t.same(forgotten.events, kept.events);
  t.ok(
    kept.fleet.locks.every(({ state }) => state.boot > 0),
    'kept locks have the state of the end of the run',
  );
  t.throws(() => forgotten.fleet.locks, /not kept/);
});

t.test('a lively fleet shows every trigger within half an hour', async (t) => {
  const seen = new Set<string>();
  const startMs = NOON_MS;
  const uplink = (_mac: string, _atMs: number, { body }: Uplink) => {
    seen.add(body.kind === 'ack' ? 'ack' : body.reason);
  };
  // The minute of the day at which the first lock sends its daily Period Ping.
  const periodMinute = 12 * 60;
  const halfAnHourInDays = 1 / 48;
  const days = halfAnHourInDays;
  runVirtual({ seed: 'demo', locks: 12, days, startMs, pace: 'lively', periodMinute, sink: { uplink } });
  t.same([...seen].sort(), [
    'REASON_CLOSE_CONNECTION',
    'REASON_NETWORK_PING',
    'REASON_PERIOD_TRACKING',
    'REASON_RESET',
    'REASON_STATE_PING',
    'REASON_THEFT',
    'REASON_UNLOCKED_MOVEMENT',
    'REASON_UNLOCKED_PING',
  ]);
  t.ok(
    DEMO_SCRIPTS.every(({ endsAfterMs }) => endsAfterMs <= Hours(1)),
    'after an hour no lock follows a script any more',
  );
});

t.test('the MACs of a fleet are repeatable and distinct, and the first has the wanted period minute', async (t) => {
  const macs = fleetMacs(4, 1000);
  t.equal(new Set(macs).size, 1000);
  t.same(fleetMacs(4, 1000), macs);
  t.same(
    macs.map((mac) => macOf(mac)),
    macs,
    'each is a valid MAC',
  );
  const fiveBeforeMidnight = 1435;
  const first = fleetMacs(4, 3, fiveBeforeMidnight)[0];
  // A day has 1440 minutes. The first lock's Period Ping comes at most 20 minutes after the wanted minute.
  t.ok(first && (periodMinuteOf(first) - fiveBeforeMidnight + 1440) % 1440 <= 20, 'also across midnight');
  t.throws(() => fleetMacs(4, 0), { code: 'bad-count' });
});
