/**
 * The route for the findings about a merchant's lock (interfaces.md §2). The judge compares a lock's pings with the
 * firmware's rules; each broken rule is a finding.
 */
import { Type } from 'typebox';
import { toDate } from '../../../../proto/wire/ping-json.js';
import type { StoredFinding } from '../../../store/contract/log/log-entry.js';
import { type MerchantRoute, problemResponse } from '../route.js';
import { PAGE_QUERY, pageAnswer, pageResponse, readPage } from './list.js';
import { findOwnLock, MacParam, NO_SUCH_LOCK, ownDataRoute } from './own-data-route.js';

const Finding = Type.Object(
  {
    id: Type.String({ description: 'For `GET /v1/why/{id}`.' }),
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
  at: '2026-11-20T06:00:00.000Z',
  rule: 'period-too-soon',
  severity: 'violation',
  message: 'a period ping 3 h after the one before: expected one a day',
  boot: 41,
  sequence: 12,
};

/** The list of findings. */
export const FINDING_ROUTES: readonly MerchantRoute[] = [
  ownDataRoute({
    method: 'GET',
    path: '/v1/locks/{mac}/findings',
    operationId: 'listFindings',
    tag: 'locks',
    scope: 'locks:read',
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

function findingJson({ id, finding: { atMs, rule, severity, message, about } }: StoredFinding) {
  const { boot, sequence } = about ?? { boot: null, sequence: null };
  return { id: `finding:${id}`, at: toDate(atMs), rule, severity, message, boot, sequence };
}
