/** The routes for a merchant's usage and its monthly statements (interfaces.md §2 and §5). */
import { type TSchema, Type } from 'typebox';
import { formatMac, type Mac } from '../../../../proto/wire/mac.js';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import type { UsageRow } from '../../../store/contract/usage-store.js';
import { countsJson } from '../../../usage/counts.js';
import { type Month, parseMonth } from '../../../usage/month.js';
import type { Statement } from '../../../usage/statement.js';
import { csvText, statementsCsv } from '../../../usage/usage-csv.js';
import { Refusal } from '../refusal.js';
import { type Call, type HttpAnswer, JSON_TYPE, type MerchantRoute, problemResponse } from '../route.js';
import type { Position } from './cursor.js';
import { PAGE_QUERY, pageAnswer, pageResponse, readPage } from './list.js';
import { ownDataRoute } from './own-data-route.js';

const CSV_TYPE = 'text/csv';
const Format = Type.Optional(Type.Unsafe<'json' | 'csv'>({ type: 'string', enum: ['json', 'csv'], default: 'json' }));
const MonthText = Type.String({ description: 'Such as 2026-11 (UTC).' });
const Count = Type.Integer({ minimum: 0 });

/** The columns of a page of usage as CSV: the members of {@link Usage}. */
const USAGE_COLUMNS = [
  ...['month', 'mac_addr', 'simulated', 'sim_activated_at', 'messages', 'messages_up', 'messages_down'],
  ...['connections', 'bytes', 'bytes_up', 'bytes_down'],
];

const Usage = Type.Object(
  {
    month: Type.String(),
    mac_addr: Type.String(),
    simulated: Type.Boolean({ description: 'A simulated lock is not billed.' }),
    sim_activated_at: Type.Unsafe<string | null>({
      anyOf: [{ type: 'string', format: 'date-time' }, { type: 'null' }],
      description: 'When the lock’s SIM was activated; null while it is inactive.',
    }),
    messages: Count,
    messages_up: Count,
    messages_down: Count,
    connections: Count,
    bytes: Count,
    bytes_up: Type.Integer({
      minimum: 0,
      description: 'From the lock, including TLS and MQTT, without TCP/IP headers.',
    }),
    bytes_down: Count,
  },
  { title: 'Usage', description: 'The traffic of one lock in one month.' },
);

const USAGE_EXAMPLE = {
  month: '2026-11',
  mac_addr: 'A4:C1:38:F0:E1:D2',
  simulated: false,
  sim_activated_at: '2026-11-20T06:29:56.000Z',
  messages: 9,
  messages_up: 4,
  messages_down: 5,
  connections: 1,
  bytes: 412,
  bytes_up: 330,
  bytes_down: 82,
};

const Closing = Type.Object(
  { month: Type.String(), closed_at: Type.String({ format: 'date-time' }) },
  { title: 'StatementClosing', description: 'A month with a statement.' },
);

/** A statement (a merchant's bill of a month) is stored as JSON and sent unchanged, so this is only an outline. */
const StatementSchema: TSchema = Type.Object(
  {
    statement: Type.String({ description: 'The name of the format: `lockgate`.' }),
    version: Type.Integer({ description: 'The version of the format.' }),
    merchant: Type.String(),
    month: Type.String(),
    closed_at: Type.String(),
    lines: Type.Array(Type.Unsafe({ type: 'object', additionalProperties: true })),
    corrections: Type.Array(Type.Unsafe({ type: 'object', additionalProperties: true })),
    totals: Type.Unsafe({ type: 'object', additionalProperties: true }),
  },
  { title: 'Statement', additionalProperties: true, description: 'The bill of a month; it never changes.' },
);

const STATEMENT_EXAMPLE = {
  statement: 'lockgate',
  version: 1,
  merchant: 'Amber Bikes',
  month: '2026-10',
  closed_at: '2026-11-01T00:00:05.000Z',
  lines: [{ mac: 'A4:C1:38:F0:E1:D2', bytes: 412, active: true, amount: '0.80004944' }],
  corrections: [],
  totals: { locks: 1, active_sims: 1, total: '0.80' },
};

