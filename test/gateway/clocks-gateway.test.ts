/**
 * A gateway on a machine whose clock jumps (gateway/clocks/): what is deleted, closed, sent, expired and signed before
 * the new date is confirmed, and after. A finding is the gateway's objection to a lock, such as that it is late.
 */
import t, { type Test } from 'tap';
import { readCommandRequest } from '../../gateway/commands/command-input.js';
import type { Gateway } from '../../gateway/gateway.js';
import { LOG_START } from '../../gateway/store/contract/log/log-position.js';
import { afterThisTurn, Days, Hours, Minutes, Seconds } from '../../proto/clock.js';
import type { Finding } from '../../proto/power/judge/event.js';
import { ManualMachine } from '../helpers/clocks/manual-machine.js';
import { MERCHANT, openGateway, testBytes, testMac, waitForEvents } from '../helpers/gateway/test-gateway.js';
import { testReceiver } from '../helpers/gateway/test-receiver.js';
import { accessToken, apiKey, callMerchantApi } from '../helpers/http/merchant-call.js';
import { TestLock } from '../helpers/mqtt/test-lock.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

/** The date of the machine at the first start, ms since the epoch. */
const START = Date.UTC(2026, 10, 20, 12);
const TEN_YEARS = Days(3652);
/** The id of the only merchant. */
const MERCHANT_ID = 1;

/** Resolves when work that the manual clocks started is done. */
async function runLoopTurns(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise<void>((resolve) => afterThisTurn(resolve));
}

/** A gateway on a machine whose clock the test sets. */
interface GatewayRun {
  readonly folder: string;
  readonly machine: ManualMachine;
  readonly gateway: Gateway;
}

/** A gateway on a folder, on a machine whose date is `aheadMs` after {@link START}. */
async function startGatewayAt(t: Test, folder: string, aheadMs: number): Promise<GatewayRun> {
  const machine = new ManualMachine(START + aheadMs);
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
  (await gateway.store.readEvents(MERCHANT_ID, LOG_START, 99)).map(({ sequence }) => sequence);

t.test('a start 401 days ahead deletes no ping and closes no month before it is confirmed', async (t) => {
  const { folder, gateway: first } = await startFirstGateway(t);
  await first.close();
  const run = await startGatewayAt(t, folder, Days(401));
  const { gateway, machine } = run;
  const closed: string[] = [];
  gateway.events.on('statement-closed', ({ month }) => closed.push(month));
  for (let sweeps = 0; sweeps < 3; sweeps += 1) {
    machine.advance(Hours(1));
    await runLoopTurns();
  }
  t.same(await storedSequences(run), [1]);
  t.same(closed, []);
  t.match(await gateway.notices.list({ limit: 9 }), [{ kind: 'clock-leapt', subject: 'ahead', resolvedAtMs: null }]);
  const swept = waitForEvents(gateway, 'swept', 1);
  // November 2026 to November 2027.
  const closing = waitForEvents(gateway, 'statement-closed', 13);
  await gateway.clocks.confirm();
  machine.advance(Hours(1));
  t.match(await swept, [{ uplinks: 1 }], 'after the confirmation, old pings are deleted');
  await closing;
  t.same(await storedSequences(run), []);
  t.match(
    await gateway.notices.list({ kind: 'clock-leapt', limit: 9 }),
    [{ resolvedAtMs: Number }],
    'the notice is resolved',
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
  await runLoopTurns();
  t.match(gateway.clocks.reading(), { agreeing: 0, needed: 1 });
  const lock = await TestLock.connect(t, gateway.mqttPort, testMac(), secret);
  const taken = waitForEvents(gateway, 'uplink', 2);
  await lock.send(testBytes(2, { timeMs: START + Days(3), kept: 1 }));
  t.match(gateway.clocks.reading(), { state: 'ahead' }, 'a buffered ping does not confirm the date');
  await lock.send(testBytes(3, { timeMs: machine.wall() }));
  t.match(gateway.clocks.reading(), { state: 'agrees' });
  const [, fresh] = await taken;
  t.equal(fresh?.atMs, machine.wall());
  t.same(rulesOf(fresh?.findings ?? []), [], 'the ping has no findings');
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
  const requestUnlock = (gateway: Gateway) =>
    gateway.commands.send(readCommandRequest({ macs: [testMac()], type: 'unlock' }, gateway.clock.now()));
  await requestUnlock(first);
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
  await requestUnlock(gateway);
  await sent;
  const later = await requestUnlock(gateway);
  t.match(later, [{ record: { id: 3 } }]);
  t.same([await stateOf(1), await stateOf(2)], ['queued', 'sent'], 'the command from before the jump is not sent');

  machine.advance(Minutes(1));
  const expired = waitForEvents(gateway, 'command', 1, ({ record }) => record.state === 'expired');
  await gateway.clocks.confirm();
  t.match(await expired, [{ record: { id: 1 } }], 'after the confirmation it has expired');
  t.match(await gateway.commands.find(3), { state: 'queued' }, 'the later command has not expired');
  const othersExpired = waitForEvents(gateway, 'command', 2, ({ record }) => record.state === 'expired');
  machine.advance(Minutes(1) + 1);
  await othersExpired;
  t.equal((await gateway.commands.find(3)).expiresAtMs, START + Days(3) + Seconds(5) + Minutes(2));
});

t.test('an expired credential stays expired when the clock is set back', async (t) => {
  const { folder, gateway, machine } = await startFirstGateway(t);
  const key = await apiKey(gateway, MERCHANT);
  const token = await accessToken(gateway, key);
  const phoneInput = { mac: testMac(), name: 'guest', expiresAtMs: START + Hours(1) };
  const phone = await gateway.accounts.devices.addPhone(phoneInput);
  const isTokenAccepted = async (by: Gateway): Promise<boolean> =>
    (await callMerchantApi(by, '/v2/pet', { method: 'PUT', token, body: { id: 1, name: 'a', photoUrls: [] } }))
      .status !== 401;
  const isPhoneAccepted = (by: Gateway): Promise<boolean> =>
    TestLock.connectPhone(t, by.mqttPort, testMac(), 'guest', phone.secret).then(
      () => true,
      () => false,
    );
  t.same([await isTokenAccepted(gateway), await isPhoneAccepted(gateway)], [true, true]);
  machine.step(Days(401));
  machine.advance(Seconds(1));
  t.same(
    [await isTokenAccepted(gateway), await isPhoneAccepted(gateway)],
    [true, true],
    'a credential does not expire by a clock that jumped',
  );
  machine.step(-Days(401));
  machine.advance(Hours(1));
  t.same([await isTokenAccepted(gateway), await isPhoneAccepted(gateway)], [false, false]);
  machine.step(-TEN_YEARS);
  machine.advance(Seconds(1));
  t.match(gateway.clocks.reading(), { state: 'behind' });
  t.same(
    [await isTokenAccepted(gateway), await isPhoneAccepted(gateway)],
    [false, false],
    'credentials stay expired while the gateway runs',
  );
  await gateway.close();
  const { gateway: next } = await startGatewayAt(t, folder, -TEN_YEARS);
  t.match(next.clocks.reading(), { state: 'behind' });
  t.same(
    [await isTokenAccepted(next), await isPhoneAccepted(next)],
    [false, false],
    'credentials stay expired after a restart',
  );
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
