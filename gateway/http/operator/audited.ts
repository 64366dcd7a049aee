/**
 * Makes a route's change with an entry in the audit log: who made the change, on what object, with what outcome
 * (gateway/audit/audit.ts).
 */
import type { FastifyRequest } from 'fastify';
import type { AuditDetails, AuditedChange } from '../../audit/audit.js';
import type { TrustedProxies } from '../../network/trusted-proxies.js';
import type { AuditWho } from '../../store/contract/operators/audit-store.js';
import type { ChangingRoute, OperatorParts, RouteRequest } from './routes.js';

/** The header in which the command line names its operating-system user, percent-encoded. Not verified. */
export const USER_HEADER = 'x-lockgate-user';

/** The caller, for the audit log. `token` is the name of the token that was used. */
export function whoOf({ raw, headers }: FastifyRequest, proxies: TrustedProxies, token: string | null): AuditWho {
  const user = headers[USER_HEADER];
  return {
    actor: 'operator',
    address: proxies.clientOf(raw),
    agent: headers['user-agent'] ?? null,
    osUser: typeof user === 'string' && user !== '' ? decodedUser(user) : null,
    token,
  };
}

/**
 * Makes the change: `work` validates the request and runs the handler.
 *
 * @throws what `work` throws
 */
export async function makeAudited(
  { audit, operation }: Pick<ChangingRoute, 'audit' | 'operation'>,
  who: AuditWho,
  parts: OperatorParts,
  request: RouteRequest,
  work: () => Promise<unknown>,
): Promise<unknown> {
  const change: AuditedChange = {
    who,
    action: operation,
    object: objectOf(() => audit.object(request)),
    // A change must not fail for its entry: without a readable state before, the entry has none.
    before: (await audit.before?.(parts, request).catch(() => null)) ?? null,
  };
  return await parts.audit.change(change, work, (answer) => {
    const after = audit.after?.(request, answer as never) ?? null;
    return {
      object: objectOf(() => audit.object(request, answer as never)) || change.object,
      after,
      merchant: audit.merchant?.(request, answer as never) ?? merchantIn(after) ?? merchantIn(change.before),
    };
  });
}

/** The merchant's name among recorded members. */
function merchantIn(details: AuditDetails | null): string | undefined {
  const name = details?.merchant;
  return typeof name === 'string' ? name : undefined;
}

/** Returns the object's name; empty if the request does not fit its schemas, so that naming the object throws. */
function objectOf(nameObject: () => string): string {
  try {
    return String(nameObject() ?? '');
  } catch {
    return '';
  }
}

/** Undoes the percent-encoding of the user's name; text that is not encoded properly is recorded as it came. */
function decodedUser(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
