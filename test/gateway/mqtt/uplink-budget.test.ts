/**
 * The uplink budget of a lock (interfaces.md §2): the gateway pauses reading the socket of a lock that exceeds
 * its budget. No uplink is lost, and other locks are not affected.
 */
import t, { type Test } from 'tap';
import { readConfig } from '../../../gateway/config-reader.js';
import type { Gateway, GatewayOptions } from '../../../gateway/gateway.js';
import type { BudgetChanged } from '../../../gateway/lock-events.js';
import { type BudgetLimits, UplinkBudget, WITHIN_BUDGET_AFTER } from '../../../gateway/mqtt/budget/uplink-budget.js';
import { UplinkBudgets } from '../../../gateway/mqtt/budget/uplink-budgets.js';
import { resolveSettings } from '../../../gateway/resolved-settings.js';
import { Days, Hours, ManualClock, Minutes, Seconds } from '../../../proto/clock.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { ChangeSignal } from '../../helpers/clocks/change-signal.js';
import { openGateway, testBytes, testGateway, testMac } from '../../helpers/gateway/test-gateway.js';
import { runLoopTurns, startManualBroker } from '../../helpers/mqtt/manual-broker.js';
import { PubackLock, uplinkPacket } from '../../helpers/mqtt/puback-lock.js';
import { pubackHex, publishPacket as publish } from '../../helpers/mqtt/raw-lock.js';
import { connectedLock, TestLock } from '../../helpers/mqtt/test-lock.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const [MAC, OTHER_MAC] = [testMac(1), testMac(2)];
const DEFAULTS: BudgetLimits = { uplinksPerSecond: 200, burstUplinks: 2000, uplinksPerDay: 200_000 };
/** A wait that takes longer fails the test. */
const MAX_WAIT_SECONDS = 20;
/** The number of uplinks that a lock buffers without coverage (protocol.md §2). */
const BUFFERED_UPLINKS = 256;

t.setTimeout(Minutes(2));

/** A budget and its reports. */
function budgetOf(limits: Partial<BudgetLimits> = {}) {
  const clock = new ManualClock();
  const reports: string[] = [];
  const watcher = {
    now: () => clock.now(),
    over: ({ over }: UplinkBudget) => reports.push(`over by ${over?.limit}`),
    within: () => reports.push('within'),
  };
  const owner = { deviceId: 1, mac: MAC, source: 'lock' } as const;
  return { clock, reports, budget: new UplinkBudget(owner, { limits: { ...DEFAULTS, ...limits }, clock, watcher }) };
}

/** How many single uplinks the budget allows within `span` (ms) to a lock that every `step` (ms) sends all it may. */
function countAllowed(budget: UplinkBudget, clock: ManualClock, span: number, step: number): number {
  let count = 0;
  for (const end = clock.now() + span; clock.now() < end; clock.advance(step))
    while (!budget.isSpent) {
      budget.take(1);
      count += 1;
    }
  return count;
}

t.test('the budget allows a burst, then a rate per second, then a number per day', (t) => {
  const { clock, budget, reports } = budgetOf();
  t.equal(countAllowed(budget, clock, 1, 1), 2000, 'the burst');
  const perSecond = countAllowed(budget, clock, Seconds(100), 10) / 100;
  t.ok(perSecond > 190 && perSecond < 205, `${perSecond} a second`);
  const firstDay = 2000 + perSecond * 100 + countAllowed(budget, clock, Days(1) - Seconds(100), Seconds(1));
  t.ok(
    firstDay >= 200_000 && firstDay < 400_100,
    `${firstDay} on the first day: the full bucket, and the day's refill`,
  );
  const laterDay = countAllowed(budget, clock, Days(1), Seconds(1));
  t.ok(laterDay > 199_000 && laterDay < 201_000, `${laterDay} on each day after it`);
  t.same(reports, ['over by rate', 'over by day']);
  /** In this time, the day's budget grows by an uplink. */
  const dayShare = Days(1) / 200_000;
  budget.take(1);
  clock.advance(2 * dayShare + Seconds(1));
  t.notOk(budget.isSpent, 'the next uplink is read soon, not after a day');
  clock.advance(WITHIN_BUDGET_AFTER);
  t.equal(reports.at(-1), 'within');
  t.end();
});

t.test('all uplinks of one read are accepted and counted', (t) => {
  const { clock, budget } = budgetOf();
  // The burst is 2000, and the rate 200 a second.
  budget.take(6000);
  t.ok(budget.isSpent);
  clock.advance(Seconds(19.9));
  t.ok(budget.isSpent, '4,000 uplinks beyond the budget cost a wait of 20 s');
  clock.advance(Seconds(0.2));
  t.notOk(budget.isSpent);
  t.end();
});

