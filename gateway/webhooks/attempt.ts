/**
 * One attempt at one webhook: a POST, within its limits of time and size. Redirects are not followed, got's own retries
 * are off: the schedule is ours.
 */
import got, { type Request } from 'got';
import { type Clock, type Milliseconds, monotonicMs, Seconds } from '../../proto/clock.js';
import type { GuardedAgents } from './guarded-agents.js';
import { parseRetryAfter } from './schedule.js';

/** For a whole attempt, from the name's lookup to the end of the answer. */
const ATTEMPT_TIMEOUT: Milliseconds = Seconds(15);
/** How much of an answer is read at most, and how much of it is kept. */
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
    const answer = await post(request, agents, signal);
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

async function post(request: AttemptRequest, agents: GuardedAgents, signal: AbortSignal): Promise<Answer> {
  signal.throwIfAborted();
  const stream = got.stream.post(request.url, {
    headers: { ...request.headers },
    // As bytes: a text would go out in one write with the header lines, and take them along into UTF-8.
    body: Buffer.from(request.body),
    agent: { http: agents.http, https: agents.https },
    timeout: { request: ATTEMPT_TIMEOUT },
    retry: { limit: 0 },
    followRedirect: false,
    throwHttpErrors: false,
    decompress: false,
  });
  // Not got's own `signal`: a stream of it that ends well never takes its listener away, and so each delivery of a
  // worker's life would be kept in memory with it.
  const cutOff = (): void => void stream.destroy(new Error('the gateway is stopping'));
  signal.addEventListener('abort', cutOff);
  const bytes = await readLimited(stream).finally(() => signal.removeEventListener('abort', cutOff));
  const { response } = stream;
  if (response === undefined) throw new Error('the receiver closed the connection without an answer');
  // What is no UTF-8 is shown with replacement characters; a NUL would end the text in some tools.
  const text = bytes.subarray(0, ANSWER_KEPT_BYTES).toString('utf8').replaceAll('\0', '\ufffd');
  return { status: response.statusCode, retryAfter: response.headers['retry-after'], text };
}

/** Reads at most the limit; what goes on beyond it is cut off, and the status counts. */
async function readLimited(stream: Request): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    chunks.push(chunk as Buffer);
    size += (chunk as Buffer).length;
    if (size >= ANSWER_READ_BYTES) break;
  }
  return Buffer.concat(chunks);
}

/** A sentence on what went wrong, without what got adds of its own. */
function explain(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  const cause = error.cause as NodeJS.ErrnoException | undefined;
  if (code === 'address-refused' || cause?.code === 'address-refused') return ADDRESS_REFUSED;
  if (code === 'ETIMEDOUT' || error.name === 'TimeoutError')
    return `no complete answer within ${ATTEMPT_TIMEOUT / 1000} s`;
  if (code === 'ECONNREFUSED') return 'nothing listens there (connection refused)';
  if (code === 'ECONNRESET') return 'the receiver reset the connection';
  if (code === 'ENOTFOUND') return 'the host name is unknown';
  return error.message;
}
