/**
 * The gateway's clocks on a machine whose clock jumps (gateway/clocks/), with manual clocks: which dates are trusted,
 * who confirms a date (locks or an operator), and what waits for the confirmation. The run's clock is the gateway's
 * time for deadlines; it never goes back and survives restarts.
 */
import t, { type Test } from 'tap';
import { type ClockAuthority, ClockGuard, type ClockState } from '../../gateway/clocks/clock-guard.js';
import { ClockWitnesses, type ReportedTime } from '../../gateway/clocks/clock-witnesses.js';
import { clockText } from '../../gateway/clocks/clock-words.js';
import { RecordedClocks } from '../../gateway/clocks/recorded-clocks.js';
import { readCommandRequest } from '../../gateway/commands/command-input.js';
import type { Gateway } from '../../gateway/gateway.js';
import { afterThisTurn, Days, Hours, Minutes, Seconds } from '../../proto/clock.js';
import type { Finding } from '../../proto/power/judge/event.js';
import { ManualMachine } from '../helpers/clocks/manual-machine.js';
import { MERCHANT, openGateway, testBytes, testMac, waitForEvents } from '../helpers/gateway/test-gateway.js';
import { testReceiver } from '../helpers/gateway/test-receiver.js';
import { accessToken, apiKey, callMerchantApi } from '../helpers/http/merchant-call.js';
import { TestLock } from '../helpers/mqtt/test-lock.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const START = Date.UTC(2026, 10, 20, 12);
const TEN_YEARS = Days(3652);

interface GuardSetup {
  readonly machine: ManualMachine;
  readonly guard: ClockGuard;
  readonly stateChanges: (readonly [ClockState, ClockAuthority])[];
  readonly steps: number[];
}

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
  const stepsAfter = (by: number): readonly number[] => {
    machine.step(by);
    guard.compare();
    return [guard.wall.now() - machine.wall(), guard.run.now() - machine.wall()];
  };
  t.same(stepsAfter(Seconds(30)), [0, 0], 'a step forward is followed');
  t.same(steps, [], 'a short step is followed silently');
  t.same(stepsAfter(Hours(23)), [0, 0], 'up to a day');
  t.same(steps, [Hours(23)], 'a longer step is reported');
  t.same(stepsAfter(-Minutes(4)), [Minutes(4), Minutes(4)], 'a step back is not followed: the clock continues');
  t.same(stepsAfter(Minutes(4)), [0, 0]);
  t.same(stateChanges, []);
  t.same(stepsAfter(-Hours(1)), [Hours(1), Hours(1)]);
  t.same(stepsAfter(Hours(1)), [0, 0]);
  t.same(stateChanges.splice(0), [
    ['behind', null],
    ['agrees', 'machine'],
  ]);
  t.same(stepsAfter(Hours(25)), [-Hours(25), -Hours(25)], 'a jump of over a day is not followed');
  machine.advance(Minutes(3));
  guard.compare();
  t.equal(guard.wall.now(), START + Seconds(30) + Hours(23) + Minutes(3), 'but the clock continues');
  t.match(guard.reading(), { state: 'ahead', sinceMs: guard.wall.now() - Minutes(3) });
  stepsAfter(Days(400));
  t.same(stateChanges.splice(0), Array(2).fill(['ahead', null]), 'another jump is reported too');
  stepsAfter(-Days(400) - Hours(25));
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
  t.ok(guard.isExpiryDoubtful(START - 1, START + Hours(24)));
  t.notOk(guard.isExpiryDoubtful(START - 1, START + Days(6)), 'not passed by either clock');
  t.notOk(guard.isExpiryDoubtful(START + 1, START + Hours(24)), 'made after the jump, so its age was measured');
  machine.step(-Days(10));
  guard.compare();
  t.notOk(
    guard.isExpiryDoubtful(START - 1, START + Hours(24)),
    'no doubt if the machine is behind: the later time counts',
  );
});

