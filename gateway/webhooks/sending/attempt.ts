/**
 * Makes one attempt to deliver one webhook: a POST within limits of time and size. It follows no redirects and does not
 * retry. It uses node:http directly: a client library would cost more per request than signing, sending and recording
 * together (the bench `deliveries` compares them).
 */
import http from 'node:http';
import https from 'node:https';
import { type Clock, type Milliseconds, monotonicMs, Seconds } from '../../../proto/clock.js';
import { parseHttpDate, parseRetryAfter } from '../url/schedule.js';
import { ADDRESS_REFUSED_CODE, type GuardedAgents, MAX_IDLE_SOCKETS } from './guarded-agents.js';
import { isUnanswered } from './name-service.js';
import { type OwnFailure, ownFailureOf, ownFailureText } from './own-failure.js';

/** The time limit of an attempt, from the name look-up to the end of the answer. */
export const ATTEMPT_TIMEOUT: Milliseconds = Seconds(15);
/** How much of an answer is read (the chunk that passes the limit is read to its end), and how much is stored. */
const MAX_ANSWER_READ_BYTES = 64 * 1024;
const MAX_ANSWER_STORED_BYTES = 1024;

/**
 * The error of an attempt at a forbidden address. It has no details, since it must not reveal what listens there. It
 * must not change: old stores contain this text, and why/delivery-why.ts compares with it.
 */
export const ADDRESS_REFUSED = 'the address is not allowed';

export interface AttemptRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The time limit; that of every attempt if undefined. */
  readonly timeoutMs?: Milliseconds | undefined;
  /** PEM: the certificate authorities to trust instead of the usual ones. */
  readonly ca?: string | undefined;
}

/** The result. `error` is a sentence for people, null if the receiver answered 2xx. */
export interface AttemptResult {
  readonly status: number | null;
  readonly durationMs: number;
  readonly error: string | null;
  readonly answer: string | null;
  /** The wait that a 429 or 503 asked for. */
  readonly retryAfter: Milliseconds | undefined;
  /** The address rule (address-rule.ts) forbids the address, so nothing was sent. */
  readonly isAddressRefused: boolean;
  /** What this machine lacked, so that nothing could be sent. Such a result must not count against the URL. */
  readonly ownFailure?: OwnFailure | undefined;
}

/** Makes the attempt. Never rejects: every failure is a result. */
export async function attemptDelivery(
  request: AttemptRequest,
  agents: GuardedAgents,
  clock: Clock,
  signal: AbortSignal,
): Promise<AttemptResult> {
  const startedAt = monotonicMs();
  const elapsedMs = (): number => Math.round(monotonicMs() - startedAt);
  try {
    const answer = await post(request, agents, clock, signal);
    const { status, retryAfter } = answer;
    const requestedWait =
      status === 429 || status === 503 ? parseRetryAfter(retryAfter, answer.dateMs ?? clock.now()) : undefined;
    const error = status >= 200 && status < 300 ? null : `the receiver answered ${status}`;
    const result = { status, durationMs: elapsedMs(), error, answer: answer.text };
    return { ...result, retryAfter: requestedWait, isAddressRefused: false };
  } catch (error) {
    const ownFailure = await ownFailureOf(error as Error, new URL(request.url).hostname, agents.names);
    const { code } = error as NodeJS.ErrnoException;
    const sentence =
      ownFailure === undefined ? explain(error as Error, request.timeoutMs) : ownFailureText(ownFailure, code);
    const result = { status: null, durationMs: elapsedMs(), error: sentence, answer: null, retryAfter: undefined };
    return { ...result, isAddressRefused: code === ADDRESS_REFUSED_CODE, ownFailure };
  }
}

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  /** When it was sent, by the receiver's clock. */
  readonly dateMs: number | undefined;
  readonly text: string;
}

/** Resolves with the answer. Rejects if the answer is not complete in time or `signal` aborts the request. */
function post(request: AttemptRequest, agents: GuardedAgents, clock: Clock, signal: AbortSignal): Promise<Answer> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    let call: http.ClientRequest | undefined;
    let isFinished = false;
    let repeatsLeft = MAX_IDLE_SOCKETS;
    const finish = (): void => {
      isFinished = true;
      timer.cancel();
      signal.removeEventListener('abort', cutOff);
    };
    const fail = (error: Error): void => {
      if (isFinished) return;
      finish();
      call?.destroy();
      reject(error);
    };
    const send = (): void => {
      call = sendRequest(request, agents, {
        answered: (answer) => {
          finish();
          resolve(answer);
        },
        failed: fail,
        // All idle sockets may be stale, so the request is repeated on each.
        wasStale: (error) => {
          if (isFinished || repeatsLeft === 0) return fail(error);
          repeatsLeft -= 1;
          send();
        },
      });
    };
    const cutOff = (): void => fail(new Error('the gateway is stopping'));
    const timedOut = (): Error => {
      // Before there is a connection, the cause may be a name service that does not answer.
      const { hostname } = new URL(request.url);
      const isLookingUp = call?.socket?.connecting === true && agents.names.isLookingUp(hostname);
      return isLookingUp ? new LookupTimedOut() : new AttemptTimedOut();
    };
    const timer = clock.after(request.timeoutMs ?? ATTEMPT_TIMEOUT, () => fail(timedOut()));
    signal.addEventListener('abort', cutOff);
    send();
  });
}

