/**
 * One attempt at one webhook: a POST within limits of time and size. No redirect is followed and nothing is retried
 * here. It uses node:http directly, since a client library's streams, hooks and options for each request cost more than
 * signing, sending and recording it together (the bench `deliveries` compares them).
 */
import http from 'node:http';
import https from 'node:https';
import { type Clock, type Milliseconds, monotonicMs, Seconds } from '../../../proto/clock.js';
import { parseHttpDate, parseRetryAfter } from '../url/schedule.js';
import { ADDRESS_REFUSED_CODE, type GuardedAgents, IDLE_SOCKETS } from './guarded-agents.js';
import { isUnanswered } from './name-service.js';
import { type OwnFailure, ownFailureOf, ownFailureText } from './own-failure.js';

/** For a whole attempt, from the name's lookup to the end of the answer. */
export const ATTEMPT_TIMEOUT: Milliseconds = Seconds(15);
/** How much of an answer is read, not counting the rest of the last chunk; and how much of it is stored. */
const ANSWER_READ_BYTES = 64 * 1024;
const ANSWER_STORED_BYTES = 1024;

/**
 * The whole error of an attempt at an address that the rule forbids: it must not reveal what is there. Readers of
 * stored attempts compare with it (why/delivery-why.ts), and old stores have it: it must not change.
 */
export const ADDRESS_REFUSED = 'the address is not allowed';

export interface AttemptRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The result. `error` is a sentence for people, null where the receiver answered 2xx. */
export interface AttemptResult {
  readonly status: number | null;
  readonly durationMs: number;
  readonly error: string | null;
  readonly answer: string | null;
  /** What a 429 or 503 asked for. */
  readonly retryAfter: Milliseconds | undefined;
  /** The address rule forbids the address, so nothing was sent. */
  readonly isAddressRefused: boolean;
  /** What this machine lacked, so that nothing could be sent: the result says nothing about the URL. */
  readonly own?: OwnFailure | undefined;
}

/** Makes the attempt. Never rejects: whatever a receiver does is a value. */
export async function attemptDelivery(
  request: AttemptRequest,
  agents: GuardedAgents,
  clock: Clock,
  signal: AbortSignal,
): Promise<AttemptResult> {
  const startedAt = monotonicMs();
  const elapsed = (): number => Math.round(monotonicMs() - startedAt);
  try {
    const answer = await post(request, agents, clock, signal);
    const { status, retryAfter } = answer;
    const asked =
      status === 429 || status === 503 ? parseRetryAfter(retryAfter, answer.dateMs ?? clock.now()) : undefined;
    const error = status >= 200 && status < 300 ? null : `the receiver answered ${status}`;
    const result = { status, durationMs: elapsed(), error, answer: answer.text };
    return { ...result, retryAfter: asked, isAddressRefused: false };
  } catch (error) {
    const own = await ownFailureOf(error as Error, new URL(request.url).hostname, agents.names);
    const { code } = error as NodeJS.ErrnoException;
    const sentence = own === undefined ? explain(error as Error) : ownFailureText(own, code);
    const result = { status: null, durationMs: elapsed(), error: sentence, answer: null, retryAfter: undefined };
    return { ...result, isAddressRefused: code === ADDRESS_REFUSED_CODE, own };
  }
}

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  /** When it was sent, by the receiver's clock. */
  readonly dateMs: number | undefined;
  readonly text: string;
}

/** Resolves with the answer. Rejects where it is not complete in time, or where `signal` cuts it off. */
function post(request: AttemptRequest, agents: GuardedAgents, clock: Clock, signal: AbortSignal): Promise<Answer> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    let call: http.ClientRequest | undefined;
    let isOver = false;
    let timesAgain = IDLE_SOCKETS;
    const end = (): void => {
      isOver = true;
      timer.cancel();
      signal.removeEventListener('abort', cutOff);
    };
    const fail = (error: Error): void => {
      if (isOver) return;
      end();
      call?.destroy();
      reject(error);
    };
    const send = (): void => {
      call = begin(request, agents, {
        answered: (answer) => {
          end();
          resolve(answer);
        },
        failed: fail,
        // All idle sockets may be stale, so the request is repeated on each.
        wasStale: (error) => {
          if (isOver || timesAgain === 0) return fail(error);
          timesAgain -= 1;
          send();
        },
      });
    };
    const cutOff = (): void => fail(new Error('the gateway is stopping'));
    const timedOut = (): Error => {
      // There was no connection yet: the name service did not answer in time.
      const { hostname } = new URL(request.url);
      const isLookingUp = call?.socket?.connecting === true && agents.names.isLookingUp(hostname);
      return isLookingUp ? new LookupTimedOut() : new AttemptTimedOut();
    };
    const timer = clock.after(ATTEMPT_TIMEOUT, () => fail(timedOut()));
    signal.addEventListener('abort', cutOff);
    send();
  });
}

