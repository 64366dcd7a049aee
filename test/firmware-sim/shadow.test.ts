/**
 * `sim shadow` (README.md) runs a simulated lock in parallel to a real one, its shadow, and reports uplinks that only
 * one of them sends: `sent` is sent by the real lock alone, `owed` by its shadow alone. A healthy lock shows no
 * difference, with any settings; a lock with a bug does. The last tests run the command against a gateway, with a lock
 * over MQTT; the lock and the gateway share a manual clock.
 */
import t, { type Test } from 'tap';
import { BUGS, parseBugAssignment, stepWithBugs } from '../../firmware-sim/faults/bugs.js';
import { parseMix } from '../../firmware-sim/fleet/mix.js';
import { kindOf } from '../../firmware-sim/inference/shadow/comparison.js';
import { LockShadow, type ShadowDifference } from '../../firmware-sim/inference/shadow/shadow.js';
import { mqttLinks } from '../../firmware-sim/link/mqtt-link.js';
import type { DiaryEntry } from '../../firmware-sim/lock/diary.js';
import { MemoryFlash } from '../../firmware-sim/lock/flash.js';
import { Lock } from '../../firmware-sim/lock/lock.js';
import { ScriptedWorld, type WorldChange } from '../../firmware-sim/world/world.js';
import type { Gateway } from '../../gateway/gateway.js';
import { Hours, ManualClock, type Milliseconds, Minutes } from '../../proto/clock.js';
import { stepInPlace } from '../../proto/power/step/step.js';
import { TraceReader } from '../../proto/trace/reader.js';
import type { TraceEvent, TraceHeader } from '../../proto/trace/trace.js';
import { formatMac, type Mac } from '../../proto/wire/mac.js';
import { type CommandResult, runCommand } from '../helpers/cli/command-line.js';
import { testGateway, testMac } from '../helpers/gateway/test-gateway.js';
import { traceOf } from '../helpers/sim/judged-run.js';
import { PARKED, PARKED_AT } from '../helpers/sim/parked-bicycle.js';

const MIX = 'mid=2,mid+ride=2,high=1,high+ride=1,recovery=1,airplane=1,low-battery=1';

/** A trace, with the events of each of its locks. */
interface Traced {
  readonly header: TraceHeader;
  readonly fromMs: number;
  readonly untilMs: number;
  readonly locks: ReadonlyMap<Mac, readonly TraceEvent[]>;
}

function readTrace(lines: readonly string[]): Traced {
  const reader = new TraceReader();
  const locks = new Map<Mac, TraceEvent[]>();
  const times: number[] = [];
  for (const line of lines) {
    const read = reader.read(line);
    if (!read.ok) throw new Error(read.error.message);
    if (read.value === null) continue;
    times.push(read.value.atMs);
    const mac = 'mac' in read.value ? read.value.mac : null;
    if (mac === null || read.value.event === 'world') continue;
    locks.set(mac, [...(locks.get(mac) ?? []), read.value]);
  }
  const [fromMs = 0] = times;
  return { header: reader.header as TraceHeader, fromMs, untilMs: times.at(-1) ?? 0, locks };
}

/** Compares one lock of a trace with its shadow at this interval. Returns all reported differences, and the shadow. */
function compareWithShadow(
  { header, fromMs, untilMs }: Traced,
  mac: Mac,
  events: readonly TraceEvent[],
  interval: Milliseconds,
) {
  const shadow = new LockShadow(header, mac, fromMs);
  const reported: ShadowDifference[] = [];
  let nextMs = fromMs;
  for (const event of [...events, null]) {
    for (; nextMs < (event?.atMs ?? untilMs); nextMs += interval) reported.push(...shadow.compare(nextMs).found);
    if (event === null) break;
    shadow.add(event);
    if (event.event === 'disconnect') reported.push(...shadow.compare(event.atMs).found);
  }
  reported.push(...shadow.compare(untilMs).found);
  return { reported, shadow };
}

const textOf = ({ what, uplink, madeMs }: ShadowDifference): string =>
  `${what} ${kindOf(uplink)} at ${new Date(madeMs).toISOString()}`;

t.test('a healthy lock with any settings never differs from its shadow', async (t) => {
  const traced = readTrace(traceOf({ seed: 'shadow', locks: 9, days: 2, mix: parseMix(MIX) }));
  let uplinks = 0;
  for (const [mac, events] of traced.locks) {
    const { reported, shadow } = compareWithShadow(traced, mac, events, Minutes(30));
    t.same(reported.map(textOf), [], formatMac(mac));
    uplinks += shadow.uplinks;
  }
  t.ok(uplinks > 300, `${uplinks} uplinks were compared`);
});

