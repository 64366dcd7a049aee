/**
 * Waits for locks of tables. A statement that changes a table waits for all statements that read it, and those that
 * come later, commits too, wait behind it: so it must give up soon, and try again.
 */
import { Seconds } from '../../../proto/clock.js';

/** For how long such a statement waits (`lock_timeout`). */
export const MAX_LOCK_WAIT = Seconds(1);

const LOCK_NOT_AVAILABLE = '55P03';

/** Whether PostgreSQL gave up because others held a lock for longer than {@link MAX_LOCK_WAIT}. */
export function isLockTimeout(error: unknown): boolean {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  return code === LOCK_NOT_AVAILABLE || (cause !== undefined && isLockTimeout(cause));
}
