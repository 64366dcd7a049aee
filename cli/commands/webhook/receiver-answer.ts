/**
 * Decides the answers of the local webhook receiver: planned faults, the answer of another server, or success.
 */
import type { IncomingHttpHeaders } from 'node:http';
import got from 'got';
import { type Milliseconds, Seconds } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';

/** A received webhook. */
export interface ReceivedWebhook {
  /** The `webhook-id` header; empty if it is missing. */
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The received bytes of the body, which the signature covers. */
  readonly bytes: Buffer;
  /** Whether the signature matches a secret; undefined without secrets. */
  readonly verified: boolean | undefined;
  /** Why no secret matches; undefined if one matches or there are no secrets. */
  readonly why: string | undefined;
}

/** The answer of the server that webhooks are forwarded to. */
export interface ForwardedAnswer {
  readonly status: number;
  /** Its `Retry-After` and `Content-Type`, if present. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** A status; `timeout` for no answer; `reset` to close the connection; or the answer of another server. */
export type ReceiverAnswer = number | 'timeout' | 'reset' | ForwardedAnswer;

/** Decides the answer to a webhook. */
export type Answerer = (webhook: ReceivedWebhook) => Promise<ReceiverAnswer>;

const SUCCESS_STATUS = 204;
/** The timeout of a forwarded request, including its answer. */
const FORWARD_TIMEOUT: Milliseconds = Seconds(15);
/** The answer if the other server does not answer, or its body is too large. */
const BAD_GATEWAY_STATUS = 502;
/** The maximum size of an answer's body that is passed on. */
const MAX_ANSWER_BYTES = 1024 * 1024;
/** The headers of the other server's answer that are passed on. */
const PASSED_ON_ANSWER_HEADERS = ['retry-after', 'content-type'] as const;

/** One entry of `--fail`: an answer and the number of webhooks that get it; infinite for all later webhooks. */
export interface PlannedFault {
  readonly answer: ReceiverAnswer;
  readonly count: number;
}

/** An entry of a plan: `500` once, `reset*3` three times, `503*` for all later webhooks. */
const FAULT = /^(ok|timeout|reset|[2-5]\d\d)(\*\d{0,6})?$/;

/**
 * Reads a plan such as `500,timeout,reset*3,503*`.
 *
 * @throws LockgateError `input-fail`
 */
export function readFaults(text: string): PlannedFault[] {
  return text.split(',').map((part) => {
    const [, name, times] = FAULT.exec(part.trim()) ?? [];
    if (name === undefined)
      throw new LockgateError(
        'input-fail',
        `${JSON.stringify(part)} is not a fault: expected ok, timeout, reset or a status like 500, then *3 or *`,
      );
    const count = times === undefined ? 1 : times === '*' ? Number.POSITIVE_INFINITY : Number(times.slice(1));
    return {
      answer: name === 'ok' ? SUCCESS_STATUS : name === 'timeout' || name === 'reset' ? name : Number(name),
      count,
    };
  });
}

/** Answers with the planned faults, and after the last one as `afterFaults` decides. */
export function faultyAnswers(faults: readonly PlannedFault[], afterFaults: Answerer): Answerer {
  const remaining = faults.map(({ answer, count }) => ({ answer, count }));
  return async (webhook) => {
    const next = remaining.find(({ count }) => count > 0);
    if (next === undefined) return await afterFaults(webhook);
    next.count -= 1;
    return next.answer;
  };
}

/** Always answers success. */
export const successAnswers: Answerer = async () => SUCCESS_STATUS;

/** Headers of a webhook that are not forwarded: they are about the connection, or the client sets them itself. */
const UNFORWARDED_HEADERS = new Set([
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'keep-alive',
  'expect',
]);

/**
 * Forwards each webhook unchanged, and passes on the status, Retry-After, Content-Type and body of the answer.
 *
 * @throws LockgateError `input-url`
 */
export function forwardedAnswers(url: string): Answerer {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new LockgateError('input-url', `${JSON.stringify(url)} is not an http or https URL`);
  return async ({ headers, bytes }) => {
    const forwarded = Object.entries(headers).filter(([name]) => !UNFORWARDED_HEADERS.has(name));
    try {
      const request = got.post(url, {
        headers: Object.fromEntries(forwarded),
        body: bytes,
        timeout: { request: FORWARD_TIMEOUT },
        retry: { limit: 0 },
        followRedirect: false,
        throwHttpErrors: false,
        responseType: 'buffer',
      });
      void request.on('downloadProgress', ({ transferred }) => {
        // Then the request that is awaited below fails.
        if (transferred > MAX_ANSWER_BYTES) request.cancel();
      });
      const { statusCode: status, headers: answerHeaders, body } = await request;
      const passedHeaders: Record<string, string> = {};
      for (const name of PASSED_ON_ANSWER_HEADERS) {
        const value = answerHeaders[name];
        if (value !== undefined) passedHeaders[name] = value;
      }
      return { status, headers: passedHeaders, body };
    } catch {
      return BAD_GATEWAY_STATUS;
    }
  };
}

/** The status of an answer, or `timeout` or `reset`. */
export function statusOf(answer: ReceiverAnswer): number | 'timeout' | 'reset' {
  return typeof answer === 'object' ? answer.status : answer;
}
