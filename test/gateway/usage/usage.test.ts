/**
 * Closing a month writes a statement (a bill) for each merchant. Usage is billed exactly, once, and to the right
 * merchant (interfaces.md §5), also after a restart or when a lock moves to another merchant. Usage that arrives after
 * its month was closed is billed as a correction on the next statement. The second half tests the command `lockgate
 * usage`.
 */
import t, { type Test } from 'tap';
import type { Merchant } from '../../../gateway/store/contract/merchants/merchant-store.js';
import type { UsageDelta } from '../../../gateway/store/contract/usage-store.js';
import { type Month, monthEndMs, nextMonth, parseMonth } from '../../../gateway/usage/month.js';
import type { Statement, UnbilledUsage } from '../../../gateway/usage/statement.js';
import { ManualClock, Seconds } from '../../../proto/clock.js';
import { formatMac, type Mac } from '../../../proto/wire/mac.js';
import { type CommandResult, runCommand } from '../../helpers/cli/command-line.js';
import { type CommandOutput, runLockgate } from '../../helpers/cli/program.js';
import { ChangeSignal } from '../../helpers/clocks/change-signal.js';
import { withOverrides } from '../../helpers/durability/sabotage.js';
import { MERCHANT, openGateway, testBytes, testMac } from '../../helpers/gateway/test-gateway.js';
import { BEFORE_MONTH_END_MS, setUpUsage, type UsageSetup } from '../../helpers/gateway/usage-setup.js';
import { TestLock } from '../../helpers/mqtt/test-lock.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

t.setTimeout(120_000);

const NOVEMBER = '2099-11' as Month;
const DECEMBER = '2099-12' as Month;
const EUR = { perMb: '0.12', perSim: '0.80', currency: 'EUR' };

/** A month such as 2099-10. @throws Error if the text is no month */
function month(text: string): Month {
  const parsed = parseMonth(text);
  if (!parsed.ok) throw new Error(parsed.error.message);
  return parsed.value;
}

/** Usage of a lock in November that is on no statement yet: 4 messages and exactly 1 MB. */
function unbilledUsage(mac: Mac, members: Partial<UnbilledUsage> = {}): UnbilledUsage {
  const counts = { messagesUp: 3, messagesDown: 1, connections: 2, bytesUp: 900_000, bytesDown: 100_000 };
  return { month: NOVEMBER, mac, simulated: false, ...counts, ...members };
}

/* ------------------------------------------------------------------------------------- statements in the store */

/** The same usage as an addition to the stored counts. Merchant 1 is Amber. */
function delta(mac: Mac, members: Partial<UsageDelta> = {}): UsageDelta {
  return { ...unbilledUsage(mac), merchantId: 1, ...members };
}

/** The statements of a month as the store has them, of all merchants or of one. */
async function statementsOf(
  { usage }: Pick<UsageSetup, 'usage'>,
  usageOf: Month,
  merchant?: string,
): Promise<Statement[]> {
  return (await usage.statements(usageOf, merchant)).map(({ body }) => JSON.parse(body) as Statement);
}

/** Adds a lock whose SIM was activated in November. */
async function activeLock({ accounts, store }: UsageSetup, number: number, merchant = MERCHANT): Promise<Mac> {
  const mac = testMac(number);
  await accounts.addDevice({ mac, merchant });
  await store.usage.activate([{ mac, atMs: Date.UTC(2099, 10, 12) }]);
  return mac;
}

interface ClosingSetup extends UsageSetup {
  /** Notifies when a month was closed for a merchant. */
  readonly changeSignal: ChangeSignal;
  /** The months that were closed for a merchant. */
  readonly closed: Set<Month>;
}

/** Advances the clock to the end of November, and waits until it was closed for a merchant. */
async function endNovember(setup: ClosingSetup): Promise<void> {
  setup.clock.advance(monthEndMs(NOVEMBER) - BEFORE_MONTH_END_MS);
  const limitSeconds = 20;
  await setup.changeSignal.waitUntil(
    () => setup.clock.now() >= monthEndMs(NOVEMBER) && setup.closed.has(NOVEMBER),
    limitSeconds,
    () => 'the close of November',
  );
}

