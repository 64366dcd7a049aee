/**
 * What the local receiver of webhooks answers: what it was told to do wrong, one webhook after the other, what another
 * server says to the same webhook, or that all is well.
 */
import type { IncomingHttpHeaders } from 'node:http';
import got from 'got';
import { type Milliseconds, Seconds } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';

/** What came in. */
export interface ReceivedWebhook {
  /** The `webhook-id` header; empty where it is missing. */
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The body as it came, which is what is signed. */
  readonly bytes: Buffer;
  /** True and the sentence undefined where a secret fits; undefined where no secret is known to check with. */
  readonly verified: boolean | undefined;
  readonly why: string | undefined;
}

/** What another server answered, to be passed on. */
export interface ForwardedAnswer {
  readonly status: number;
  /** Its `Retry-After` and `Content-Type`, where it sent them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** A status; `timeout` is no answer at all, `reset` ends the connection without one; or what another server said. */
export type ReceiverAnswer = number | 'timeout' | 'reset' | ForwardedAnswer;

/** What an answer in order to a webhook is. */
export type Answerer = (webhook: ReceivedWebhook) => Promise<ReceiverAnswer>;

const FINE = 204;
/** For the whole of a forwarded request. */
const FORWARD_TIMEOUT: Milliseconds = Seconds(15);
/** What is said where the other server says nothing, or more than is passed on. */
const BAD_GATEWAY = 502;
/** The longest body that is passed on. */
const FORWARDED_BYTES = 1024 * 1024;
/** What of the other server's head the sender goes by. */
const FORWARDED_HEADERS = ['retry-after', 'content-type'] as const;

/** One entry of `--fail`: an answer and for how many webhooks; for all that follow where that is infinite. */
export interface PlannedFault {
  readonly answer: ReceiverAnswer;
  readonly count: number;
}

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
        `${JSON.stringify(part)} is no fault: expected ok, timeout, reset or a status like 500, and *3 or * after it`,
      );
    const count = times === undefined ? 1 : times === '*' ? Number.POSITIVE_INFINITY : Number(times.slice(1));
    return { answer: name === 'ok' ? FINE : name === 'timeout' || name === 'reset' ? name : Number(name), count };
  });
}

/** Answers by the plan, and where it has ended, with `then`. */
export function faultyAnswers(faults: readonly PlannedFault[], then: Answerer): Answerer {
  const left = faults.map(({ answer, count }) => ({ answer, count }));
  return async (webhook) => {
    const next = left.find(({ count }) => count > 0);
    if (next === undefined) return await then(webhook);
    next.count -= 1;
    return next.answer;
  };
}

/** All is well. */
export const fineAnswers: Answerer = async () => FINE;

/** What a request can't take over from another: it is about the connection, or made anew. */
const NOT_FORWARDED = new Set(['host', 'connection', 'content-length', 'transfer-encoding', 'keep-alive', 'expect']);

/**
 * Sends each webhook on as it came, and passes on status, Retry-After and body of the answer.
 *
 * @throws LockgateError `input-url`
 */
export function forwardedAnswers(url: string): Answerer {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new LockgateError('input-url', `${JSON.stringify(url)} is no http or https URL`);
  return async ({ headers, bytes }) => {
    const kept = Object.entries(headers).filter(([name]) => !NOT_FORWARDED.has(name));
    try {
      const asking = got.post(url, {
        headers: Object.fromEntries(kept),
        body: bytes,
        timeout: { request: FORWARD_TIMEOUT },
        retry: { limit: 0 },
        followRedirect: false,
        throwHttpErrors: false,
        responseType: 'buffer',
      });
      void asking.on('downloadProgress', ({ transferred }) => {
        if (transferred > FORWARDED_BYTES) asking.cancel();
      });
      const { statusCode: status, headers: answered, body } = await asking;
      const passed: Record<string, string> = {};
      for (const name of FORWARDED_HEADERS) {
        const value = answered[name];
        if (value !== undefined) passed[name] = value;
      }
      return { status, headers: passed, body };
    } catch {
      return BAD_GATEWAY;
    }
  };
}

/** The status of an answer, or what there is instead of one. */
export function statusOf(answer: ReceiverAnswer): number | 'timeout' | 'reset' {
  return typeof answer === 'object' ? answer.status : answer;
}