t.test('the shadow of a lock whose clock is 2 h behind uses the times of receipt', async (t) => {
  const traced = readTrace(traceOf({ seed: 'late', locks: 6, days: 2 }));
  for (const [mac, events] of traced.locks) {
    const shifted = events.map((event): TraceEvent => {
      if (event.event !== 'ping') return event;
      return { ...event, uplink: { ...event.uplink, timeMs: event.uplink.timeMs - Hours(2) } };
    });
    t.same(compareWithShadow(traced, mac, shifted, Hours(1)).reported.map(textOf), [], formatMac(mac));
  }
});

t.test('a command that was sent in the millisecond of the connection reaches the shadow too', async (t) => {
  const at = '2026-11-20T08:00:00.000Z';
  const mac = 'A4:C1:38:F0:E1:D2';
  const ping = { ping_type: 'cellular', reason: 'REASON_STATE_PING', lock_state: 'unlocked', battery_percent: 81 };
  const events = [
    { at, mac, event: 'connect' },
    { at, mac, event: 'ping', ping },
    { at, mac, event: 'command', command: { id: 1, type: 'siren', seconds: 5, expires: '2026-11-20T08:02:00.000Z' } },
    { at, mac, event: 'ack', ack: { id: 1, result: 'ok' } },
    { at: '2026-11-20T08:00:25.000Z', event: 'tick' },
  ];
  const header = { trace: 'lockgate', version: 1, locks: { [mac]: { lock_state: 'locked', connected: false } } };
  const traced = readTrace([header, ...events].map((line) => JSON.stringify(line)));
  const [[lock, lockEvents] = []] = traced.locks;
  if (lock === undefined || lockEvents === undefined) throw new Error('no lock');
  const shadow = new LockShadow(traced.header, lock, traced.fromMs);
  for (const event of lockEvents) shadow.add(event);
  t.same(
    shadow.compare(traced.fromMs + Minutes(5)).found.filter(({ what }) => what === 'sent'),
    [],
    'the shadow acknowledges the command too',
  );
});

for (const [bug, what, kind] of [
  ['forgets-to-close', 'owed', 'close_connection'],
  ['forgets-period', 'owed', 'cellular REASON_PERIOD_TRACKING'],
  ['period-every-6h', 'sent', 'cellular REASON_PERIOD_TRACKING'],
  ['state-ping-in-rides', 'sent', 'cellular REASON_STATE_PING unlocked'],
  ['talks-in-airplane', 'sent', 'cellular REASON_PERIOD_TRACKING'],
] as const) {
  t.test(`a lock with the bug ${bug} differs`, async (t) => {
    const mix = parseMix(bug === 'talks-in-airplane' ? 'airplane' : 'mid=1,mid+ride=1');
    const bugs = [parseBugAssignment(bug)];
    const traced = readTrace(traceOf({ seed: 'shadow', locks: 3, days: 3, mix, bugs }));
    const differences = [...traced.locks].flatMap(
      ([mac, events]) => compareWithShadow(traced, mac, events, Hours(1)).reported,
    );
    t.ok(
      differences.some((difference) => difference.what === what && kindOf(difference.uplink) === kind),
      differences.slice(0, 5).map(textOf).join('; '),
    );
  });
}

t.test('a lock that was already connected at the start is compared from its next connection on', async (t) => {
  const traced = readTrace(traceOf({ seed: 'shadow', locks: 1, days: 3 }));
  const [[mac, events] = []] = traced.locks;
  if (mac === undefined || events === undefined) throw new Error('no lock');
  // Two events after the first connect, the lock is connected and its first uplink has come.
  const fromIndex = events.findIndex(({ event }) => event === 'connect') + 2;
  const lock = traced.header.locks.get(mac);
  if (lock === undefined) throw new Error('the header names the lock');
  const header = { note: '', locks: new Map([[mac, { ...lock, connected: true }]]) };
  const fromWithinConnection = { ...traced, header, fromMs: (events[fromIndex] as TraceEvent).atMs };
  const { reported, shadow } = compareWithShadow(fromWithinConnection, mac, events.slice(fromIndex), Hours(1));
  t.same(reported.map(textOf), []);
  t.ok(shadow.isAlive, 'the shadow runs');
  t.ok(shadow.uplinks > 0 && shadow.uplinks < events.filter(({ event }) => event === 'ping').length);
});

const MAC = testMac();
const MIDNIGHT_MS = Date.UTC(2026, 10, 20);

/** A lock over MQTT with a manual clock, which advances only while nothing is in transit. */
class ClockedLock {
  readonly #clock: ManualClock;
  readonly #lock: Lock;
  /** The number of publishes, connects and disconnects in progress. */
  #pending = 0;
  #onChange: () => void = () => undefined;

