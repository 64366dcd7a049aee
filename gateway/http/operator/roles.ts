/**
 * Which role each operation of the operators' interface needs (interfaces.md §4). Pure. An operation that no row names
 * needs `read` if it is a GET, and `admin` otherwise, so that a new change is not open to everyone by accident.
 */
import { LockgateError } from '../../../proto/errors.js';
import { OPERATOR_ROLES, type OperatorRole } from '../../store/contract/operators/operator-token-store.js';
import type { DocumentedRoute } from './document.js';

/** Operations that need another role than their method and group say. */
const ROLE_OF_OPERATION: Readonly<Record<string, OperatorRole>> = {
  'health.show-metrics': 'metrics',
  // A session has no more rights than the token that asks for it.
  'console.link': 'read',
  // A copy of everything, the settings, and the whole history.
  'store.backup': 'admin',
  'config.show': 'admin',
  'trace.export': 'admin',
};

/** The groups whose changes need only `operate`: commands, locks, webhooks, users. */
const OPERATED_GROUPS: ReadonlySet<string> = new Set([
  'command',
  'device',
  'webhook',
  'delivery',
  'event',
  'user',
  'invitation',
]);

/** The least role that may call an operation. */
export function roleNeeded({ method, operation }: Pick<DocumentedRoute, 'method' | 'operation'>): OperatorRole {
  const role = ROLE_OF_OPERATION[operation];
  if (role !== undefined) return role;
  if (method === 'GET') return 'read';
  return OPERATED_GROUPS.has(operation.split('.', 1)[0] ?? '') ? 'operate' : 'admin';
}

/** @throws LockgateError `insufficient-role` if the role does not include the needed one */
export function checkRole(role: OperatorRole, needed: OperatorRole): void {
  // The roles are ordered; each includes those before it.
  if (OPERATOR_ROLES.indexOf(role) >= OPERATOR_ROLES.indexOf(needed)) return;
  throw new LockgateError('insufficient-role', `this needs the role ${needed}; the token has the role ${role}`);
}
