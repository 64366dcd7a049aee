/** Records in the audit log what merchants' users and programs changed over HTTP (gateway/audit/audit.ts). */
import type { FastifyRequest } from 'fastify';
import type { ApiKey } from '../../store/contract/merchants/access-store.js';
import type { AuditWho } from '../../store/contract/operators/audit-store.js';
import type { UserConsoleSession } from '../../store/contract/operators/console-session-store.js';
import type { Call, HttpAnswer, MerchantRoute } from './route.js';

/** The caller, for the audit log; undefined for a caller without an API key or a session of the dashboard. */
export function whoOf(
  { key, session }: { readonly key: ApiKey | undefined; readonly session: UserConsoleSession | undefined },
  { headers }: Pick<FastifyRequest, 'headers'>,
  address: string,
): AuditWho | undefined {
  const agent = headers['user-agent'] ?? null;
  if (session !== undefined) return userWho(session, { address, agent });
  if (key === undefined) return undefined;
  const { merchantId, merchantName, publicId, name } = key;
  const merchant = { id: merchantId, name: merchantName };
  return { actor: 'key', address, agent, osUser: null, token: publicId, merchant, user: null, key: name };
}

/** A user of the dashboard, for the audit log. */
export function userWho(
  { merchantId, merchantName, username }: UserConsoleSession,
  client: Pick<AuditWho, 'address' | 'agent'>,
): AuditWho {
  const merchant = { id: merchantId, name: merchantName };
  return { actor: 'user', ...client, osUser: null, token: null, merchant, user: username, key: null };
}

/** Records the change that a call has made, if the route describes one. */
export function noteChange({ audit }: Pick<MerchantRoute, 'audit'>, call: Call, answer: HttpAnswer): void {
  const change = audit?.(call, answer) ?? null;
  const who = change?.who ?? call.who;
  if (change !== null && who !== undefined) call.parts.audit.note(change.action, change.object, change.after, who);
}