  constructor(t: Test, gateway: Gateway, clock: ManualClock, secret: string, bug: string | null) {
    this.#clock = clock;
    const changes: readonly (readonly [Milliseconds, WorldChange])[] = [
      [Hours(8), { type: 'lock-state', lockState: 'unlocked' }],
      [Hours(8) + 1, { type: 'motion', moving: true }],
      [Hours(8) + Minutes(7), { type: 'motion', moving: false }],
      [Hours(8) + Minutes(12), { type: 'lock-state', lockState: 'locked' }],
      [Hours(11), { type: 'motion', moving: true }],
      [Hours(11) + Minutes(3), { type: 'motion', moving: false }],
    ];
    const events = changes.map(([after, change]) => ({ atMs: MIDNIGHT_MS + after, change }));
    const bugs = BUGS.filter(({ name }) => name === bug);
    this.#lock = new Lock({
      mac: MAC,
      firmwareVersion: '9.9.9',
      clock,
      world: new ScriptedWorld(PARKED, events, { position: PARKED_AT, speedMetersPerSecond: 0, directionDegrees: 0 }),
      openLink: mqttLinks({ host: '127.0.0.1', port: gateway.mqttPort }, () => secret),
      flash: new MemoryFlash(),
      jitterSeed: 1,
      // The daily ping is due at 05:00.
      periodMinute: 5 * 60,
      stepFunction: stepWithBugs(bugs, stepInPlace),
      diary: (_mac, _atMs, entry) => this.#countPending(entry),
    });
    gateway.events.on('disconnected', () => this.#changePending(-1));
    t.teardown(() => this.#lock.stop());
    this.#lock.start();
  }

  #countPending(entry: DiaryEntry): void {
    if (entry.type === 'did' && entry.effect.type === 'publish') this.#changePending(1);
    if (entry.type === 'did' && entry.effect.type === 'connect') this.#changePending(1);
    if (entry.type === 'did' && entry.effect.type === 'disconnect') this.#changePending(1);
    if (entry.type === 'acknowledged' || entry.type === 'connected') this.#changePending(-1);
    if (entry.type === 'refused' || entry.type === 'lost') throw new Error(`the lock was ${entry.type}`);
  }

  #changePending(by: 1 | -1): void {
    this.#pending += by;
    this.#onChange();
  }

  /** Advances the clock from one timer to the next, and waits after each until nothing is in transit. */
  async pass(span: Milliseconds): Promise<void> {
    const untilMs = this.#clock.now() + span;
    while (this.#clock.now() < untilMs) {
      const nextMs = Math.min(this.#clock.nextDueMs ?? untilMs, untilMs);
      this.#clock.advance(Math.max(nextMs - this.#clock.now(), 1));
      while (this.#pending > 0) {
        await new Promise<void>((resolve) => {
          this.#onChange = resolve;
        });
      }
    }
  }
}

/**
 * Runs `sim shadow --json` for a lock. With `forHours` the command ends by itself, otherwise by Ctrl-C at a difference.
 */
async function shadowOf(t: Test, bug: string | null, forHours: number | null): Promise<CommandResult> {
  const clock = new ManualClock(MIDNIGHT_MS);
  const gateway = await testGateway(t, { runClock: clock });
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  const connection = ['--gateway', `http://127.0.0.1:${gateway.operatorPort}`, '--token', gateway.operatorToken];
  const options = forHours === null ? [] : ['--for', `${forHours}h`];
  return await runCommand(['sim', 'shadow', formatMac(MAC), '--json', ...options, ...connection], {
    whileRunning: async (running) => {
      await running.waitUntil(/"event":"begin"/);
      const lock = new ClockedLock(t, gateway, clock, secret, bug);
      // The daily ping of the third day comes after the end, and so ends the command.
      await lock.pass(Hours(54));
      if (forHours !== null) return;
      await running.waitUntil(/"event":"difference"/);
      running.interrupt();
    },
  });
}

t.test('for a healthy lock over MQTT the command finds no difference and exits with 0', async (t) => {
  const { code, stdout, stderr } = await shadowOf(t, null, 30);
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  t.equal(code, 0, stderr);
  t.same(
    lines.map(({ event }) => event),
    ['begin', 'end'],
    stdout,
  );
  t.match(lines.at(-1), { mac: formatMac(MAC), differences: 0 });
  t.ok(lines.at(-1).uplinks > 20, `${lines.at(-1).uplinks} uplinks`);
});

t.test('for a lock with a bug the command prints the differences and exits with 1', async (t) => {
  const { code, stdout } = await shadowOf(t, 'forgets-to-close', null);
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  t.equal(code, 1);
  t.match(
    lines.find(({ event }) => event === 'difference'),
    { difference: 'owed', ping_type: 'close_connection', reason: 'REASON_CLOSE_CONNECTION' },
  );
  t.ok(lines.at(-1).differences >= 1, stdout);
});