function witnessesOf(real: number, simulated: number): ClockWitnesses {
  const witnesses = new ClockWitnesses();
  witnesses.setLockCount({ real, simulated });
  return witnesses;
}

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
  t.ok(amongMany.hasEnough);

  const amongTwo = witnessesOf(2, 50);
  amongTwo.noteUplink(reportedTime(1), START);
  t.same([amongTwo.needed, amongTwo.hasEnough], [2, false]);
  amongTwo.noteUplink(reportedTime(2), START);
  t.ok(amongTwo.hasEnough);

  const played = witnessesOf(0, 1);
  played.noteUplink(reportedTime(1, { simulated: true }), START);
  t.ok(played.hasEnough, 'simulated locks count only if there are no others');
  const nobody = witnessesOf(0, 0);
  t.same([nobody.needed, nobody.hasEnough], [null, false]);
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
  const startGatewayAt = async (machine: ManualMachine, span: number): Promise<ClockState> => {
    const clocks = await RecordedClocks.start({ store, speed: 1, machine });
    machine.advance(span);
    const { state } = clocks.reading();
    await clocks.stop();
    return state;
  };
  const noted = (): number[] => ['run-clock-ms', 'wall-clock-ms'].map((name) => Number(metadata.get(name)) - START);
  t.equal(await startGatewayAt(new ManualMachine(START), Hours(1)), 'agrees');
  t.equal(await startGatewayAt(new ManualMachine(START + Days(401)), Hours(1)), 'ahead');
  t.same(noted(), [Hours(2), Hours(2)]);
  t.equal(await startGatewayAt(new ManualMachine(START - TEN_YEARS), Hours(1)), 'behind');
  t.same(noted(), [Hours(3), Hours(3)]);
  t.equal(await startGatewayAt(new ManualMachine(START + Hours(20)), Hours(1)), 'agrees');
  t.same(noted(), [Hours(21), Hours(21)], 'the machine’s clock is set right');
});

t.test('a store without a recorded date continues from its run’s clock', async (t) => {
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
  t.equal(again.wall.now(), later.wall(), 'and the date is the machine’s');
  t.match(again.reading(), { state: 'agrees', sinceMs: null });
  t.notOk(again.doubt.isDoubted);
  await again.stop();
  t.equal(Number(metadata.get('wall-clock-ms')), START + Hours(2), 'which is not recorded as confirmed');
});

/** Resolves when work that the manual clocks started is done. */
async function turn(): Promise<void> {
  for (let stateChanges = 0; stateChanges < 20; stateChanges += 1)
    await new Promise<void>((resolve) => afterThisTurn(resolve));
}

interface GatewayRun {
  readonly folder: string;
  readonly machine: ManualMachine;
  readonly gateway: Gateway;
}

/** A gateway on a folder, on a machine whose date is `offMs` after {@link START}. */
async function startGatewayAt(t: Test, folder: string, offMs: number): Promise<GatewayRun> {
  const machine = new ManualMachine(START + offMs);
  const gateway = await openGateway(t, folder, { machine }, { keepDays: 400 });
  return { folder, machine, gateway };
}

/** A gateway with a merchant and one lock, which has sent a ping. */
async function startFirstGateway(t: Test): Promise<GatewayRun & { readonly secret: string; readonly lock: TestLock }> {
  const run = await startGatewayAt(t, tempFolder(t), 0);
  await run.gateway.accounts.addMerchant(MERCHANT);
  const { secret } = await run.gateway.accounts.addDevice({ mac: testMac() });
  const lock = await TestLock.connect(t, run.gateway.mqttPort, testMac(), secret);
  await lock.send(testBytes(1, { timeMs: START }));
  return { ...run, secret, lock };
}

const storedSequences = async ({ gateway }: GatewayRun): Promise<number[]> =>
  (await gateway.store.readEvents(1, 0, 99)).map(({ sequence }) => sequence);

