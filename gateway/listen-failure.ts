/**
 * Why something of the gateway can't listen, as one sentence: a port that is taken, or a setting that names an address
 * which this machine doesn't have or doesn't give away (interfaces.md §6: a wrong value stops the start with one).
 */
import { LockgateError } from '../proto/errors.js';

/** What the system says of an address or a port that can't be had. */
const NOT_TO_BE_HAD: Readonly<Record<string, string>> = {
  EADDRNOTAVAIL: 'this machine does not have that address',
  ENOTFOUND: 'no address of that name is known',
  EAI_AGAIN: 'the name can’t be looked up now',
  EINVAL: 'it is no address to listen on',
  EAFNOSUPPORT: 'this machine does not speak that kind of address',
  EACCES: 'the system does not allow it',
  EPERM: 'the system does not allow it',
};

/**
 * What to throw for an `error` of listening on `host` and `port`: LockgateError `port-taken` or `input-address`, which
 * name `what` was to listen; the error itself where it is neither.
 */
export function listenFailure(what: string, { host, port }: { host: string; port: number }, error: unknown): Error {
  const { code = '' } = error as NodeJS.ErrnoException;
  const sentence = `${what} can't listen on ${host}:${port}`;
  if (code === 'EADDRINUSE') return new LockgateError('port-taken', `${sentence}: something else does already`);
  const why = NOT_TO_BE_HAD[code];
  return why === undefined ? (error as Error) : new LockgateError('input-address', `${sentence}: ${why}`);
}