/** The gateway's parts for usage, which record the months that were closed. */
async function setUpClosing(t: Test, data?: string, clock?: ManualClock): Promise<ClosingSetup> {
  const changeSignal = new ChangeSignal();
  const closed = new Set<Month>();
  const usageSetup = await setUpUsage(t, {
    ...(data !== undefined && { data }),
    ...(clock !== undefined && { clock }),
    wrapStore: (store) => {
      const close: typeof store.usage.close = async (merchantId, usageOf, nowMs, make) => {
        const isNew = await store.usage.close(merchantId, usageOf, nowMs, make);
        closed.add(usageOf);
        changeSignal.notify();
        return isNew;
      };
      return withOverrides(store, { usage: withOverrides(store.usage, { close }) });
    },
  });
  return { ...usageSetup, changeSignal, closed };
}

t.test('a month is closed automatically at its end, and only once', async (t) => {
  const setup = await setUpClosing(t);
  const mac = await activeLock(setup, 1);
  await setup.usage.setPlan(MERCHANT, EUR);
  await setup.store.usage.add([delta(mac)], setup.clock.now());
  await t.rejects(setup.usage.close(NOVEMBER), {
    code: 'usage-month-open',
    message: '2099-11 has not ended: it can be closed from 2099-12-01T00:00:00.000Z on',
  });
  await t.rejects(setup.usage.statements(NOVEMBER), { code: 'no-such-statement', message: /has not ended/ });
  await endNovember(setup);
  const [closed] = await setup.usage.statements(NOVEMBER);
  t.match(JSON.parse(closed?.body ?? ''), {
    merchant: MERCHANT,
    month: '2099-11',
    from: '2099-11-01T00:00:00.000Z',
    until: '2099-12-01T00:00:00.000Z',
    closed_at: '2099-12-01T00:00:00.000Z',
    // 0.12 for 1 MB, and 0.80 for the SIM.
    lines: [{ mac: formatMac(mac), amount: '0.92' }],
    totals: { total: '0.92' },
  });
  setup.clock.advance(Seconds(30));
  await setup.store.usage.add([delta(mac)], setup.clock.now());
  await setup.usage.setPlan(MERCHANT, { ...EUR, perMb: '9' });
  t.same(await setup.usage.close(NOVEMBER), [{ merchant: MERCHANT, month: '2099-11', isNew: false }]);
  t.same(await setup.usage.statements(NOVEMBER), [closed], 'the statement is unchanged');
  await t.rejects(setup.usage.setPlan(MERCHANT, EUR, NOVEMBER), { code: 'usage-month-closed' });
});

t.test('usage of a closed month is a correction on the next statement, once', async (t) => {
  const setup = await setUpClosing(t);
  const mac = await activeLock(setup, 1);
  await setup.usage.setPlan(MERCHANT, EUR);
  await setup.store.usage.add([delta(mac)], setup.clock.now());
  await endNovember(setup);
  await setup.store.usage.add([delta(mac, { bytesUp: 500_000, bytesDown: 0 })], setup.clock.now());
  await setup.store.usage.add([delta(mac, { month: DECEMBER })], setup.clock.now());
  setup.clock.advance(monthEndMs(DECEMBER) - setup.clock.now());
  await setup.usage.close(DECEMBER);
  const [december] = await statementsOf(setup, DECEMBER);
  t.match(december?.corrections, [
    { month: '2099-11', mac: formatMac(mac), bytes: 500_000, messages: 4, connections: 2, amount: '0.06' },
  ]);
  t.match(december?.totals, { bytes: 1_500_000, data_amount: '0.12', corrections_amount: '0.06', total: '0.98' });
  const january = nextMonth(DECEMBER);
  setup.clock.advance(monthEndMs(january) - setup.clock.now());
  await setup.usage.close(january);
  t.match(await statementsOf(setup, january), [
    { corrections: [], totals: { bytes: 0, active_sims: 1, total: '0.80' } },
  ]);
  const all = [NOVEMBER, DECEMBER, january].map((each) => statementsOf(setup, each));
  const billed = (await Promise.all(all)).flat().map(({ totals }) => totals.bytes);
  const rows = await setup.usage.read({});
  t.equal(
    billed.reduce((a, b) => a + b, 0),
    rows.map(({ bytesUp, bytesDown }) => bytesUp + bytesDown).reduce((a, b) => a + b, 0),
    'every byte is on one statement',
  );
});

