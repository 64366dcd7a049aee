/**
 * The gateway's clocks on a machine whose clock jumps (gateway/clocks/), with manual clocks: which dates are trusted,
 * and who confirms a date (locks or an operator). The run's clock is the gateway's time for deadlines; it never goes
 * back and survives restarts.
 */
import t from 'tap';
import { type ClockAuthority, ClockGuard, type ClockState } from '../../gateway/clocks/clock-guard.js';
import { ClockWitnesses, type ReportedTime } from '../../gateway/clocks/clock-witnesses.js';
import { clockText } from '../../gateway/clocks/clock-words.js';
import { RecordedClocks } from '../../gateway/clocks/recorded-clocks.js';
import { Days, Hours, Minutes, Seconds } from '../../proto/clock.js';
import { ManualMachine } from '../helpers/clocks/manual-machine.js';

/** The date of the machine when a test begins, ms since the epoch. */
const START = Date.UTC(2026, 10, 20, 12);
const TEN_YEARS = Days(3652);

interface GuardSetup {
  readonly machine: ManualMachine;
  readonly guard: ClockGuard;
  /** The changes of the guard's state, and who confirmed the machine's date. */
  readonly stateChanges: (readonly [ClockState, ClockAuthority])[];
  /** How far the guard's clocks were moved forward by each reported step, ms. */
  readonly steps: number[];
}

/** A guard on a machine whose clock shows {@link START}. The run's clock is `speed` times as fast. */
function setUpGuard(speed = 1): GuardSetup {
  const machine = new ManualMachine(START);
  const [stateChanges, steps]: [GuardSetup['stateChanges'], number[]] = [[], []];
  const guard = new ClockGuard({
    machine,
    wallMs: START,
    runMs: START,
    speed,
    onStateChange: ({ state }, by) => stateChanges.push([state, by]),
    onStep: ({ fromMs, toMs }, take) => {
      steps.push(toMs - fromMs);
      take();
    },
  });
  return { machine, guard, stateChanges, steps };
}

t.test('small steps of the machine’s clock are followed, large ones need confirmation', async (t) => {
  const { machine, guard, stateChanges, steps } = setUpGuard();
  /** Moves the machine's clock. Returns how far the guard's two clocks are ahead of it then, ms. */
  const offsetsAfter = (by: number): readonly number[] => {
    machine.step(by);
    guard.compare();
    return [guard.wall.now() - machine.wall(), guard.run.now() - machine.wall()];
  };
  t.same(offsetsAfter(Seconds(30)), [0, 0], 'a step forward is followed');
  t.same(steps, [], 'a short step is followed silently');
  t.same(offsetsAfter(Hours(23)), [0, 0], 'up to a day');
  t.same(steps, [Hours(23)], 'a longer step is reported');
  t.same(offsetsAfter(-Minutes(4)), [Minutes(4), Minutes(4)], 'a step back is not followed: the clock continues');
  t.same(offsetsAfter(Minutes(4)), [0, 0]);
  t.same(stateChanges, []);
  t.same(offsetsAfter(-Hours(1)), [Hours(1), Hours(1)]);
  t.same(offsetsAfter(Hours(1)), [0, 0]);
  t.same(stateChanges.splice(0), [
    ['behind', null],
    ['agrees', 'machine'],
  ]);
  t.same(offsetsAfter(Hours(25)), [-Hours(25), -Hours(25)], 'a jump of over a day is not followed');
  machine.advance(Minutes(3));
  guard.compare();
  t.equal(guard.wall.now(), START + Seconds(30) + Hours(23) + Minutes(3), 'but the clock continues');
  t.match(guard.reading(), { state: 'ahead', sinceMs: guard.wall.now() - Minutes(3) });
  offsetsAfter(Days(400));
  t.same(stateChanges.splice(0), Array(2).fill(['ahead', null]), 'another jump is reported too');
  offsetsAfter(-Days(400) - Hours(25));
  t.same(stateChanges, [['agrees', 'machine']]);
  t.equal(guard.run.now(), machine.wall(), 'no doubt is left');
});

t.test('an operator can confirm a date ahead or behind; the run’s clock never goes back', async (t) => {
  const { machine, guard, stateChanges, steps } = setUpGuard();
  machine.step(Days(5));
  guard.confirm('operator');
  t.same([guard.wall.now(), guard.run.now()], [START + Days(5), START + Days(5)]);
  machine.step(-Days(2));
  guard.confirm('operator');
  t.same([guard.wall.now(), guard.run.now()], [START + Days(3), START + Days(5)]);
  guard.confirm('operator');
  t.same(stateChanges, [
    ['ahead', null],
    ['agrees', 'operator'],
    ['behind', null],
    ['agrees', 'operator'],
  ]);
  t.same(steps, [Days(5)]);
});

