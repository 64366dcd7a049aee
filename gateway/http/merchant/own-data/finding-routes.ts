/**
 * The routes for the findings about a merchant's locks, all of them or one (interfaces.md §2). The judge compares a
 * lock's pings with the firmware's rules; each broken rule is a finding.
 */
import { Type } from 'typebox';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import type { StoredFinding } from '../../../store/contract/log/log-entry.js';
import { type Call, type HttpAnswer, type MerchantRoute, problemResponse } from '../route.js';
import { longPageAnswer, PAGE_QUERY, pageAnswer, pageResponse, readPage } from './list.js';
import { findOwnLock, MacParam, NO_SUCH_LOCK, ownDataRoute } from './own-data-route.js';

const Finding = Type.Object(
  {
    id: Type.String({ description: 'For `GET /v1/why/{id}`.' }),
    mac_addr: Type.String({ description: 'The lock.' }),
    at: Type.String({ format: 'date-time' }),
    rule: Type.String(),
    severity: Type.Unsafe<string>({ type: 'string', enum: ['violation', 'warning'] }),
    message: Type.String({ description: 'A sentence for people.' }),
    boot: Type.Unsafe<number | null>({
      anyOf: [{ type: 'integer' }, { type: 'null' }],
      description: 'With `sequence`, the ping that it is about; null if it is about no single ping.',
    }),
    sequence: Type.Unsafe<number | null>({ anyOf: [{ type: 'integer' }, { type: 'null' }] }),
  },
  { title: 'Finding', description: 'Something that a lock should not have done, or should have done and did not.' },
);

const EXAMPLE = {
  id: 'finding:12',
  mac_addr: 'A4:C1:38:F0:E1:D2',
  at: '2026-11-20T06:00:00.000Z',
  rule: 'period-too-soon',
  severity: 'violation',
  message: 'a period ping 3 h after the one before: expected one a day',
  boot: 41,
  sequence: 12,
};

/** How often the store is read for one page. Each read returns about as many findings as the page may have. */
const MAX_READS = 5;

/** The lists of findings. */
export const FINDING_ROUTES: readonly MerchantRoute[] = [
  ownDataRoute({
    method: 'GET',
    path: '/v1/findings',
    operationId: 'listAllFindings',
    tag: 'locks',
    keyScope: 'locks:read',
    summary: 'Lists what the judge found at all locks, newest first.',
    description:
      'Findings of locks that are not yours any more are left out. If there are many of these, a page has fewer ' +
      'findings than `limit`, or none, and a `next_cursor` to go on from.',
    query: Type.Object(PAGE_QUERY),
    responses: {
      200: pageResponse('The findings.', Finding, EXAMPLE),
      400: problemResponse('`limit` or `cursor` is not valid.'),
    },
    handle: listAllFindings,
  }),
  ownDataRoute({
    method: 'GET',
    path: '/v1/locks/{mac}/findings',
    operationId: 'listFindings',
    tag: 'locks',
    keyScope: 'locks:read',
    summary: 'Lists what the judge found at a lock, newest first.',
    params: Type.Object({ mac: MacParam }),
    query: Type.Object(PAGE_QUERY),
    responses: {
      200: pageResponse('The findings.', Finding, EXAMPLE),
      400: problemResponse('`limit` or `cursor` is not valid.'),
      404: NO_SUCH_LOCK,
    },
    handle: async (call) => {
      const { device } = await findOwnLock(call);
      const listKey = `findings ${device.id}`;
      const { limit, after } = readPage(call, listKey, ['number']);
      const found = await call.parts.store.readFindings(device.id, limit + 1, after?.[0] as number | undefined);
      const shown = found.slice(0, limit);
      const last = shown.at(-1);
      const next = found.length > limit && last !== undefined ? [last.id] : null;
      return pageAnswer(call, listKey, { data: shown.map(findingJson), next });
    },
  }),
];

async function listAllFindings(call: Call): Promise<HttpAnswer> {
  const { parts, merchantId, signal } = call;
  // Findings of all merchants are numbered together, so the list's name includes the merchant.
  const listKey = `findings of ${merchantId}`;
  const { limit, after } = readPage(call, listKey, ['number']);
  const items: StoredFinding[] = [];
  let beforeId = after?.[0] as number | undefined;
  let hasMore = true;
  for (let reads = 0; hasMore && items.length < limit && reads < MAX_READS; reads += 1) {
    await parts.ownData.readTurns.next(signal);
    const wanted = limit - items.length;
    const found = await parts.store.why.readFindingsOfMerchant(merchantId, wanted + 1, beforeId);
    parts.budgets.chargeRows(merchantId, found.length);
    hasMore = found.length > wanted;
    const read = found.slice(0, wanted);
    items.push(...read.filter(({ isLockTheirs }) => isLockTheirs));
    beforeId = read.at(-1)?.id;
  }
  const next = hasMore && beforeId !== undefined ? [beforeId] : null;
  return await longPageAnswer(call, listKey, { items, toJson: findingJson, next });
}

function findingJson({ id, finding: { atMs, mac, rule, severity, message, about } }: StoredFinding) {
  const { boot, sequence } = about ?? { boot: null, sequence: null };
  return { id: `finding:${id}`, mac_addr: mac, at: formatDate(atMs), rule, severity, message, boot, sequence };
}
