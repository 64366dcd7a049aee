/** What a role on the merchants' dashboard may do, as scopes of API keys (docs/interfaces.md §2). Pure. */
import type { DashboardRole } from '../store/contract/merchants/dashboard-roles.js';
import type { KeyScope } from '../store/contract/merchants/key-scopes.js';

const READS: readonly KeyScope[] = ['locks:read', 'webhooks:read'];
const STAFF: readonly KeyScope[] = [...READS, 'locks:write', 'commands', 'webhooks:resend'];

/** No role has `spec`: a session of the dashboard never calls the operations of the specification. */
const SCOPES: Readonly<Record<DashboardRole, readonly KeyScope[]>> = {
  viewer: READS,
  staff: STAFF,
  owner: [...STAFF, 'billing:read', 'users'],
};

/** Whether a role may call the operations with this scope. */
export function roleHasScope(role: DashboardRole, scope: KeyScope): boolean {
  return SCOPES[role].includes(scope);
}
