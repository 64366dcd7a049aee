/**
 * A statement is a merchant's bill of a month for the cellular data of its locks (interfaces.md §5). This file checks
 * the pure functions behind it, without a store: months, exact amounts, price plans, the lines and totals of a
 * statement, its CSV, and how `lockgate usage` prints sizes. The expected amounts are calculated by hand from the
 * prices.
 */
import fc from 'fast-check';
import t from 'tap';
import { bar, byteText } from '../../../cli/commands/usage/text.js';
import {
  type Month,
  monthEndMs,
  monthOf,
  monthStartMs,
  monthsBetween,
  nextMonth,
  parseMonth,
  previousMonth,
} from '../../../gateway/usage/month.js';
import { checkPlan, formatAmount, priceOfBytes, priceOfSims, roundAmount } from '../../../gateway/usage/price.js';
import {
  makeStatement,
  type Statement,
  type StatementBasis,
  type UnbilledUsage,
} from '../../../gateway/usage/statement.js';
import { statementsCsv } from '../../../gateway/usage/usage-csv.js';
import { formatMac, type Mac } from '../../../proto/wire/mac.js';
import { testMac } from '../../helpers/gateway/test-gateway.js';

t.setTimeout(120_000);

const NOVEMBER = '2099-11' as Month;
const EUR = { perMb: '0.12', perSim: '0.80', currency: 'EUR' };

/** A month such as 2026-11. @throws Error if the text is no month */
function month(text: string): Month {
  const parsed = parseMonth(text);
  if (!parsed.ok) throw new Error(parsed.error.message);
  return parsed.value;
}

t.test('months are in UTC, and end where the next one starts', async (t) => {
  t.equal(monthOf(Date.UTC(2026, 10, 30, 23, 59, 59, 999)), '2026-11');
  t.equal(monthOf(Date.UTC(2026, 11, 1)), '2026-12');
  t.equal(monthEndMs(month('2028-02')) - monthStartMs(month('2028-02')), 29 * 86_400_000, 'a leap year');
  t.same([nextMonth(month('2026-12')), previousMonth(month('2027-01'))], ['2027-01', '2026-12']);
  t.same(monthsBetween(month('2026-11'), month('2027-02')), ['2026-11', '2026-12', '2027-01', '2027-02']);
  t.same(monthsBetween(month('2026-12'), month('2026-11')), []);
  for (const text of ['2026-13', '2026-00', '2026-1', '26-11', '2026-11-01', '', ' 2026-11', '1969-12', '9999-12'])
    t.match(parseMonth(text), { ok: false, error: { code: 'input-month', message: /expected one such as 2026-11/ } });
  const times = fc.integer({ min: 0, max: Date.UTC(9998, 0, 1) });
  fc.assert(
    fc.property(times, (timeMs) => {
      const itsMonth = monthOf(timeMs);
      const isInside = monthStartMs(itsMonth) <= timeMs && timeMs < monthEndMs(itsMonth);
      return isInside && previousMonth(nextMonth(itsMonth)) === itsMonth;
    }),
  );
});

t.test('amounts are exact, and a total is rounded once, half up', async (t) => {
  t.equal(formatAmount(priceOfBytes(EUR, 1_234_567), 'EUR'), '0.14814804', '1.234567 MB at 0.12');
  t.equal(formatAmount(priceOfBytes(EUR, 1_000_000), 'EUR'), '0.12', 'an MB is 1,000,000 bytes');
  t.equal(formatAmount(priceOfSims(EUR, 3), 'EUR'), '2.40');
  t.equal(
    formatAmount(priceOfBytes({ ...EUR, perMb: '0.000001' }, 1), 'EUR'),
    '0.000000000001',
    'the smallest price of one byte',
  );
  t.equal(
    formatAmount(priceOfBytes({ ...EUR, perMb: '999999999.999999' }, Number.MAX_SAFE_INTEGER), 'EUR'),
    '9007199254740981992.800745259009',
    'the largest price of 9007199254.740991 MB',
  );
  const rounded = (perMb: string, bytes: number, currency = 'EUR'): string =>
    formatAmount(roundAmount(priceOfBytes({ ...EUR, perMb }, bytes), currency), currency);
  t.equal(rounded('0.01', 500_000), '0.01', 'half a cent is rounded up');
  t.equal(rounded('0.01', 499_999), '0.00', 'less than half a cent is rounded down');
  t.equal(rounded('0.03', 500_000), '0.02', 'one and a half cents are rounded up: not half to even');
  t.equal(rounded('0.05', 500_000), '0.03', 'two and a half cents are rounded up too');
  t.equal(rounded('1.005', 1_000_000), '1.01', 'where a double has 1.00499999999999989');
  t.same([rounded('0.5', 1_000_000, 'JPY'), rounded('0.49', 1_000_000, 'JPY')], ['1', '0'], 'a yen has no cents');
  t.equal(rounded('0.0005', 1_000_000, 'BHD'), '0.001', 'a dinar has 1,000 fils');
});