t.test('an expiry is doubtful if it has passed only by the machine’s clock', async (t) => {
  const { machine, guard } = setUpGuard();
  t.notOk(guard.isExpiryDoubtful(START - 1, START + Hours(24)));
  machine.step(Days(5));
  guard.compare();
  t.ok(guard.isExpiryDoubtful(START - 1, START + Hours(24)), 'only the machine’s clock says that it has passed');
  t.notOk(guard.isExpiryDoubtful(START - 1, START + Days(6)), 'not passed by either clock');
  t.notOk(guard.isExpiryDoubtful(START + 1, START + Hours(24)), 'made after the jump, so its age was measured');
  machine.step(-Days(10));
  guard.compare();
  t.notOk(
    guard.isExpiryDoubtful(START - 1, START + Hours(24)),
    'no doubt if the machine is behind: the later time counts',
  );
});

/** The witnesses of a gateway with so many real and simulated locks. */
function witnessesOf(real: number, simulated: number): ClockWitnesses {
  const witnesses = new ClockWitnesses();
  witnesses.setLockCount({ real, simulated });
  return witnesses;
}

/** The time in an uplink of a lock, by default one that agrees with {@link START}. */
function reportedTime(deviceId: number, members: Partial<ReportedTime> = {}): ReportedTime {
  return { deviceId, source: 'lock', simulated: false, timeMs: START, kept: 0, ...members };
}

t.test('five locks confirm the clock, or all locks if there are fewer', async (t) => {
  const amongMany = witnessesOf(100, 0);
  for (const id of [1, 2, 3, 4, 4, 4]) amongMany.noteUplink(reportedTime(id), START);
  t.same([amongMany.agreeing, amongMany.needed, amongMany.hasEnough], [4, 5, false], 'each lock counts once');
  amongMany.noteUplink(reportedTime(5, { source: 'phone' }), START);
  amongMany.noteUplink(reportedTime(6, { kept: 1 }), START);
  amongMany.noteUplink(reportedTime(7, { simulated: true }), START);
  amongMany.noteUplink(reportedTime(8, { timeMs: START - Minutes(5) - 1 }), START);
  amongMany.noteUplink(reportedTime(9, { timeMs: Number.NaN }), START);
  t.notOk(amongMany.hasEnough, 'phones, buffered uplinks, simulated locks and disagreeing locks do not count');
  amongMany.noteUplink(reportedTime(8, { timeMs: START + Minutes(5) }), START);
  t.ok(amongMany.hasEnough, 'a difference of five minutes still agrees');

  const amongTwo = witnessesOf(2, 50);
  amongTwo.noteUplink(reportedTime(1), START);
  t.same([amongTwo.needed, amongTwo.hasEnough], [2, false]);
  amongTwo.noteUplink(reportedTime(2), START);
  t.ok(amongTwo.hasEnough);

  const simulatedOnly = witnessesOf(0, 1);
  simulatedOnly.noteUplink(reportedTime(1, { simulated: true }), START);
  t.ok(simulatedOnly.hasEnough, 'simulated locks count only if there are no others');
  const withoutLocks = witnessesOf(0, 0);
  t.same([withoutLocks.needed, withoutLocks.hasEnough], [null, false]);
  const uncounted = new ClockWitnesses();
  for (const id of [1, 2, 3, 4]) uncounted.noteUplink(reportedTime(id), START);
  t.notOk(uncounted.hasEnough, 'before the locks are counted, five are needed');
});

t.test('after another jump the clock must be confirmed again', async (t) => {
  const { machine, guard } = setUpGuard();
  machine.step(Days(400));
  guard.compare();
  for (const id of [1, 2, 3, 4]) guard.noteUplink(reportedTime(id, { timeMs: machine.wall() }));
  machine.step(Days(5));
  guard.compare();
  guard.noteUplink(reportedTime(5, { timeMs: machine.wall() }));
  t.match(guard.reading(), { state: 'ahead', agreeing: 1 });
  for (const id of [1, 2, 3, 4]) guard.noteUplink(reportedTime(id, { timeMs: machine.wall() }));
  t.match(guard.reading(), { state: 'agrees' });
});

