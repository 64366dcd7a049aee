/** The operators' routes for closing merchants and opening them again (docs/operator.md, "Merchants"). */
import { Type } from 'typebox';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import type { ClosingOutcome } from '../../../accounts/merchants.js';
import { type AuditTerms, pick } from '../json/audit-terms.js';
import type { OperatorParts, Route, RouteRequest } from '../routes.js';
import { MaybeTime } from '../schemas.js';

const Outcome = Type.Object({
  id: Type.Integer(),
  name: Type.String(),
  closed_at: MaybeTime,
  locks: Type.Integer({ description: 'Its locks in service.' }),
  webhooks: Type.Integer({ description: 'Its webhook URLs that were disabled or enabled.' }),
});

const audit: AuditTerms<OperatorParts, RouteRequest> = {
  object: ({ params }) => params.name ?? '',
  after: (_request, answer) => pick(answer, 'closed_at', 'locks', 'webhooks'),
  merchant: ({ params }) => params.name,
};

/** The routes for closing and reopening. */
export const MERCHANT_CLOSING_ROUTES: readonly Route[] = [
  {
    method: 'POST',
    path: '/merchants/:name/close',
    operation: 'merchant.close',
    summary: 'Closes a merchant: its keys, locks and webhooks stop at once; nothing is deleted.',
    success: 200,
    answer: Outcome,
    audit,
    handle: async ({ accounts }, { params }) => outcomeJson(await accounts.merchants.close(params.name ?? '')),
  },
  {
    method: 'POST',
    path: '/merchants/:name/reopen',
    operation: 'merchant.reopen',
    summary: 'Opens a closed merchant again: its keys, locks and webhooks work as before.',
    success: 200,
    answer: Outcome,
    audit,
    handle: async ({ accounts }, { params }) => outcomeJson(await accounts.merchants.reopen(params.name ?? '')),
  },
];

function outcomeJson({ merchant: { id, name, closedAtMs }, locks, urls }: ClosingOutcome) {
  return { id, name, closed_at: closedAtMs === null ? null : formatDate(closedAtMs), locks, webhooks: urls };
}