t.test('the budget never delays a normal lock', (t) => {
  const { clock, budget, reports } = budgetOf();
  // Its buffered uplinks, then the model's busiest hours, again and again: a theft with a GPS ping every 10 s.
  for (let outage = 0; outage < 24; outage++) {
    budget.take(BUFFERED_UPLINKS);
    for (const end = clock.now() + Hours(1); clock.now() < end; clock.advance(Seconds(10))) budget.take(1);
  }
  t.same(reports, []);
  t.end();
});

/** A gateway whose budgets use a clock of the test. */
async function setUpBudgets(test: Test, options: GatewayOptions = {}) {
  const clock = new ManualClock();
  const gateway = await testGateway(test, { budgetClock: clock, ...options });
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  const other = await connectedLock(test, gateway, OTHER_MAC);
  const budgetEvents: BudgetChanged[] = [];
  const changeSignal = new ChangeSignal();
  gateway.events.on('budget', (event) => {
    budgetEvents.push(event);
    changeSignal.notify();
  });
  /** Connects the lock, and sends many pings at once. */
  const flood = async (count: number): Promise<PubackLock> => {
    const lock = await PubackLock.connect(gateway.mqttPort, MAC, secret, () => changeSignal.notify());
    test.teardown(() => lock.socket.destroy());
    lock.socket.write(
      Buffer.concat(Array.from({ length: count }, (_, index) => uplinkPacket(index + 1, testBytes(index + 1)))),
    );
    return lock;
  };
  /** Resolves when the lock has exceeded its budget, or has a PUBACK for every ping. */
  const waitForBudgetOr = async (lock: PubackLock, count: number): Promise<void> => {
    await changeSignal.waitUntil(
      () => budgetEvents.length > 0 || lock.acked.length === count,
      MAX_WAIT_SECONDS,
      () => `${lock.acked.length} PUBACKs`,
    );
    await waitForAccepted();
  };
  let sequence = 0;
  /** Resolves when another lock's ping is acknowledged: then so is everything that was accepted before. */
  const waitForAccepted = async (): Promise<void> => {
    // Three in a row, since the other sockets' chunks are read in several turns of the event loop.
    for (const end = sequence + 3; sequence < end; ) {
      sequence += 1;
      await other.send(testBytes(sequence));
    }
  };
  /** Advances the clock until the lock has this many PUBACKs. */
  const advanceUntilAcked = async (lock: PubackLock, count: number): Promise<number> => {
    const from = clock.now();
    while (lock.acked.length < count) {
      clock.advance(Seconds(0.5));
      await waitForAccepted();
    }
    return clock.now() - from;
  };
  return {
    clock,
    gateway,
    secret,
    budgetEvents,
    changeSignal,
    flood,
    waitForBudgetOr,
    waitForAccepted,
    advanceUntilAcked,
  };
}

const FLOOD_PINGS = 4500;
/** How many uplinks one read of 64 KiB may bring beyond the burst. */
const MAX_UPLINKS_PER_READ = Math.ceil((64 * 1024) / uplinkPacket(1, testBytes(1)).length) + 1;

/** The notices about locks over their budgets: the MAC, whether the notice is open, and the text. */
async function noticesOf(gateway: Gateway): Promise<string[]> {
  const { body } = await callOperator(gateway, 'GET', '/notices?kind=lock-over-budget');
  return (body as { notices: { subject: string; text: string; resolved_at: string | null }[] }).notices.map(
    ({ subject, text, resolved_at }) => `${subject} ${resolved_at === null ? 'open' : 'over'} ${text}`,
  );
}

t.test('a flooding lock is read at its budget’s rate, loses nothing, and is reported', async (t) => {
  const { clock, gateway, budgetEvents, flood, waitForBudgetOr, advanceUntilAcked } = await setUpBudgets(t);
  const lock = await flood(FLOOD_PINGS);
  await waitForBudgetOr(lock, FLOOD_PINGS);
  const atOnce = lock.acked.length;
  t.ok(
    atOnce >= 2000 && atOnce < 2000 + MAX_UPLINKS_PER_READ,
    `${atOnce} of ${FLOOD_PINGS} are accepted while no time passes`,
  );
  t.match(budgetEvents, [{ mac: MAC, source: 'lock', state: 'over', why: /200 uplinks a second \(2,000 at once\)/ }]);
  const mac = formatMac(MAC);
  t.match(await noticesOf(gateway), [/^A4:C1:38:00:00:01 open A4:C1:38:00:00:01: the lock sends more than 200 upl/]);
  t.match((await callOperator(gateway, 'GET', `/devices/${mac}`)).body, {
    over_budget: [{ source: 'lock', limit: 'rate', why: /200 uplinks a second/ }],
  });
  t.match((await callOperator(gateway, 'GET', `/why?id=${mac}`)).body, {
    // The first four steps are about the lock's connection, power mode and last uplink.
    steps: [{}, {}, {}, {}, { kind: 'gateway', code: 'over-budget', sentence: /none is lost/ }],
  });
  const waitedMs = await advanceUntilAcked(lock, FLOOD_PINGS);
  t.ok(
    waitedMs >= Seconds((FLOOD_PINGS - atOnce - MAX_UPLINKS_PER_READ) / 200),
    `the remaining ones took ${waitedMs / Seconds(1)} s`,
  );
  t.same(
    lock.acked,
    Array.from({ length: FLOOD_PINGS }, (_, index) => index + 1),
    'each once, in order',
  );
  // A budget that has refilled counts as kept after a minute.
  clock.advance(Minutes(2));
  t.match(budgetEvents.at(-1), { state: 'within' });
  t.equal((await noticesOf(gateway))[0]?.split(' ')[1], 'over');
  t.match((await callOperator(gateway, 'GET', `/devices/${mac}`)).body, { over_budget: [] });
});

