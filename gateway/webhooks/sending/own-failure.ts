/**
 * Failures of an attempt that are our own (interfaces.md §3): the process has no descriptor left, the system no memory
 * or no local port, or no name service answers. They say nothing about the URL.
 */
import { isUnanswered, type NameService } from './name-service.js';

/** What this machine lacked. They are the subjects of notices. */
export const OWN_FAILURES = ['descriptors', 'memory', 'ports', 'name-service'] as const;

export type OwnFailure = (typeof OWN_FAILURES)[number];

const BY_CODE: Readonly<Record<string, OwnFailure>> = {
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

/** What was lacking, for people; `code` is the system's, where there is one. */
export function ownFailureText(failure: OwnFailure, code?: string): string {
  return code === undefined ? SENTENCES[failure] : `${SENTENCES[failure]} (${code})`;
}

/**
 * Which failure of our own an error of an attempt is; undefined where it is the URL's. Where a name got no answer,
 * other names tell whether none does.
 */
export async function ownFailureOf(
  error: Error,
  hostname: string,
  names: NameService,
): Promise<OwnFailure | undefined> {
  const { code = '' } = error as NodeJS.ErrnoException;
  // A name with several addresses is tried at each. One that refused, say, has shown what the receiver is like.
  const all = error instanceof AggregateError ? (error.errors as NodeJS.ErrnoException[]) : [];
  if (all.some((each) => BY_CODE[each.code ?? ''] === undefined)) return undefined;
  if (BY_CODE[code] !== undefined) return BY_CODE[code];
  if (!isUnanswered(error)) return undefined;
  return (await names.answersOthers(hostname)) ? undefined : 'name-service';
}