/** Usage and statements. */
export const USAGE_ROUTES: readonly MerchantRoute[] = [
  ownDataRoute({
    method: 'GET',
    path: '/v1/usage',
    operationId: 'listUsage',
    tag: 'billing',
    keyScope: 'billing:read',
    summary: 'Lists the traffic of own locks in a month, by default the current one.',
    query: Type.Object({ month: Type.Optional(MonthText), format: Format, ...PAGE_QUERY }),
    responses: {
      200: {
        ...pageResponse('The usage, by lock.', Usage, USAGE_EXAMPLE),
        otherTypes: { [CSV_TYPE]: `${USAGE_COLUMNS.join(',')}\n` },
      },
      400: problemResponse('`month`, `format`, `limit` or `cursor` is not valid.'),
    },
    handle: listUsage,
  }),
  ownDataRoute({
    method: 'GET',
    path: '/v1/statements',
    operationId: 'listStatements',
    tag: 'billing',
    keyScope: 'billing:read',
    summary: 'Lists the months that have a statement, newest first.',
    query: Type.Object(PAGE_QUERY),
    responses: {
      200: pageResponse('The months.', Closing, { month: '2026-10', closed_at: '2026-11-01T00:00:05.000Z' }),
      400: problemResponse('`limit` or `cursor` is not valid.'),
    },
    handle: listStatements,
  }),
  ownDataRoute({
    method: 'GET',
    path: '/v1/statements/{month}',
    operationId: 'getStatement',
    tag: 'billing',
    keyScope: 'billing:read',
    summary: 'Returns the statement of a month: bytes, SIMs, amounts.',
    params: Type.Object({ month: MonthText }),
    query: Type.Object({ format: Format }),
    responses: {
      200: {
        description: 'The statement, as it was closed.',
        schema: StatementSchema,
        example: STATEMENT_EXAMPLE,
        otherTypes: { [CSV_TYPE]: 'kind,merchant,month\nline,Amber Bikes,2026-10\n' },
      },
      400: problemResponse('`format` is not valid.'),
      404: problemResponse('The month has no statement.'),
    },
    handle: showStatement,
  }),
];

async function listUsage(call: Call): Promise<HttpAnswer> {
  const { parts, merchantId, query } = call;
  const { usage } = parts.ownData;
  const { month: monthText, format } = query as { month?: string; format?: 'json' | 'csv' };
  const month = monthText === undefined ? usage.meter.month : readMonth(monthText);
  const listKey = `usage ${month}`;
  const { limit, after } = readPage(call, listKey, ['string', 'number']);
  const rows = await usage.readPage({ merchantId, month, after: after && rowAt(after), limit: limit + 1 });
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const next = rows.length > limit && last !== undefined ? [last.mac, last.simulated ? 1 : 0] : null;
  const data = shown.map((row) => usageJson(row, usage.sims.activatedAtMs(row.mac)));
  const answer = pageAnswer(call, listKey, { data, next });
  if (format !== 'csv') return answer;
  const { status, headers } = answer;
  return { status, ...(headers && { headers }), text: { type: CSV_TYPE, content: csvText(data, USAGE_COLUMNS) } };
}

function rowAt([mac, simulated]: Position): { readonly mac: Mac; readonly simulated: boolean } {
  return { mac: mac as Mac, simulated: simulated === 1 };
}

function usageJson({ month, mac, simulated, ...counts }: UsageRow, activatedAtMs: number | null) {
  const sim_activated_at = activatedAtMs === null ? null : formatDate(activatedAtMs);
  return { month, mac_addr: formatMac(mac), simulated, sim_activated_at, ...countsJson(counts) };
}

async function listStatements(call: Call): Promise<HttpAnswer> {
  const { parts, merchantId } = call;
  const { limit, after } = readPage(call, 'statements', ['string']);
  const before = after?.[0] as Month | undefined;
  const closings = await parts.store.usage.readClosings(merchantId, limit + 1, before);
  const shown = closings.slice(0, limit);
  const last = shown.at(-1);
  const next = closings.length > limit && last !== undefined ? [last.month] : null;
  const data = shown.map(({ month, closedAtMs }) => ({ month, closed_at: formatDate(closedAtMs) }));
  return pageAnswer(call, 'statements', { data, next });
}

async function showStatement({ parts, merchantId, params, query }: Call): Promise<HttpAnswer> {
  const month = parseMonth(params.month ?? '');
  const body = month.ok ? await parts.store.usage.findStatement(merchantId, month.value) : null;
  if (body === null)
    throw new Refusal({ status: 404, code: 'no-such-statement', detail: 'there is no statement of this month' });
  const { format } = query as { format?: 'json' | 'csv' };
  if (format !== 'csv') return { status: 200, text: { type: JSON_TYPE, content: body } };
  return { status: 200, text: { type: CSV_TYPE, content: statementsCsv([JSON.parse(body) as Statement]) } };
}

/** @throws Refusal 400 `input-month` */
function readMonth(text: string): Month {
  const month = parseMonth(text);
  if (month.ok) return month.value;
  const { code, message: detail } = month.error;
  throw new Refusal({ status: 400, code, detail, faults: [{ pointer: '/month', detail }] });
}