interface RequestEnds {
  readonly answered: (answer: Answer) => void;
  readonly failed: (error: Error) => void;
  /** The receiver had closed the idle socket that the request reused. Not a failure of the receiver. */
  readonly wasStale: (error: Error) => void;
}

/** Sends the request and calls one of `ends` with the outcome. The caller must ignore later calls. */
function sendRequest(request: AttemptRequest, agents: GuardedAgents, ends: RequestEnds): http.ClientRequest {
  const url = new URL(request.url);
  const isSecure = url.protocol === 'https:';
  const headers = { ...request.headers, 'content-length': String(Buffer.byteLength(request.body)) };
  const options = { method: 'POST', headers, agent: isSecure ? agents.https : agents.http };
  const trust = isSecure && request.ca !== undefined ? { ca: request.ca } : {};
  const call = (isSecure ? https : http).request(url, { ...options, ...trust });
  let answer: http.IncomingMessage | undefined;
  call.on('error', (error) => {
    // After an error that follows a complete answer, such as a body after a 204, the answer is still valid.
    if (answer?.complete) return;
    if (answer === undefined && isStaleSocketError(call, error)) ends.wasStale(error);
    else ends.failed(error);
  });
  // The receiver answered 101 although no upgrade was requested. Without a listener the request would never end.
  call.on('upgrade', (response, socket) => {
    socket.destroy();
    ends.answered(toAnswer(response, Buffer.alloc(0)));
  });
  call.on('response', (response) => {
    answer = response;
    readLimited(response).then((bytes) => {
      // An answer beyond the limit is not read to its end.
      if (!response.complete) call.destroy();
      ends.answered(toAnswer(response, bytes));
    }, ends.failed);
  });
  // As bytes: Node would write a string together with the header lines and encode both as UTF-8.
  call.end(Buffer.from(request.body));
  return call;
}

/**
 * Whether the receiver closed an idle socket while the request was on its way. Usually the receiver has not seen the
 * request; if it has, it gets the same event again under the same id.
 */
function isStaleSocketError(call: http.ClientRequest, { code }: NodeJS.ErrnoException): boolean {
  return call.reusedSocket && (code === 'ECONNRESET' || code === 'EPIPE');
}

class AttemptTimedOut extends Error {}

class LookupTimedOut extends Error {
  readonly code = 'ETIMEDOUT';
  readonly syscall = 'getaddrinfo';
}

function toAnswer({ statusCode = 0, headers }: http.IncomingMessage, bytes: Buffer): Answer {
  // Invalid UTF-8 becomes replacement characters; a NUL would end the text in some tools.
  const text = bytes.toString('utf8').replaceAll('\0', '\ufffd');
  const dateMs = headers['retry-after'] === undefined ? undefined : parseHttpDate(headers.date);
  return { status: statusCode, retryAfter: headers['retry-after'], dateMs, text };
}

/** Resolves with the start of the body once the body is complete or the limit is reached. */
function readLimited(response: http.IncomingMessage): Promise<Buffer> {
  // An answer that announces more than the limit is never read completely, so only the stored part is read.
  const isTooLong = Number(response.headers['content-length']) > MAX_ANSWER_READ_BYTES;
  const maxBytes = isTooLong ? MAX_ANSWER_STORED_BYTES : MAX_ANSWER_READ_BYTES;
  return new Promise((resolve, reject) => {
    const stored: Buffer[] = [];
    let [size, storedSize] = [0, 0];
    const done = (): void => resolve(Buffer.concat(stored));
    response.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (storedSize < MAX_ANSWER_STORED_BYTES) {
        // A copy: a slice would keep the whole chunk in memory.
        const start = Buffer.from(chunk.subarray(0, MAX_ANSWER_STORED_BYTES - storedSize));
        stored.push(start);
        storedSize += start.length;
      }
      if (size < maxBytes) return;
      response.pause();
      done();
    });
    response.on('end', done);
    response.on('error', reject);
  });
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