t.test('a start 401 days ahead deletes no ping and closes no month before it is confirmed', async (t) => {
  const { folder, gateway: first } = await startFirstGateway(t);
  await first.close();
  const run = await startGatewayAt(t, folder, Days(401));
  const { gateway, machine } = run;
  const closed: string[] = [];
  gateway.events.on('statement-closed', ({ month }) => closed.push(month));
  for (let sweeps = 0; sweeps < 3; sweeps += 1) {
    machine.advance(Hours(1));
    await turn();
  }
  t.same(await storedSequences(run), [1]);
  t.same(closed, []);
  t.match(await gateway.notices.list({ limit: 9 }), [{ kind: 'clock-leapt', subject: 'ahead', resolvedAtMs: null }]);
  const swept = waitForEvents(gateway, 'swept', 1);
  const closing = waitForEvents(gateway, 'statement-closed', 12);
  await gateway.clocks.confirm();
  machine.advance(Hours(1));
  t.match(await swept, [{ uplinks: 1 }], 'after the confirmation, old pings are deleted');
  await closing;
  t.same(await storedSequences(run), []);
  t.match(
    await gateway.notices.list({ kind: 'clock-leapt', limit: 9 }),
    [{ resolvedAtMs: Number }],
    'and the notice is resolved',
  );
});

/** The broken rules, except for the rule that the tests' unchanged pings break. */
function rulesOf(findings: readonly Finding[]): string[] {
  return findings.map(({ rule }) => rule as string).filter((rule) => rule !== 'state-unchanged');
}

t.test('after a week switched off, the first fresh ping confirms the date and is stamped with it', async (t) => {
  const { folder, secret, gateway: first } = await startFirstGateway(t);
  await first.close();
  const { gateway, machine } = await startGatewayAt(t, folder, Days(7));
  t.match(gateway.clocks.reading(), { state: 'ahead' });
  machine.advance(Seconds(1));
  await turn();
  t.match(gateway.clocks.reading(), { agreeing: 0, needed: 1 });
  const lock = await TestLock.connect(t, gateway.mqttPort, testMac(), secret);
  const taken = waitForEvents(gateway, 'uplink', 2);
  await lock.send(testBytes(2, { timeMs: START + Days(3), kept: 1 }));
  t.match(gateway.clocks.reading(), { state: 'ahead' }, 'a buffered ping does not confirm the date');
  await lock.send(testBytes(3, { timeMs: machine.wall() }));
  t.match(gateway.clocks.reading(), { state: 'agrees' });
  const [, fresh] = await taken;
  t.equal(fresh?.atMs, machine.wall());
  t.same(rulesOf(fresh?.findings ?? []), [], 'and its lock has no findings');
});

t.test('a jump that is confirmed while locks are connected does not count as their silence', async (t) => {
  const run = await startFirstGateway(t);
  const { gateway, machine, lock } = run;
  const found: string[] = [];
  const presences: string[] = [];
  gateway.events.on('finding', ({ finding }) => found.push(...rulesOf([finding])));
  gateway.events.on('uplink', ({ findings }) => found.push(...rulesOf(findings)));
  gateway.events.on('presence', ({ presence: { presence } }) => presences.push(presence));
  machine.step(Days(401));
  machine.advance(Seconds(1));
  t.match(gateway.clocks.reading(), { state: 'ahead' });
  const beforeMs = gateway.clock.now();
  await lock.send(testBytes(2, { timeMs: beforeMs }));
  await gateway.clocks.confirm();
  t.equal(gateway.clock.now(), beforeMs + Days(401));
  await lock.send(testBytes(3, { timeMs: machine.wall() }));
  machine.advance(Seconds(30));
  await lock.send(testBytes(4, { timeMs: machine.wall() }));
  t.same(found, []);
  t.notOk(presences.includes('late'));
  t.same(await storedSequences(run), [1, 2, 3, 4]);
});

