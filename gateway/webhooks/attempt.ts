/**
 * One attempt at one webhook: a POST, within its limits of time and size. Nothing is followed and nothing is repeated
 * here: the schedule is ours. It speaks through node:http itself, since a client library's streams, hooks and options
 * for each request cost more than signing, sending and noting it together (the bench `deliveries` compares them).
 */
import http from 'node:http';
import https from 'node:https';
import { type Clock, type Milliseconds, monotonicMs, Seconds } from '../../proto/clock.js';
import type { GuardedAgents } from './guarded-agents.js';
import { parseRetryAfter } from './schedule.js';

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
    const asked = status === 429 || status === 503 ? parseRetryAfter(retryAfter, clock.now()) : undefined;
    const error = status >= 200 && status < 300 ? null : `the receiver answered ${status}`;
    return { status, durationMs: elapsed(), error, answer: answer.text, retryAfter: asked };
  } catch (error) {
    return { status: null, durationMs: elapsed(), error: explain(error as Error), answer: null, retryAfter: undefined };
  }
}

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly text: string;
}

/** Resolves with what was answered. Rejects where that isn't all there in time, or where `signal` cuts it off. */
function post(request: AttemptRequest, agents: GuardedAgents, clock: Clock, signal: AbortSignal): Promise<Answer> {
  signal.throwIfAborted();
  const url = new URL(request.url);
  const isSecure = url.protocol === 'https:';
  const headers = { ...request.headers, 'content-length': String(Buffer.byteLength(request.body)) };
  const options = { method: 'POST', headers, agent: isSecure ? agents.https : agents.http };
  return new Promise((resolve, reject) => {
    const call = (isSecure ? https : http).request(url, options);
    const settle = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', cutOff);
    };
    const fail = (error: Error): void => {
      settle();
      call.destroy();
      reject(error);
    };
    const cutOff = (): void => fail(new Error('the gateway is stopping'));
    const timer = clock.after(ATTEMPT_TIMEOUT, () => fail(new AttemptTimedOut()));
    signal.addEventListener('abort', cutOff);
    call.on('error', fail);
    call.on('response', (response) => {
      readLimited(response).then((bytes) => {
        settle();
        // Where the answer goes on, nobody reads it any more.
        if (!response.complete) call.destroy();
        resolve(toAnswer(response, bytes));
      }, fail);
    });
    // As bytes: a text would go out in one write with the header lines, and take them along into UTF-8.
    call.end(Buffer.from(request.body));
  });
}

class AttemptTimedOut extends Error {}

function toAnswer({ statusCode = 0, headers }: http.IncomingMessage, bytes: Buffer): Answer {
  // What is no UTF-8 is shown with replacement characters; a NUL would end the text in some tools.
  const text = bytes.toString('utf8').replaceAll('\0', '\ufffd');
  return { status: statusCode, retryAfter: headers['retry-after'], text };
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
  if (code === 'ETIMEDOUT' || error instanceof AttemptTimedOut)
    return `no complete answer within ${ATTEMPT_TIMEOUT / 1000} s`;
  if (code === 'ECONNREFUSED') return 'nothing listens there (connection refused)';
  if (code === 'ECONNRESET') return 'the receiver reset the connection';
  if (code === 'ENOTFOUND') return 'the host name is unknown';
  // An error for several addresses that all failed has no message of its own.
  return error.message || code || 'the connection failed';
}