t.test('an invalid plan is refused, with what was expected', async (t) => {
  t.same(checkPlan(EUR), EUR);
  // A price has up to nine digits before the point and up to six behind it.
  for (const perMb of ['', '-1', '1.1234567', '1e3', '.5', '1.', '0x1', '1,2', ' 1', 'NaN', '1234567890'])
    t.throws(
      () => checkPlan({ ...EUR, perMb }),
      { code: 'input-price', message: /such as 0\.12/ },
      JSON.stringify(perMb),
    );
  t.throws(() => checkPlan({ ...EUR, perSim: 'x' }), { code: 'input-price' });
  for (const currency of ['eur', 'EURO', 'EU', '', 'ZZZ'])
    t.throws(() => checkPlan({ ...EUR, currency }), { code: 'input-currency', message: /ISO 4217/ }, currency);
});

/** Usage of a lock in November that is on no statement yet: 4 messages and exactly 1 MB. */
function unbilled(mac: Mac, members: Partial<UnbilledUsage> = {}): UnbilledUsage {
  const counts = { messagesUp: 3, messagesDown: 1, connections: 2, bytesUp: 900_000, bytesDown: 100_000 };
  return { month: NOVEMBER, mac, simulated: false, ...counts, ...members };
}

/**
 * What a statement of November is made from. `late` is usage of earlier months that were closed already; `simsOf` are
 * the SIMs that the merchant pays for.
 */
const BASIS: StatementBasis = {
  merchant: 'Amber',
  month: NOVEMBER,
  closedAtMs: Date.UTC(2099, 11, 1),
  countingSinceMs: Date.UTC(2099, 0, 1),
  plan: EUR,
  usage: [],
  late: [],
  activations: new Map(),
  simsOf: [],
};

t.test('a statement has the lines, corrections and totals that were calculated by hand', async (t) => {
  const [first, second, third, fourth] = [1, 2, 3, 4].map((number) => testMac(number)) as [Mac, Mac, Mac, Mac];
  const statement = makeStatement({
    ...BASIS,
    usage: [
      unbilled(second, { bytesUp: 250_000, bytesDown: 0 }),
      unbilled(first),
      unbilled(fourth, { simulated: true }),
      unbilled(first, { simulated: true, bytesUp: 7 }),
    ],
    late: [unbilled(third, { month: month('2099-10'), bytesUp: 500_000, bytesDown: 0, connections: 0 })],
    activations: new Map([
      [first, Date.UTC(2099, 10, 12)],
      [second, Date.UTC(2098, 0, 1)],
      [third, Date.UTC(2099, 11, 1)],
    ]),
    simsOf: [first, second, third],
  });
  t.match(statement.lines, [
    {
      mac: formatMac(first),
      ...{ messages: 4, messages_up: 3, messages_down: 1, connections: 2, bytes: 1_000_000, bytes_up: 900_000 },
      ...{ activated_at: '2099-11-12T00:00:00.000Z', activated_in_month: true, active: true },
      ...{ data_amount: '0.12', sim_amount: '0.80', amount: '0.92' },
    },
    {
      mac: formatMac(second),
      ...{ bytes: 250_000, activated_in_month: false, active: true },
      ...{ data_amount: '0.03', sim_amount: '0.80', amount: '0.83' },
    },
  ]);
  t.equal(statement.lines.length, 2, 'a SIM that was activated after the month has no line');
  t.match(statement.corrections, [{ month: '2099-10', mac: formatMac(third), bytes: 500_000, amount: '0.06' }]);
  t.match(statement.totals, {
    ...{ locks: 2, active_sims: 2, bytes: 1_750_000, bytes_up: 1_650_000, bytes_down: 100_000, messages: 12 },
    ...{ data_amount: '0.15', sim_amount: '1.60', corrections_amount: '0.06', amount: '1.81', total: '1.81' },
  });
  t.match(statement.not_billed, { simulated_locks: 2, bytes: 1_100_007 });
  t.match(statement.notes.join(' '), /TCP\/IP headers are not included/);
  t.match(statement.notes.join(' '), /Phones and locks marked simulated are not billed/);
  t.match(statement.plan, { per_mb: '0.12', bytes_per_mb: 1_000_000, rounding: /half up/ });
});

t.test('without a plan nothing is charged', async (t) => {
  const { plan, lines, totals } = makeStatement({ ...BASIS, plan: null, usage: [unbilled(testMac())] });
  t.equal(plan, null);
  t.match(lines, [{ bytes: 1_000_000, amount: null }]);
  t.match(totals, { bytes: 1_000_000, amount: null, total: null });
});

/** An amount such as `0.12` in units of 10^-12; 0 for null. */
function toPicoUnits(amount: string | null): bigint {
  const [whole = '', fraction = ''] = (amount ?? '').split('.');
  return BigInt(whole + fraction.padEnd(12, '0'));
}

