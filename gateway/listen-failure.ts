/**
 * Turns the error of a failed `listen` into one sentence: the port is in use, or this machine does not have or may not
 * use the address (interfaces.md §6: a wrong value stops the start with one sentence). Pure.
 */
import { LockgateError } from '../proto/errors.js';

/** A sentence for each error code of the system about an unusable address or port. */
const UNUSABLE_ADDRESS_REASONS: Readonly<Record<string, string>> = {
  EADDRNOTAVAIL: 'this machine does not have that address',
  ENOTFOUND: 'the name has no known address',
  EAI_AGAIN: 'the name can’t be looked up now',
  EINVAL: 'a server can’t listen on that address',
  EAFNOSUPPORT: 'this machine does not support that kind of address',
  EACCES: 'the system does not allow it',
  EPERM: 'the system does not allow it',
};

/**
 * The error to throw if listening on `host` and `port` failed with `error`: LockgateError `port-taken` or
 * `input-address`, otherwise `error` itself.
 */
export function listenFailure(
  listenerName: string,
  { host, port }: { host: string; port: number },
  error: unknown,
): Error {
  const { code = '' } = error as NodeJS.ErrnoException;
  const sentence = `${listenerName} can't listen on ${host}:${port}`;
  if (code === 'EADDRINUSE') return new LockgateError('port-taken', `${sentence}: another process uses the port`);
  const why = UNUSABLE_ADDRESS_REASONS[code];
  return why === undefined ? (error as Error) : new LockgateError('input-address', `${sentence}: ${why}`);
}