t.test('months that ended while the gateway was down are closed at the next start', async (t) => {
  const data = tempFolder(t);
  const firstRun = await setUpClosing(t, data);
  const mac = await activeLock(firstRun, 1);
  await firstRun.store.usage.add([delta(mac)], firstRun.clock.now());
  await firstRun.close();
  const march2100 = new ManualClock(Date.UTC(2100, 2, 5));
  const setup = await setUpClosing(t, data, march2100);
  t.same([...setup.closed], ['2099-11', '2099-12', '2100-01', '2100-02']);
  t.match(await statementsOf(setup, NOVEMBER), [
    { lines: [{ bytes: 1_000_000 }], closed_at: '2100-03-05T00:00:00.000Z' },
  ]);
  t.match(await statementsOf(setup, month('2100-02')), [{ lines: [{ bytes: 0, active: true }], corrections: [] }]);
  await t.rejects(
    setup.usage.statements(month('2099-10')),
    { code: 'no-such-statement' },
    'no statement from before the first start',
  );
});

t.test(
  'the bytes of a lock that moves within a month are billed to both merchants, its SIM only to the new one',
  async (t) => {
    const setup = await setUpClosing(t);
    const blue = await setup.accounts.addMerchant('Blue');
    // Blue has two locks, of which Amber had the first until mid-month. A third lock was removed.
    const moved = await activeLock(setup, 1, 'Blue');
    const unmoved = await activeLock(setup, 2, 'Blue');
    // Both merchants had the removed lock; Amber had it last.
    const removedMac = testMac(3);
    await setup.store.usage.activate([{ mac: removedMac, atMs: Date.UTC(2099, 10, 2) }]);
    const usageOf = (merchant: Pick<Merchant, 'id'>, mac: Mac, bytesUp: number): UsageDelta =>
      delta(mac, { merchantId: merchant.id, bytesUp, bytesDown: 0 });
    const amber = { id: 1 };
    await setup.store.usage.add([usageOf(amber, moved, 100), usageOf(blue, removedMac, 7)], BEFORE_MONTH_END_MS - 2);
    await setup.store.usage.add(
      [usageOf(blue, moved, 20), usageOf(blue, unmoved, 3), usageOf(amber, removedMac, 8)],
      BEFORE_MONTH_END_MS - 1,
    );
    // This waits for the first merchant's statement; `close` makes those that are still missing.
    await endNovember(setup);
    await setup.usage.close(NOVEMBER);
    const [ofAmber, ofBlue] = await statementsOf(setup, NOVEMBER);
    const linesOf = (statement?: Statement) => statement?.lines.map(({ mac, bytes, active }) => [mac, bytes, active]);
    t.same(linesOf(ofAmber), [
      [formatMac(moved), 100, false],
      [formatMac(removedMac), 8, true],
    ]);
    t.same(linesOf(ofBlue), [
      [formatMac(moved), 20, true],
      [formatMac(unmoved), 3, true],
      [formatMac(removedMac), 7, false],
    ]);
  },
);

t.test('simulated locks are counted as such and not billed', async (t) => {
  const setup = await setUpClosing(t);
  const mac = testMac();
  const { secret } = await setup.accounts.addDevice({ mac, simulated: true });
  await setup.usage.setPlan(MERCHANT, EUR);
  const lock = await TestLock.connect(t, setup.broker.port, mac, secret);
  await lock.send(testBytes(1));
  t.match(await setup.usage.read({}), [{ mac, simulated: true, messagesUp: 1, connections: 1 }]);
  t.not(setup.usage.sims.activatedAtMs(mac), null, 'its SIM is active nevertheless');
  await endNovember(setup);
  t.match(await statementsOf(setup, NOVEMBER), [
    { lines: [], totals: { locks: 0, active_sims: 0, bytes: 0, total: '0.00' }, not_billed: { simulated_locks: 1 } },
  ]);
});

t.test('the plan of a month is the last one that started by then', async (t) => {
  const setup = await setUpClosing(t);
  await activeLock(setup, 1);
  await setup.usage.setPlan(MERCHANT, EUR, month('2099-06'));
  await setup.usage.setPlan(MERCHANT, { ...EUR, perSim: '5' }, DECEMBER);
  await setup.usage.setPlan(MERCHANT, { ...EUR, perSim: '1' }, NOVEMBER);
  await setup.usage.setPlan(MERCHANT, { ...EUR, perSim: '2' }, NOVEMBER);
  await t.rejects(setup.usage.setPlan('Nobody', EUR), { code: 'no-such-merchant' });
  t.same(
    (await setup.usage.plans(MERCHANT)).map(({ from, perSim }) => [from, perSim]),
    [
      ['2099-06', '0.80'],
      ['2099-11', '2'],
      ['2099-12', '5'],
    ],
  );
  await endNovember(setup);
  setup.clock.advance(monthEndMs(DECEMBER) - setup.clock.now());
  await setup.usage.close();
  t.match(await statementsOf(setup, NOVEMBER), [{ totals: { total: '2.00' } }]);
  t.match(await statementsOf(setup, DECEMBER), [{ totals: { total: '5.00' } }]);
});

