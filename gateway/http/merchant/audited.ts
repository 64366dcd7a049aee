/** Records in the audit log what merchants' users and programs changed over HTTP (gateway/audit/audit.ts). */
import type { FastifyRequest } from 'fastify';
import type { AuditWho } from '../../store/contract/audit-store.js';
import type { ApiKey } from '../../store/contract/merchants/access-store.js';
import type { Call, HttpAnswer, MerchantRoute } from './route.js';

/** The caller, for the audit log; undefined for a caller without an API key. */
export function whoOf(
  { key }: { readonly key: ApiKey | undefined },
  { headers }: Pick<FastifyRequest, 'headers'>,
  address: string,
): AuditWho | undefined {
  if (key === undefined) return undefined;
  const { merchantId, merchantName, publicId, name } = key;
  const merchant = { id: merchantId, name: merchantName };
  const agent = headers['user-agent'] ?? null;
  return { actor: 'key', address, agent, osUser: null, token: publicId, merchant, user: null, key: name };
}

/** Records the change that a call has made, if the route describes one. */
export function noteChange({ audit }: Pick<MerchantRoute, 'audit'>, call: Call, answer: HttpAnswer): void {
  const change = audit?.(call, answer) ?? null;
  const who = change?.who ?? call.who;
  if (change !== null && who !== undefined) call.parts.audit.note(change.action, change.object, change.after, who);
}