const COUNTS = ['messages', 'messages_up', 'messages_down', 'connections', 'bytes', 'bytes_up', 'bytes_down'] as const;

/** @throws Error if a total is not the sum of lines and corrections, or not rounded half up to `minorDecimals` */
function checkSums({ lines, corrections, totals, plan }: Statement, minorDecimals: number): void {
  const all = [...lines, ...corrections];
  for (const count of COUNTS) {
    const sum = all.map((each) => each[count]).reduce((a, b) => a + b, 0);
    if (sum !== totals[count]) throw new Error(`${count}: ${sum}, not ${totals[count]}`);
  }
  if (plan === null) return;
  const sum = all.map(({ amount }) => toPicoUnits(amount)).reduce((a, b) => a + b, 0n);
  if (sum !== toPicoUnits(totals.amount)) throw new Error(`${sum}, not ${totals.amount}`);
  const unit = 10n ** BigInt(12 - minorDecimals);
  const rounding = toPicoUnits(totals.total) - sum;
  // Half up: rounded up by at most half a unit, or down by less than that.
  if (2n * rounding > unit || 2n * rounding <= -unit || toPicoUnits(totals.total) % unit !== 0n)
    throw new Error(`${totals.amount} was rounded to ${totals.total}`);
}

t.test('the lines and corrections of random statements add up to their totals', async (t) => {
  const count = fc.nat({ max: 1e9 });
  const usageRows = fc.array(
    fc.record({
      month: fc.constantFrom(month('2099-09'), month('2099-10')),
      mac: fc.nat({ max: 5 }).map(testMac),
      simulated: fc.boolean(),
      messagesUp: count,
      messagesDown: count,
      connections: count,
      bytesUp: fc.nat({ max: 1e13 }),
      bytesDown: fc.nat({ max: 1e13 }),
    }),
    { maxLength: 8 },
  );
  const price = fc.tuple(fc.nat({ max: 999_999_999 }), fc.nat({ max: 999_999 })).map(([whole, micros]) => {
    return `${whole}.${String(micros).padStart(6, '0')}`;
  });
  // With the decimals of the smallest coin.
  const currency = fc.constantFrom(['EUR', 2] as const, ['JPY', 0] as const, ['BHD', 3] as const);
  fc.assert(
    fc.property(usageRows, usageRows, price, price, currency, (usage, late, perMb, perSim, [code, minorDecimals]) => {
      const simsOf = [0, 1, 2, 7].map(testMac);
      const activations = new Map(simsOf.map((mac, index) => [mac, Date.UTC(2099, 8 + index)]));
      const plan = checkPlan({ perMb, perSim, currency: code });
      const statement = makeStatement({ ...BASIS, usage, late, plan, simsOf, activations });
      checkSums(statement, minorDecimals);
      const billed = usage.filter(({ simulated }) => !simulated);
      if (statement.lines.length < new Set(billed.map(({ mac }) => mac)).size) throw new Error('a lock is missing');
    }),
  );
  t.pass('every random statement adds up');
});

t.test('the CSV has a row for each line, total and note, and no cell that spreadsheets execute', async (t) => {
  const formula = '=1+1';
  const statement = makeStatement({ ...BASIS, merchant: formula, usage: [unbilled(testMac())] });
  const [head, line, total, ...notes] = statementsCsv([statement]).trimEnd().split('\n');
  t.match(head, /^kind,merchant,month,of_month,mac,messages,connections,bytes_up,bytes_down,bytes,/);
  t.match(
    line,
    /^line,'=1\+1,2099-11,2099-11,A4:C1:38:00:00:01,4,2,900000,100000,1000000,,no,no,0\.12,0\.00,0\.12,,EUR,/,
  );
  t.match(total, /^total,.*,4,2,900000,100000,1000000,,,0,0\.12,0\.00,0\.12,0\.12,EUR,0\.12,0\.80,$/);
  t.match(notes.join('\n'), /^note,.*TCP\/IP headers are not included/);
});

t.test('sizes are printed with a unit, and bars in eighths of a character', async (t) => {
  t.same([0, 999, 1000, 123_456, 1_000_000].map(byteText), ['0 B', '999 B', '1.00 kB', '123.5 kB', '1.00 MB']);
  t.same([99_994, 99_996, 999_949, 999_950].map(byteText), ['99.99 kB', '100.0 kB', '999.9 kB', '1.00 MB'], 'rounded');
  // The arguments are a size, the largest one, and the width of the largest one's bar: 16 characters by default.
  t.same([bar(0, 0), bar(5, 5), bar(1, 32), bar(0, 9)], ['', '█'.repeat(16), '▌', '']);
  t.same([bar(5, 5, 3), bar(1, 2, 3)], ['███', '█▌']);
});
