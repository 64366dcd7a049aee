/**
 * Waits for locks of tables. A statement that changes a table waits for all statements that read it, and those that
 * come later, commits too, wait behind it: so it must give up soon, and try again.
 */

/**
 * Limits each such wait in a transaction: to half a second more than the time after which the server ends an autovacuum
 * that holds the table, and finds a deadlock (`deadlock_timeout`, 1 s unless it was changed); but to 3 s at most.
 */
export const LIMIT_LOCK_WAIT = `SELECT set_config('lock_timeout', least(3000,
  extract(epoch FROM current_setting('deadlock_timeout')::interval) * 1000 + 500)::int::text, true)`;

const LOCK_NOT_AVAILABLE = '55P03';
const DEADLOCK = '40P01';

/** Whether PostgreSQL gave up waiting for a lock: for too long, or since its holder waited for this transaction. */
export function isLockTimeout(error: unknown): boolean {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  return code === LOCK_NOT_AVAILABLE || code === DEADLOCK || (cause !== undefined && isLockTimeout(cause));
}