t.test('a command from before the jump waits; a later one is sent and keeps its remaining time', async (t) => {
  const { folder, gateway: first } = await startFirstGateway(t);
  const ask = (gateway: Gateway, mac = testMac()) =>
    gateway.commands.send(readCommandRequest({ macs: [mac], type: 'unlock' }, gateway.clock.now()));
  await ask(first);
  await first.close();

  const { gateway, machine } = await startGatewayAt(t, folder, Days(3));
  machine.advance(Seconds(5));
  const stateOf = async (id: number): Promise<string> => (await gateway.commands.find(id)).state;
  const secret = await gateway.accounts.devices.rotateSecret(testMac(), 0);
  const lock = await TestLock.connect(t, gateway.mqttPort, testMac(), secret);
  await lock.client.subscribeAsync('down', { qos: 1 });
  await lock.send(testBytes(2, { timeMs: START }));
  t.match(gateway.commands.waitOf(await gateway.commands.find(1)), { for: 'clock', text: /may have expired/ });
  const sent = waitForEvents(gateway, 'command', 1, ({ record }) => record.state === 'sent');
  await ask(gateway);
  const [, later] = [await sent, await ask(gateway, testMac())];
  t.match(later, [{ record: { id: 3 } }]);
  t.same([await stateOf(1), await stateOf(2)], ['queued', 'sent'], 'last week’s command is not sent');

  machine.advance(Minutes(1));
  const expired = waitForEvents(gateway, 'command', 1, ({ record }) => record.state === 'expired');
  await gateway.clocks.confirm();
  t.match(await expired, [{ record: { id: 1 } }], 'after the confirmation it has expired');
  t.match(await gateway.commands.find(3), { state: 'queued' }, 'and the later command has not');
  const over = waitForEvents(gateway, 'command', 2, ({ record }) => record.state === 'expired');
  machine.advance(Minutes(1) + 1);
  await over;
  t.equal((await gateway.commands.find(3)).expiresAtMs, START + Days(3) + Seconds(5) + Minutes(2));
});

t.test('an expired credential stays expired when the clock is set back', async (t) => {
  const { folder, gateway, machine } = await startFirstGateway(t);
  const key = await apiKey(gateway, MERCHANT);
  const token = await accessToken(gateway, key);
  const addPhone = { mac: testMac(), name: 'guest', expiresAtMs: START + Hours(1) };
  const phone = await gateway.accounts.devices.addPhone(addPhone);
  const isTaken = async (by: Gateway): Promise<boolean> =>
    (await callMerchantApi(by, '/v2/pet', { method: 'PUT', token, body: { id: 1, name: 'a', photoUrls: [] } }))
      .status !== 401;
  const isLetIn = (by: Gateway): Promise<boolean> =>
    TestLock.connectPhone(t, by.mqttPort, testMac(), 'guest', phone.secret).then(
      () => true,
      () => false,
    );
  t.same([await isTaken(gateway), await isLetIn(gateway)], [true, true]);
  machine.step(Days(401));
  machine.advance(Seconds(1));
  t.same([await isTaken(gateway), await isLetIn(gateway)], [true, true], 'and does not expire by a clock that jumped');
  machine.step(-Days(401));
  machine.advance(Hours(1));
  t.same([await isTaken(gateway), await isLetIn(gateway)], [false, false]);
  machine.step(-TEN_YEARS);
  machine.advance(Seconds(1));
  t.match(gateway.clocks.reading(), { state: 'behind' });
  t.same([await isTaken(gateway), await isLetIn(gateway)], [false, false], 'not while the gateway runs');
  await gateway.close();
  const { gateway: next } = await startGatewayAt(t, folder, -TEN_YEARS);
  t.match(next.clocks.reading(), { state: 'behind' });
  t.same([await isTaken(next), await isLetIn(next)], [false, false], 'and not after a restart');
  const fresh = await accessToken(next, key);
  const put = { method: 'PUT', token: fresh, body: { id: 1, name: 'a', photoUrls: [] } };
  t.equal((await callMerchantApi(next, '/v2/pet', put)).status, 404, 'a new credential is valid');
});

t.test('while the machine’s date is in doubt, webhooks are signed with the confirmed date', async (t) => {
  const { folder, secret, gateway: first } = await startFirstGateway(t);
  const receiver = await testReceiver(t);
  await first.accounts.addWebhookUrl({ url: receiver.url });
  await first.close();
  const { gateway, machine } = await startGatewayAt(t, folder, Days(401));
  const lock = await TestLock.connect(t, gateway.mqttPort, testMac(), secret);
  await lock.send(testBytes(2, { timeMs: START }));
  await receiver.waitForRequests(1);
  const signedMs = Number(receiver.requests[0]?.headers['webhook-timestamp']) * 1000;
  t.equal(signedMs, Math.floor(gateway.clocks.wall.now() / 1000) * 1000);
  t.ok(machine.wall() - signedMs > Days(399), 'the machine’s date differs');
});
