/** Why a database can't be used at a start, as a sentence that says what to do. Pure. */
import { LockgateError } from '../../../../proto/errors.js';
import { StoreFailure } from '../../contract/errors.js';
import { shownStoreUrl } from '../../store-url.js';

/** Why the server did not let us in, by its SQLSTATE (postgresql.org/docs/15/errcodes-appendix.html). */
const REFUSALS: Readonly<Record<string, string>> = {
  '28000': 'it refuses the user: check the URL, and the server’s pg_hba.conf',
  '28P01': 'it refuses the password: check the URL, or PGPASSWORD',
  '3D000': 'it has no such database: make one with createdb',
  '42501': 'the user may not do that: let it own the database',
  '53300': 'it has no free connection: raise max_connections, a gateway needs 14',
  '57P03': 'it is starting or stopping: try again soon',
};

/**
 * Returns what a start throws for an error of the driver: `store-unreachable` or `store-refused` with a sentence;
 * others are unchanged.
 */
export function connectFailure(error: unknown, url: string): unknown {
  if (error instanceof LockgateError || error instanceof StoreFailure) return error;
  const { code, message = '' } = (error ?? {}) as { code?: unknown; message?: string };
  const where = shownStoreUrl(url);
  const refusal = typeof code === 'string' ? REFUSALS[code] : undefined;
  if (refusal !== undefined)
    return new LockgateError('store-refused', `${where} can't be used: ${refusal} (${message})`, { cause: error });
  if (!isOfNetwork(error)) return error;
  const why = message === '' ? String(code) : message;
  return new LockgateError('store-unreachable', `${where} can't be reached: ${why}`, { cause: error });
}

/** Whether the connection failed: by the system's code, a SQLSTATE, or as the driver's own error, which has no code. */
function isOfNetwork(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown };
  // 08: connection exceptions; 57P0x: the server shuts down, has crashed, or is starting.
  if (typeof code === 'string') return /^(E[A-Z_]+|08...|57P0.)$/.test(code);
  return error instanceof Error && error.constructor === Error;
}