t.test('clockText describes a doubtful clock in one sentence', async (t) => {
  const reading = { machineMs: START + Days(5), confirmedMs: START, sinceMs: START, agreeing: 0, needed: 1 };
  t.equal(
    clockText({ ...reading, state: 'ahead' }),
    'the machine’s clock shows 2026-11-25T12:00:00.000Z, 5 d ahead of the last recorded time ' +
      '(2026-11-20T12:00:00.000Z): nothing is deleted for its age, no month is closed and nothing expires by it, ' +
      'until fresh pings of 1 lock ' +
      'agree with it, or "lockgate config confirm-clock" confirms it',
  );
  t.match(
    clockText({ ...reading, state: 'behind', machineMs: Number.NaN, needed: null }),
    /NaN ms after 1970.* of locks/,
  );
});

/** A store that has only metadata. */
function metadataStore(metadata: Map<string, string>, receivedMs: number | null = null) {
  return {
    readMetadata: async (name: string) => metadata.get(name) ?? null,
    readLastReceivedAtMs: async () => receivedMs,
    writeMetadata: async (name: string, value: string) => void metadata.set(name, value),
    listDevices: async () => [],
  };
}

t.test('the store has only confirmed times, so a wrong date does not affect a later start', async (t) => {
  const metadata = new Map<string, string>();
  const store = metadataStore(metadata);
  /** Runs the clocks on a machine for some time. Returns their state at the end. */
  const runClocks = async (machine: ManualMachine, span: number): Promise<ClockState> => {
    const clocks = await RecordedClocks.start({ store, speed: 1, machine });
    machine.advance(span);
    const { state } = clocks.reading();
    await clocks.stop();
    return state;
  };
  const recordedOffsets = (): number[] =>
    ['run-clock-ms', 'wall-clock-ms'].map((name) => Number(metadata.get(name)) - START);
  t.equal(await runClocks(new ManualMachine(START), Hours(1)), 'agrees');
  t.equal(await runClocks(new ManualMachine(START + Days(401)), Hours(1)), 'ahead');
  t.same(recordedOffsets(), [Hours(2), Hours(2)]);
  t.equal(await runClocks(new ManualMachine(START - TEN_YEARS), Hours(1)), 'behind');
  t.same(recordedOffsets(), [Hours(3), Hours(3)]);
  t.equal(await runClocks(new ManualMachine(START + Hours(20)), Hours(1)), 'agrees');
  t.same(recordedOffsets(), [Hours(21), Hours(21)], 'when the machine’s clock is right again, its date is recorded');
});

t.test('a store without a recorded date continues from its run’s clock', async (t) => {
  /** The clocks’ state, how far both are ahead of {@link START}, and where the run’s clock was before. */
  const clockAfterStart = async (ranMs: number, receivedMs: number | null) => {
    const store = metadataStore(new Map([['run-clock-ms', String(ranMs)]]), receivedMs);
    const clocks = await RecordedClocks.start({ store, speed: 1, machine: new ManualMachine(START) });
    await clocks.stop();
    return [clocks.reading().state, clocks.run.now() - START, clocks.wall.now() - START, clocks.lastRanMs];
  };
  t.same(await clockAfterStart(START - Hours(20), null), ['agrees', 0, 0, START - Hours(20)]);
  t.same(await clockAfterStart(START - Days(401), START - Days(3)), ['ahead', -Days(3), -Days(3), START - Days(3)]);
  t.same(
    await clockAfterStart(START + Days(9), null),
    ['agrees', Days(9), 0, START + Days(9)],
    'a demo’s run clock is ahead of the date',
  );
});

t.test('a sped-up run follows only its own clock and needs no confirmation', async (t) => {
  const metadata = new Map<string, string>();
  const store = metadataStore(metadata);
  const first = new ManualMachine(START);
  const demo = await RecordedClocks.start({ store, speed: 60, machine: first });
  first.advance(Hours(1));
  t.equal(demo.run.now(), START + Hours(60));
  await demo.stop();
  const later = new ManualMachine(START + Days(401));
  const again = await RecordedClocks.start({ store, speed: 60, machine: later });
  again.listen({
    stateChanged: () => t.fail('the state must not change'),
    stepping: () => t.fail('there must be no step'),
  });
  later.advance(Hours(1));
  t.equal(again.run.now(), START + Hours(120), 'the run’s clock continues');
  t.equal(again.wall.now(), later.wall(), 'the date is the machine’s');
  t.match(again.reading(), { state: 'agrees', sinceMs: null });
  t.notOk(again.doubt.isDoubted);
  await again.stop();
  t.equal(
    Number(metadata.get('wall-clock-ms')),
    START + Hours(2),
    'only the two hours that the runs lasted are recorded as confirmed',
  );
});