t.test('reconnecting does not refill the budget', async (t) => {
  const { clock, flood, waitForBudgetOr, waitForAccepted } = await setUpBudgets(t);
  const flooding = await flood(FLOOD_PINGS);
  await waitForBudgetOr(flooding, FLOOD_PINGS);
  flooding.socket.destroy();
  await waitForAccepted();
  const reconnected = await flood(100);
  await waitForAccepted();
  t.same(reconnected.acked, [], 'no uplink is accepted, though there are few');
  // In this time 4,000 uplinks refill: more than the first connection's last read took beyond the budget.
  clock.advance(Seconds(20));
  await waitForAccepted();
  await waitForAccepted();
  t.equal(reconnected.acked.length, 100, 'the uplinks are accepted once the budget has refilled');
});

t.test('all phones of a lock share a separate budget', async (t) => {
  const { clock, gateway, secret, waitForBudgetOr, waitForAccepted, changeSignal, budgetEvents } =
    await setUpBudgets(t);
  const phones = await Promise.all(
    ['p1', 'p2'].map(async (name) => {
      const { secret: key } = await gateway.accounts.devices.addPhone({ mac: MAC, name, expiresAtMs: null });
      const phone = await PubackLock.connect(
        gateway.mqttPort,
        MAC,
        key,
        () => changeSignal.notify(),
        `phone-${MAC}-${name}`,
      );
      t.teardown(() => phone.socket.destroy());
      return phone;
    }),
  );
  const [flooding, other] = phones as [PubackLock, PubackLock];
  const pings = (count: number): Buffer =>
    Buffer.concat(Array.from({ length: count }, (_, index) => uplinkPacket(index + 1, testBytes(index + 1))));
  flooding.socket.write(pings(FLOOD_PINGS));
  await waitForBudgetOr(flooding, FLOOD_PINGS);
  t.match(budgetEvents, [{ source: 'phone', state: 'over', why: /phones that act for it send more/ }]);
  const lock = await TestLock.connect(t, gateway.mqttPort, MAC, secret);
  await lock.send(testBytes(1));
  t.pass('the lock’s own ping is acknowledged');
  // Its socket is paused only after a read that finds the budget spent: the first read brings these ten.
  other.socket.write(pings(10));
  await waitForAccepted();
  t.equal(other.acked.length, 10);
  other.socket.write(pings(10));
  await waitForAccepted();
  t.equal(other.acked.length, 10, 'the other phone’s next pings are not read, though it has sent few');
  clock.advance(Minutes(2));
  await waitForAccepted();
  await waitForAccepted();
  t.equal(other.acked.length, 20, 'they are accepted once the budget has refilled');
});

t.test('a connection that is not read does not count as silent', async (t) => {
  const [clock, guardClock] = [new ManualClock(), new ManualClock()];
  const watcher = { now: () => 0, over: () => undefined, within: () => undefined };
  // 24 uplinks at once, then one an hour; 0 is no limit per second.
  const limits = { uplinksPerSecond: 0, burstUplinks: 1, uplinksPerDay: 24 };
  const budgets = new UplinkBudgets({ limits, clock, watcher });
  for (const fastPath of [true, false]) {
    const mac = testMac(fastPath ? 3 : 4);
    const { connect, ingest } = await startManualBroker(t, { budgets, guardClock, fastPath });
    const lock = await connect(mac);
    const uplink = (id: number): Buffer => publish('up', Buffer.from(`p${id}`), id);
    // The first 8 hex digits are the CONNACK.
    const answers = (): string => lock.received.slice(8);
    const expected = (count: number): string =>
      Array.from({ length: count }, (_, index) => pubackHex(index + 1)).join('');
    for (let id = 1; id <= 24; id++) {
      lock.send(uplink(id));
      await runLoopTurns(2);
      ingest.answer();
      await runLoopTurns(2);
    }
    t.equal(answers(), expected(24), 'the budget of the day');
    lock.send(uplink(25));
    guardClock.advance(Minutes(50));
    await runLoopTurns();
    ingest.answer();
    t.equal(answers(), expected(24), 'nothing more is read');
    t.notOk(lock.destroyed, 'the keepalive of 300 s does not close the connection');
    clock.advance(Hours(1.1));
    await runLoopTurns();
    ingest.answer();
    await runLoopTurns();
    t.equal(answers(), expected(25), 'an hour later it is read');
    clock.advance(Hours(2));
    guardClock.advance(Minutes(20));
    await runLoopTurns();
    const last = ingest.recordedEvents.at(-1)?.event;
    t.match(last, { type: 'disconnect', cause: 'keepalive' }, 'from then on silence counts again');
  }
});

