/**
 * Makes one attempt to deliver one webhook: a POST within limits of time and size. It follows no redirects and does not
 * retry. The folder http/ writes the request and reads the answer.
 */
import { type Clock, type Milliseconds, monotonicMs, Seconds } from '../../../proto/clock.js';
import { parseHttpDate, parseRetryAfter } from '../url/schedule.js';
import { ADDRESS_REFUSED_CODE, type GuardedConnections } from './guarded-connections.js';
import type { Answer } from './http/answer-reader.js';
import { isUnanswered } from './name-service.js';
import { type OwnFailure, ownFailureOf, ownFailureText } from './own-failure.js';

/** The time limit of an attempt, from the name look-up to the end of the answer. */
export const ATTEMPT_TIMEOUT: Milliseconds = Seconds(15);

/**
 * The error of an attempt at a forbidden address. It has no details, since it must not reveal what listens there. It
 * must not change: old stores contain this text, and why/delivery-why.ts compares with it.
 */
export const ADDRESS_REFUSED = 'the address is not allowed';

export interface AttemptRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The time limit; {@link ATTEMPT_TIMEOUT} if undefined. */
  readonly timeoutMs?: Milliseconds | undefined;
  /** PEM: the certificate authorities to trust instead of the usual ones. */
  readonly ca?: string | undefined;
}

/** The result. */
export interface AttemptResult {
  /** Null without a complete answer. */
  readonly status: number | null;
  readonly durationMs: number;
  /** A sentence for people; null if the receiver answered 2xx. */
  readonly error: string | null;
  /** The start of the answer's body; null without a complete answer. */
  readonly answer: string | null;
  /** The wait that a 429 or 503 asked for. */
  readonly retryAfter: Milliseconds | undefined;
  /** The address rule (address-rule.ts) forbids the address, so nothing was sent. */
  readonly isAddressRefused: boolean;
  /** What this machine lacked, so that nothing could be sent. Such a result must not count against the URL. */
  readonly ownFailure?: OwnFailure | undefined;
}

/**
 * Makes the attempt. Never rejects: every failure is a result.
 *
 * @param clock the wall clock: a Retry-After may be a date
 * @param signal cuts the attempt off when it aborts
 */
export async function attemptDelivery(
  request: AttemptRequest,
  connections: GuardedConnections,
  clock: Clock,
  signal: AbortSignal,
): Promise<AttemptResult> {
  const startedAt = monotonicMs();
  const elapsedMs = (): number => Math.round(monotonicMs() - startedAt);
  try {
    const answer = await post(request, connections, clock, signal);
    const { status } = answer;
    const error = status >= 200 && status < 300 ? null : `the receiver answered ${status}`;
    const retryAfter = requestedWaitOf(answer, clock.now());
    const durationMs = elapsedMs();
    return { status, durationMs, error, answer: textOf(answer.body), retryAfter, isAddressRefused: false };
  } catch (error) {
    const ownFailure = await ownFailureOf(error as Error, new URL(request.url).hostname, connections.names);
    const { code } = error as NodeJS.ErrnoException;
    const sentence =
      ownFailure === undefined ? explain(error as Error, request.timeoutMs) : ownFailureText(ownFailure, code);
    const result = { status: null, durationMs: elapsedMs(), error: sentence, answer: null, retryAfter: undefined };
    return { ...result, isAddressRefused: code === ADDRESS_REFUSED_CODE, ownFailure };
  }
}

/** Resolves with the answer. Rejects if the answer is not complete in time or `signal` aborts the request. */
function post(
  { url, headers, body, ca, timeoutMs = ATTEMPT_TIMEOUT }: AttemptRequest,
  connections: GuardedConnections,
  clock: Clock,
  signal: AbortSignal,
): Promise<Answer> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const target = new URL(url);
    // Not called before the timer below is set: no exchange ends before `connections.post` has returned.
    const finish = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', cutOff);
    };
    const exchange = connections.post({ url: target, headers, body }, ca, {
      answered: (answer) => {
        finish();
        resolve(answer);
      },
      failed: (error) => {
        finish();
        reject(error);
      },
    });
    const fail = (error: Error): void => {
      finish();
      exchange.cancel();
      reject(error);
    };
    const cutOff = (): void => fail(new Error('the attempt was cut off'));
    const timer = clock.after(timeoutMs, () => {
      // Before there is a connection, the cause may be a name service that does not answer.
      const isLookingUp = exchange.isConnecting && connections.names.isLookingUp(target.hostname);
      fail(isLookingUp ? new LookupTimedOut() : new AttemptTimedOut());
    });
    signal.addEventListener('abort', cutOff);
  });
}

class AttemptTimedOut extends Error {}

/** Looks like Node's error of a look-up that timed out, so that own-failure.ts treats it as one. */
class LookupTimedOut extends Error {
  readonly code = 'ETIMEDOUT';
  readonly syscall = 'getaddrinfo';
}

/** The text of a body. Invalid UTF-8 becomes replacement characters; a NUL would end the text in some tools. */
function textOf(body: Buffer): string {
  return body.toString('utf8').replaceAll('\0', '\ufffd');
}

/** The wait that a 429 or 503 asks for. */
function requestedWaitOf({ status, retryAfter, date }: Answer, nowMs: number): Milliseconds | undefined {
  if (retryAfter === undefined || (status !== 429 && status !== 503)) return undefined;
  return parseRetryAfter(retryAfter, parseHttpDate(date) ?? nowMs);
}

/** A sentence for people about the failure. */
function explain(error: Error, timeoutMs = ATTEMPT_TIMEOUT): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === ADDRESS_REFUSED_CODE) return ADDRESS_REFUSED;
  if (isUnanswered(error)) return `the name service resolves other names but not this one (${code})`;
  if (code === 'ETIMEDOUT' || error instanceof AttemptTimedOut)
    return `no complete answer within ${timeoutMs / 1000} s`;
  if (code === 'ECONNREFUSED') return 'nothing listens there (connection refused)';
  if (code === 'ECONNRESET') return 'the receiver reset the connection';
  if (code === 'ENOTFOUND') return 'the host name is unknown';
  // The AggregateError for a host with several addresses has no message.
  return error.message || code || 'the connection failed';
}
