/**
 * Turns a failed `listen` into one sentence: a port that is taken, or a setting with an address that this machine does
 * not have or may not use (interfaces.md §6: a wrong value stops the start with one sentence).
 */
import { LockgateError } from '../proto/errors.js';

/** The system's error codes for an address or a port that can't be used. */
const UNUSABLE: Readonly<Record<string, string>> = {
  EADDRNOTAVAIL: 'this machine does not have that address',
  ENOTFOUND: 'no address of that name is known',
  EAI_AGAIN: 'the name can’t be looked up now',
  EINVAL: 'it is no address to listen on',
  EAFNOSUPPORT: 'this machine does not speak that kind of address',
  EACCES: 'the system does not allow it',
  EPERM: 'the system does not allow it',
};

/**
 * The error to throw where listening on `host` and `port` failed with `error`: LockgateError `port-taken` or
 * `input-address`; `error` itself where it is neither. `what` names what was to listen.
 */
export function listenFailure(what: string, { host, port }: { host: string; port: number }, error: unknown): Error {
  const { code = '' } = error as NodeJS.ErrnoException;
  const sentence = `${what} can't listen on ${host}:${port}`;
  if (code === 'EADDRINUSE') return new LockgateError('port-taken', `${sentence}: something else does already`);
  const why = UNUSABLE[code];
  return why === undefined ? (error as Error) : new LockgateError('input-address', `${sentence}: ${why}`);
}