/* ----------------------------------------------------------------------------------------------- the command line */

t.test('“lockgate usage” shows usage, closes months, prints statements and sets plans', async (t) => {
  const folder = tempFolder(t);
  const clock = new ManualClock(BEFORE_MONTH_END_MS);
  const gateway = await openGateway(t, folder, { usageClock: clock });
  await gateway.accounts.addMerchant(MERCHANT);
  const mac = testMac();
  const { secret } = await gateway.accounts.addDevice({ mac });
  const gatewayFlags = ['--gateway', `http://127.0.0.1:${gateway.operatorPort}`, '--token', gateway.operatorToken];
  const run = (...args: string[]): Promise<CommandOutput> => runLockgate([...args, ...gatewayFlags]);
  const json = async (...args: string[]): Promise<unknown> => JSON.parse((await run(...args)).stdout.join(''));
  const expectRefusal = async (exitCode: number, message: RegExp, ...args: string[]): Promise<void> => {
    const { exit, stderr } = await run(...args);
    const expected = { exit: { code: exitCode }, stderr: message };
    t.match({ exit, stderr: stderr.join('\n') }, expected, args.join(' '));
  };
  t.match(await json('device', 'show', mac, '--json'), { sim: { state: 'inactive', activated_at: null } });
  const lock = await TestLock.connect(t, gateway.mqttPort, mac, secret);
  await lock.send(testBytes(1));
  await lock.client.endAsync();
  t.match(await json('device', 'list', '--json'), {
    devices: [{ sim: { state: 'active', activated_at: '2099-11-30T23:59:50.000Z' } }],
  });
  t.match(
    (await run('device', 'show', mac)).stdout.join('\n'),
    /SIM active since 2099-11-30T\S*\nused in 2099-11: .* B, 1 message, 1 connection$/m,
  );
  t.match(await json('usage', 'show', mac, '--json'), {
    usage: [{ mac: formatMac(mac), month: '2099-11', merchant: MERCHANT, messages: 1, connections: 1 }],
  });
  const piped = (await run('usage', 'show', '--month', '2099-11')).stdout.join('\n');
  t.match(piped, /^A4:C1:38:00:00:01 +2099-11 +\d+ B +1 /m);
  t.notMatch(piped, /█/, 'bars are printed only on a terminal');
  const price = ['--per-mb', '0.12', '--per-sim', '0.80', '--currency', 'EUR'];
  t.match((await run('usage', 'plan', 'set', MERCHANT, ...price)).stdout, [/^Amber pays 0\.12 EUR .*2099-11/]);
  t.match(await json('usage', 'plan', 'show', '--json'), { plans: [{ merchant: MERCHANT, per_sim: '0.80' }] });
  await expectRefusal(3, /2099-11 has not ended/, 'usage', 'close', '--month', '2099-11');
  await expectRefusal(2, /"11" is no month/, 'usage', 'close', '--month', '11');
  await expectRefusal(2, /no currency/, 'usage', 'plan', 'set', MERCHANT, ...price.slice(0, 4), '--currency', 'eur');
  await expectRefusal(3, /no statement of 2099-11/, 'usage', 'statement', '--month', '2099-11');
  await expectRefusal(2, /expected table, csv, json/, 'usage', 'statement', '--format', 'pdf');
  await expectRefusal(3, /no merchant named "Nobody"/, 'usage', 'show', '--merchant', 'Nobody');
  clock.advance(monthEndMs(NOVEMBER) - BEFORE_MONTH_END_MS);
  t.match((await run('usage', 'close', '--month', '2099-11')).stdout, [/2099-11 {2}Amber: closed/]);
  const statement = ['usage', 'statement', '--month', '2099-11', '--merchant', MERCHANT];
  const first = (await run(...statement, '--format', 'json')).stdout;
  t.match(await json('usage', 'close', '--month', '2099-11', '--json'), { closed: [{ month: '2099-11', new: false }] });
  t.same((await run(...statement, '--json')).stdout, first, 'closing it again changes nothing');
  t.match(JSON.parse(first.join('')), { statements: [{ totals: { active_sims: 1, sim_amount: '0.80' } }] });
  const table = (await run(...statement)).stdout.join('\n');
  t.match(table, /Statement 2099-11 {2}Amber/);
  t.match(table, /To pay: 0\.80 EUR/);
  t.match((await run(...statement, '--format', 'csv')).stdout[1], /^line,Amber,2099-11,/);
});