t.test('uplinks right after the CONNECT count too', async (t) => {
  const clock = new ManualClock();
  const watcher = { now: () => 0, over: () => undefined, within: () => undefined };
  // One uplink a second; 0 is no limit per day.
  const limits = { uplinksPerSecond: 1, burstUplinks: 1, uplinksPerDay: 0 };
  const budgets = new UplinkBudgets({ limits, clock, watcher });
  const { connect, ingest } = await startManualBroker(t, { budgets });
  const uplink = (id: number): Buffer => publish('up', Buffer.from(`p${id}`), id);
  await connect(MAC, Buffer.concat([uplink(1), uplink(2), uplink(3)]));
  t.equal(ingest.taken.length, 3, 'all uplinks of one read are accepted');
  await connect(MAC, uplink(4));
  t.equal(ingest.taken.length, 3, 'the next connection starts with the negative budget');
  clock.advance(Seconds(3.1));
  await runLoopTurns();
  t.equal(ingest.taken.length, 4, 'when the budget is positive again');
});

t.test('a gateway at 3600 × speed allows 3600 times as many uplinks', async (t) => {
  const sent = 2600;
  // More uplinks in flight than a real lock's one (protocol.md §2), to measure the rate.
  for (const [speed, inFlight, isOver] of [
    [3600, 20, false],
    [60, 20, false],
    [1, 100, true],
  ] as const) {
    const gateway = await testGateway(t, { speed });
    const { secret } = await gateway.accounts.addDevice({ mac: MAC });
    const changeSignal = new ChangeSignal();
    let budgetEvents = 0;
    gateway.events.on('budget', () => {
      budgetEvents += 1;
      changeSignal.notify();
    });
    const lock = await PubackLock.connect(gateway.mqttPort, MAC, secret, () => changeSignal.notify());
    for (let index = 0; index < sent && budgetEvents === 0; index += inFlight) {
      for (let id = index + 1; id <= index + inFlight; id++) lock.socket.write(uplinkPacket(id, testBytes(id)));
      await changeSignal.waitUntil(
        () => lock.acked.length >= index + inFlight || budgetEvents > 0,
        MAX_WAIT_SECONDS,
        () => `${lock.acked.length} PUBACKs`,
      );
    }
    t.equal(budgetEvents > 0, isOver, `${lock.acked.length} uplinks, ${inFlight} in flight, at ${speed} × speed`);
    lock.socket.destroy();
    await gateway.close();
  }
});

t.test('the settings of the budget are checked', async (t) => {
  const config = (flags: Record<string, string>) => readConfig(resolveSettings(flags, {}));
  t.match(config({}), { lockUplinksPerSecond: 200, lockUplinkBurst: 2000, lockUplinksPerDay: 200_000 });
  for (const [key, value, message] of [
    ['lockUplinksPerSecond', '-1', /--lock-uplinks-per-second is "-1": expected a whole number, 0 or more/],
    ['lockUplinkBurst', '0', /--lock-uplink-burst is "0": expected a whole number, 1 or more/],
    ['lockUplinksPerDay', 'many', /--lock-uplinks-per-day is "many"/],
  ] as const)
    t.throws(() => config({ [key]: value }), { code: 'input-setting', message });
  const limits = { lockUplinksPerSecond: 0, lockUplinksPerDay: 0 };
  const gateway = await openGateway(t, tempFolder(t), { budgetClock: new ManualClock() }, limits);
  await gateway.accounts.addMerchant('Amber');
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  const changeSignal = new ChangeSignal();
  const lock = await PubackLock.connect(gateway.mqttPort, MAC, secret, () => changeSignal.notify());
  for (let id = 1; id <= 3000; id++) lock.socket.write(uplinkPacket(id, testBytes(id)));
  await changeSignal.waitUntil(
    () => lock.acked.length === 3000,
    MAX_WAIT_SECONDS,
    () => `${lock.acked.length} PUBACKs of 3,000 without limits`,
  );
  t.pass('0 is no limit');
  lock.socket.destroy();
});
