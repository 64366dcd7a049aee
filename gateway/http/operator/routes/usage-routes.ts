/**
 * The operators' routes for usage (interfaces.md §5): counts of each lock, statements (a merchant's bill for a month),
 * closing a month, price plans.
 */
import { type Static, Type } from 'typebox';
import { LockgateError } from '../../../../proto/errors.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import { noSuchDevice } from '../../../store/contract/errors.js';
import type { DatedPlan, UsageRow } from '../../../store/contract/usage-store.js';
import { countsJson } from '../../../usage/counts.js';
import { type Month, parseMonth } from '../../../usage/month.js';
import { BYTES_PER_MB } from '../../../usage/price.js';
import { countOf, pick } from '../json/audit-terms.js';
import { textOf } from '../query.js';
import { type OperatorParts, type Query, type Route, readMac, withBody } from '../routes.js';
import { Count, counts, Described, Exact, MacText, Month as MonthText, Name, OneMac, Time } from '../schemas.js';

const Close = Exact({ month: Type.Optional(MonthText) });
/** Prices are decimal numbers in texts, such as `0.05`, so that nothing is rounded. */
const NewPlan = Exact({
  merchant: Name,
  per_mb: Type.String(),
  per_sim: Type.String(),
  currency: Type.String(),
  from: Type.Optional(MonthText),
});

/** A lock's usage in one month. */
const Row = Type.Object({
  month: MonthText,
  mac: MacText,
  merchant: Type.String(),
  simulated: Type.Boolean(),
  ...counts,
});
const Plan = Type.Object({
  merchant: Type.String(),
  from: MonthText,
  per_mb: Type.String(),
  bytes_per_mb: Count,
  per_sim: Type.String(),
  currency: Type.String(),
  set_at: Time,
});
const Closed = Type.Object({ merchant: Type.String(), month: MonthText, new: Type.Boolean() });
/** The member that limits a query to one merchant. */
const Merchant = { merchant: Type.Optional(Type.String()) };

/** Every route for usage. */
export const USAGE_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/usage',
    summary: 'Lists usage by lock and month, optionally of one lock, one merchant or one month.',
    operation: 'usage.show',
    success: 200,
    query: Exact({ ...Merchant, month: Type.Optional(MonthText), mac: OneMac }),
    answer: Type.Object({ usage: Type.Array(Row) }),
    handle: showUsage,
  },
  {
    method: 'GET',
    path: '/usage/statements',
    summary: 'Lists the closed statements of a month, by default the last that ended.',
    operation: 'usage.show-statements',
    success: 200,
    query: Exact({ ...Merchant, month: Type.Optional(MonthText) }),
    answer: Type.Object({ statements: Type.Array(Described('A statement, as it was closed.')) }),
    handle: async ({ store, usage }, { query }) => {
      const merchant = textOf(query, 'merchant');
      if (merchant !== undefined) await checkMerchant(store, merchant);
      const statements = await usage.statements(readMonth(textOf(query, 'month')), merchant);
      return { statements: statements.map(({ body }) => JSON.parse(body) as unknown) };
    },
  },
  {
    method: 'POST',
    path: '/usage/close',
    summary: 'Closes an ended month, and those before it, for every merchant; closed ones are not changed.',
    operation: 'usage.close',
    success: 200,
    answer: Type.Object({ closed: Type.Array(Closed) }),
    audit: {
      object: ({ body }) => (body as Static<typeof Close>).month ?? '',
      after: (_request, answer) => ({ statements: countOf(answer, 'closed') }),
    },
    ...withBody(Close, async ({ usage }, body) => {
      const closed = await usage.close(readMonth(body.month));
      return { closed: closed.map(({ merchant, month, isNew }) => ({ merchant, month, new: isNew })) };
    }),
  },
  {
    method: 'POST',
    path: '/usage/plans',
    summary: 'Sets a merchant’s price plan, from a month on.',
    operation: 'usage.set-plan',
    success: 201,
    answer: Plan,
    audit: {
      object: ({ body }) => (body as Static<typeof NewPlan>).merchant,
      before: async ({ usage }, { body }) => planBefore(await usage.plans((body as Static<typeof NewPlan>).merchant)),
      after: ({ body }, answer) => pick(answer ?? body, 'from', 'per_mb', 'per_sim', 'currency'),
    },
    ...withBody(NewPlan, async ({ usage }, { merchant, per_mb, per_sim, currency, from }) => {
      return planJson(await usage.setPlan(merchant, { perMb: per_mb, perSim: per_sim, currency }, readMonth(from)));
    }),
  },
  {
    method: 'GET',
    path: '/usage/plans',
    summary: 'Lists the price plans and the month from which each applies.',
    operation: 'usage.list-plans',
    success: 200,
    query: Exact(Merchant),
    answer: Type.Object({ plans: Type.Array(Plan) }),
    handle: async ({ store, usage }, { query }) => {
      const merchant = textOf(query, 'merchant');
      if (merchant !== undefined) await checkMerchant(store, merchant);
      return { plans: (await usage.plans(merchant)).map(planJson) };
    },
  },
];

async function showUsage({ store, usage }: OperatorParts, { query }: { readonly query: Query }): Promise<unknown> {
  const macText = textOf(query, 'mac');
  const mac = macText === undefined ? undefined : readMac(macText);
  const merchant = textOf(query, 'merchant');
  if (merchant !== undefined) await checkMerchant(store, merchant);
  const rows = await usage.read({ month: readMonth(textOf(query, 'month')), mac, merchant });
  // A lock that was removed still has its rows.
  if (rows.length === 0 && mac !== undefined && (await store.findDevice(mac)) === null) throw noSuchDevice(mac);
  return { usage: rows.map(rowJson) };
}

function rowJson({ month, mac, merchantName, simulated, ...counts }: UsageRow) {
  return {
    month,
    mac: formatMac(mac),
    merchant: merchantName,
    simulated,
    ...countsJson(counts),
  };
}

/** A merchant's latest plan, for the audit log; null without one. */
function planBefore(plans: readonly DatedPlan[]) {
  const [latest] = [...plans].sort((a, b) => (a.from < b.from ? 1 : -1));
  return latest === undefined ? null : pick(planJson(latest), 'from', 'per_mb', 'per_sim', 'currency');
}

function planJson({ merchantName, from, perMb, perSim, currency, setAtMs }: DatedPlan) {
  return {
    merchant: merchantName,
    from,
    per_mb: perMb,
    bytes_per_mb: BYTES_PER_MB,
    per_sim: perSim,
    currency,
    set_at: formatDate(setAtMs),
  };
}

/** A month in a request. @throws LockgateError `input-month` */
function readMonth(text: string | undefined): Month | undefined {
  if (text === undefined) return undefined;
  const month = parseMonth(text);
  if (!month.ok) throw new LockgateError(month.error.code, month.error.message);
  return month.value;
}

/** @throws LockgateError `no-such-merchant` */
async function checkMerchant(store: OperatorParts['store'], merchant: string): Promise<void> {
  if ((await store.listMerchants()).some(({ name }) => name === merchant)) return;
  throw new LockgateError('no-such-merchant', `there is no merchant named ${JSON.stringify(merchant)}`);
}
