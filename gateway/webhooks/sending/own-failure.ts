/**
 * Recognises failures of an attempt that this machine caused (interfaces.md §3): the process has no descriptor left,
 * the system has no memory or no local port left, or the name service does not answer. They do not count against the
 * URL. The code calls them "own failures".
 */
import { isUnanswered, type NameService } from './name-service.js';

/** What this machine lacked. These words are the subjects of notices. */
export const OWN_FAILURES = ['descriptors', 'memory', 'ports', 'name-service'] as const;

export type OwnFailure = (typeof OWN_FAILURES)[number];

const FAILURE_BY_CODE: Readonly<Record<string, OwnFailure>> = {
  EMFILE: 'descriptors',
  ENFILE: 'descriptors',
  ENOBUFS: 'memory',
  ENOMEM: 'memory',
  EAI_MEMORY: 'memory',
  EADDRNOTAVAIL: 'ports',
};

const SENTENCES: Readonly<Record<OwnFailure, string>> = {
  descriptors: 'this gateway has no file descriptor left',
  memory: 'this machine has no memory left for the connection',
  ports: 'this machine has no local address and port left for the connection',
  'name-service': 'this machine’s name service does not answer',
};

/** A sentence for people about the failure; `code` is the system's error code, if there is one. */
export function ownFailureText(failure: OwnFailure, code?: string): string {
  return code === undefined ? SENTENCES[failure] : `${SENTENCES[failure]} (${code})`;
}

/**
 * What this machine lacked when an attempt failed with `error`; undefined if the failure is the URL's. If a name got no
 * answer, other names are looked up to find out whether the name service is dead.
 */
export async function ownFailureOf(
  error: Error,
  hostname: string,
  names: NameService,
): Promise<OwnFailure | undefined> {
  const { code = '' } = error as NodeJS.ErrnoException;
  // Node tries every address of a name. If one failed otherwise, such as by refusing, the receiver caused the failure.
  const addressErrors = error instanceof AggregateError ? (error.errors as NodeJS.ErrnoException[]) : [];
  if (addressErrors.some((each) => FAILURE_BY_CODE[each.code ?? ''] === undefined)) return undefined;
  if (FAILURE_BY_CODE[code] !== undefined) return FAILURE_BY_CODE[code];
  if (!isUnanswered(error)) return undefined;
  return (await names.answersOthers(hostname)) ? undefined : 'name-service';
}
