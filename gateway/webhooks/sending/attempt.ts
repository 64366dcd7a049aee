/**
 * One attempt at one webhook: a POST, within its limits of time and size. Nothing is followed and nothing is repeated
 * here: the schedule is ours. It speaks through node:http itself, since a client library's streams, hooks and options
 * for each request cost more than signing, sending and noting it together (the bench `deliveries` compares them).
 */
import http from 'node:http';
import https from 'node:https';
import { type Clock, type Milliseconds, monotonicMs, Seconds } from '../../../proto/clock.js';
import { parseHttpDate, parseRetryAfter } from '../url/schedule.js';
import { type GuardedAgents, IDLE_SOCKETS } from './guarded-agents.js';
import { isUnanswered } from './name-service.js';
import { type OwnFailure, ownFailureOf, ownFailureText } from './own-failure.js';

/** For a whole attempt, from the name's lookup to the end of the answer. */
export const ATTEMPT_TIMEOUT: Milliseconds = Seconds(15);
/** How much of an answer is read at most, but for the rest of the piece that reaches it; and how much is kept. */
const ANSWER_READ_BYTES = 64 * 1024;
const ANSWER_KEPT_BYTES = 1024;

/** What is said of an address that the rule forbids, and no more: it must not turn out what is there. */
export const ADDRESS_REFUSED = 'the address is not allowed';

export interface AttemptRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What came of it. `error` is a sentence for people, null where the answer was 2xx. */
export interface AttemptResult {
  readonly status: number | null;
  readonly durationMs: number;
  readonly error: string | null;
  readonly answer: string | null;
  /** What a 429 or 503 asked for. */
  readonly retryAfter: Milliseconds | undefined;
  /** What was lacking on our side, so that nothing could be sent: then it says nothing about the URL. */
  readonly own?: OwnFailure | undefined;
}

/** Makes the attempt. It never rejects: whatever a receiver does is a value. */
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
    return { status, durationMs: elapsed(), error, answer: answer.text, retryAfter: asked };
  } catch (error) {
    const own = await ownFailureOf(error as Error, new URL(request.url).hostname, agents.names);
    const { code } = error as NodeJS.ErrnoException;
    const sentence = own === undefined ? explain(error as Error) : ownFailureText(own, code);
    return { status: null, durationMs: elapsed(), error: sentence, answer: null, retryAfter: undefined, own };
  }
}

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  /** When it was sent, by the receiver's clock. */
  readonly dateMs: number | undefined;
  readonly text: string;
}

/** Resolves with what was answered. Rejects where that isn't all there in time, or where `signal` cuts it off. */
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
        // All that are kept may be like it, and the next one is another.
        wasStale: (error) => {
          if (isOver || timesAgain === 0) return fail(error);
          timesAgain -= 1;
          send();
        },
      });
    };
    const cutOff = (): void => fail(new Error('the gateway is stopping'));
    const timedOut = (): Error => {
      // It never came to a connection: no name service answered in time.
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
  /** The socket was kept from an earlier request and gone before this one: that says nothing of the receiver. */
  readonly wasStale: (error: Error) => void;
}

/** Sends the request and tells how it ended; once it has, more may be told, and counts for nothing. */
function begin(request: AttemptRequest, agents: GuardedAgents, ends: Ends): http.ClientRequest {
  const url = new URL(request.url);
  const isSecure = url.protocol === 'https:';
  const headers = { ...request.headers, 'content-length': String(Buffer.byteLength(request.body)) };
  const options = { method: 'POST', headers, agent: isSecure ? agents.https : agents.http };
  const call = (isSecure ? https : http).request(url, options);
  let answer: http.IncomingMessage | undefined;
  call.on('error', (error) => {
    // What follows a complete answer, a body after a 204 say, costs the socket, and not the answer.
    if (answer?.complete) return;
    if (answer === undefined && isStale(call, error)) ends.wasStale(error);
    else ends.failed(error);
  });
  // A 101, which nobody asked for: without a listener the request would never end.
  call.on('upgrade', (response, socket) => {
    socket.destroy();
    ends.answered(toAnswer(response, Buffer.alloc(0)));
  });
  call.on('response', (response) => {
    answer = response;
    readLimited(response).then((bytes) => {
      // Where the answer goes on, nobody reads it any more.
      if (!response.complete) call.destroy();
      ends.answered(toAnswer(response, bytes));
    }, ends.failed);
  });
  // As bytes: a text would go out in one write with the header lines, and take them along into UTF-8.
  call.end(Buffer.from(request.body));
  return call;
}

/**
 * A receiver may close a kept socket while a request is on its way to it, and then it has not seen the request. Should
 * it have, the same event comes to it again under the same id.
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
  // What is no UTF-8 is shown with replacement characters; a NUL would end the text in some tools.
  const text = bytes.toString('utf8').replaceAll('\0', '\ufffd');
  const dateMs = headers['retry-after'] === undefined ? undefined : parseHttpDate(headers.date);
  return { status: statusCode, retryAfter: headers['retry-after'], dateMs, text };
}

/** The beginning of the body, once all of it is there or as much as is read at most: then the status counts. */
function readLimited(response: http.IncomingMessage): Promise<Buffer> {
  // Where more is announced than is read, what is kept is enough.
  const isTooLong = Number(response.headers['content-length']) > ANSWER_READ_BYTES;
  const most = isTooLong ? ANSWER_KEPT_BYTES : ANSWER_READ_BYTES;
  return new Promise((resolve, reject) => {
    const kept: Buffer[] = [];
    let [size, keptSize] = [0, 0];
    const done = (): void => resolve(Buffer.concat(kept));
    response.on('data', (piece: Buffer) => {
      size += piece.length;
      if (keptSize < ANSWER_KEPT_BYTES) {
        // A copy: a slice would keep the whole piece in memory.
        const beginning = Buffer.from(piece.subarray(0, ANSWER_KEPT_BYTES - keptSize));
        kept.push(beginning);
        keptSize += beginning.length;
      }
      if (size < most) return;
      response.pause();
      done();
    });
    response.on('end', done);
    response.on('error', reject);
  });
}

/** A sentence on what went wrong. */
function explain(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'address-refused') return ADDRESS_REFUSED;
  if (isUnanswered(error)) return `its name alone gets no answer from the name service (${code})`;
  if (code === 'ETIMEDOUT' || error instanceof AttemptTimedOut)
    return `no complete answer within ${ATTEMPT_TIMEOUT / 1000} s`;
  if (code === 'ECONNREFUSED') return 'nothing listens there (connection refused)';
  if (code === 'ECONNRESET') return 'the receiver reset the connection';
  if (code === 'ENOTFOUND') return 'the host name is unknown';
  // An error for several addresses that all failed has no message of its own.
  return error.message || code || 'the connection failed';
}