interface Ends {
  readonly answered: (answer: Answer) => void;
  readonly failed: (error: Error) => void;
  /** The socket was an idle one of an earlier request, and already closed: that says nothing about the receiver. */
  readonly wasStale: (error: Error) => void;
}

/** Sends the request and reports how it ended. Reports after the first one have no meaning. */
function begin(request: AttemptRequest, agents: GuardedAgents, ends: Ends): http.ClientRequest {
  const url = new URL(request.url);
  const isSecure = url.protocol === 'https:';
  const headers = { ...request.headers, 'content-length': String(Buffer.byteLength(request.body)) };
  const options = { method: 'POST', headers, agent: isSecure ? agents.https : agents.http };
  const call = (isSecure ? https : http).request(url, options);
  let answer: http.IncomingMessage | undefined;
  call.on('error', (error) => {
    // An error after a complete answer, such as a body after a 204, costs the socket but not the answer.
    if (answer?.complete) return;
    if (answer === undefined && isStale(call, error)) ends.wasStale(error);
    else ends.failed(error);
  });
  // An unrequested 101: without a listener the request would never end.
  call.on('upgrade', (response, socket) => {
    socket.destroy();
    ends.answered(toAnswer(response, Buffer.alloc(0)));
  });
  call.on('response', (response) => {
    answer = response;
    readLimited(response).then((bytes) => {
      // The rest of a longer answer is not read.
      if (!response.complete) call.destroy();
      ends.answered(toAnswer(response, bytes));
    }, ends.failed);
  });
  // As bytes: a string would go out in one write with the header lines, which would then be encoded as UTF-8 too.
  call.end(Buffer.from(request.body));
  return call;
}

/**
 * A receiver may close an idle socket while a request is on its way, and then has not seen the request. If it has seen
 * it, it gets the same event again under the same id.
 */
function isStale(call: http.ClientRequest, { code }: NodeJS.ErrnoException): boolean {
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

/** The start of the body, once the body is complete or the limit is reached: then the status counts. */
function readLimited(response: http.IncomingMessage): Promise<Buffer> {
  // Where more is announced than is read, reading what is stored is enough.
  const isTooLong = Number(response.headers['content-length']) > ANSWER_READ_BYTES;
  const most = isTooLong ? ANSWER_STORED_BYTES : ANSWER_READ_BYTES;
  return new Promise((resolve, reject) => {
    const stored: Buffer[] = [];
    let [size, storedSize] = [0, 0];
    const done = (): void => resolve(Buffer.concat(stored));
    response.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (storedSize < ANSWER_STORED_BYTES) {
        // A copy: a slice would keep the whole chunk in memory.
        const start = Buffer.from(chunk.subarray(0, ANSWER_STORED_BYTES - storedSize));
        stored.push(start);
        storedSize += start.length;
      }
      if (size < most) return;
      response.pause();
      done();
    });
    response.on('end', done);
    response.on('error', reject);
  });
}

/** A sentence for people about the failure. */
function explain(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === ADDRESS_REFUSED_CODE) return ADDRESS_REFUSED;
  if (isUnanswered(error)) return `the name service answers other names but not this one (${code})`;
  if (code === 'ETIMEDOUT' || error instanceof AttemptTimedOut)
    return `no complete answer within ${ATTEMPT_TIMEOUT / 1000} s`;
  if (code === 'ECONNREFUSED') return 'nothing listens there (connection refused)';
  if (code === 'ECONNRESET') return 'the receiver reset the connection';
  if (code === 'ENOTFOUND') return 'the host name is unknown';
  // An AggregateError for several addresses has no message of its own.
  return error.message || code || 'the connection failed';
}