t.test('“usage show” lists the newest month first, the largest usage first, and the total last', async (t) => {
  const gateway = await openGateway(t, tempFolder(t), { usageClock: new ManualClock(BEFORE_MONTH_END_MS) });
  await gateway.accounts.addMerchant(MERCHANT);
  const [lock1, lock2, lock3] = [testMac(1), testMac(2), testMac(3)];
  const october = month('2099-10');
  await gateway.store.usage.add(
    [
      delta(lock1, { month: october, bytesUp: 8000, bytesDown: 0 }),
      delta(lock1, { bytesUp: 1000, bytesDown: 0 }),
      delta(lock2, { bytesUp: 3000, bytesDown: 1000 }),
      delta(lock3, { bytesUp: 2000, bytesDown: 0, simulated: true }),
    ],
    BEFORE_MONTH_END_MS,
  );
  const environment = {
    LOCKGATE_GATEWAY: `http://127.0.0.1:${gateway.operatorPort}`,
    LOCKGATE_TOKEN: gateway.operatorToken,
  };
  const show = async (typed: string, columns?: number): Promise<CommandResult> =>
    await runCommand(['usage', 'show', ...typed.split(' ').filter(Boolean)], {
      environment,
      ...(columns !== undefined && { columns }),
    });
  const cells = ({ stdout }: CommandResult): string[][] =>
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/ {2,}/))
      // The line above the total has no cells.
      .filter(([first = '']) => !first.startsWith('─'));
  t.same(cells(await show('')), [
    ['MAC', 'MONTH', 'BYTES', 'MESSAGES', 'BILLED', 'CONNECTIONS', 'MERCHANT', 'UP', 'DOWN'],
    [formatMac(lock2), '2099-11', '4.00 kB', '4', 'yes', '2', MERCHANT, '3.00 kB', '1.00 kB'],
    [formatMac(lock3), '2099-11', '2.00 kB', '4', 'no: simulated', '2', MERCHANT, '2.00 kB', '0 B'],
    [formatMac(lock1), '2099-11', '1.00 kB', '4', 'yes', '2', MERCHANT, '1.00 kB', '0 B'],
    [formatMac(lock1), '2099-10', '8.00 kB', '4', 'yes', '2', MERCHANT, '8.00 kB', '0 B'],
    ['TOTAL', '15.00 kB', '16', '8', '14.00 kB', '1.00 kB'],
  ]);
  t.same(
    cells(await show('--by lock --limit 2')).map(([mac, months, bytes]) => [mac, months, bytes]),
    [
      ['MAC', 'MONTHS', 'BYTES'],
      [formatMac(lock1), '2', '9.00 kB'],
      [formatMac(lock2), '1', '4.00 kB'],
      ['TOTAL', '15.00 kB', '16'],
    ],
  );
  t.match(await show('--by lock --limit 2'), {
    stderr: '1 more row, included in TOTAL; a higher --limit shows more.\n',
  });
  t.match(JSON.parse((await show('--by month --json')).stdout), {
    usage: [
      { month: '2099-11', locks: 3, bytes: 7000, messages: 12 },
      { month: '2099-10', locks: 1, bytes: 8000, messages: 4 },
    ],
    total: { bytes: 15_000, bytes_up: 14_000, bytes_down: 1000, messages: 16, connections: 8 },
  });
  /** For each printed line the length of its bar, on a terminal this wide. */
  const barLengths = async (columns: number): Promise<number[]> =>
    (await show('--month 2099-11', columns)).stdout.split('\n').map((line) => (line.match(/█/g) ?? []).length);
  const [narrow, wide] = [await barLengths(90), await barLengths(200)];
  t.same(wide, [0, 40, 20, 10, 0, 0, 0], 'half the usage has half the bar; titles, the rule and totals have none');
  const [, longestNarrow = 0] = narrow;
  t.ok(longestNarrow >= 6 && longestNarrow < 40, 'the terminal’s width limits the bar, down to 6 characters');
  t.same(
    (await barLengths(50)).filter((length) => length > 0),
    [],
    'a narrow terminal has no bars',
  );
});
