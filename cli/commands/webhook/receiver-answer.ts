/**
 * The answers of the local webhook receiver: planned faults, the answer of another server, or success.
 */
import type { IncomingHttpHeaders } from 'node:http';
import got from 'got';
import { type Milliseconds, Seconds } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';

/** A received webhook. */
export interface ReceivedWebhook {
  /** The `webhook-id` header; empty where it is missing. */
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The body as it came, which is what is signed. */
  readonly bytes: Buffer;
  /** Whether a secret matches, and if not, why; both undefined without secrets. */
  readonly verified: boolean | undefined;
  readonly why: string | undefined;
}

/** The answer of another server, to be passed on. */
export interface ForwardedAnswer {
  readonly status: number;
  /** Its `Retry-After` and `Content-Type`, if present. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** A status; `timeout` for no answer, `reset` to close the connection; or the answer of another server. */
export type ReceiverAnswer = number | 'timeout' | 'reset' | ForwardedAnswer;

/** Decides the answer to a webhook. */
export type Answerer = (webhook: ReceivedWebhook) => Promise<ReceiverAnswer>;

const FINE = 204;
/** For the whole of a forwarded request. */
const FORWARD_TIMEOUT: Milliseconds = Seconds(15);
/** The answer if the other server does not answer, or answers too much. */
const BAD_GATEWAY = 502;
/** The longest body that is passed on. */
const FORWARDED_BYTES = 1024 * 1024;
/** The headers of the other server that matter to the sender. */
const FORWARDED_HEADERS = ['retry-after', 'content-type'] as const;

/** One entry of `--fail`: an answer, and for how many webhooks; infinite for all that follow. */
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
        `${JSON.stringify(part)} is not a fault: expected ok, timeout, reset or a status like 500, then *3 or *`,
      );
    const count = times === undefined ? 1 : times === '*' ? Number.POSITIVE_INFINITY : Number(times.slice(1));
    return { answer: name === 'ok' ? FINE : name === 'timeout' || name === 'reset' ? name : Number(name), count };
  });
}

/** Answers by the plan, and after its end with `then`. */
export function faultyAnswers(faults: readonly PlannedFault[], then: Answerer): Answerer {
  const left = faults.map(({ answer, count }) => ({ answer, count }));
  return async (webhook) => {
    const next = left.find(({ count }) => count > 0);
    if (next === undefined) return await then(webhook);
    next.count -= 1;
    return next.answer;
  };
}

/** Answers success. */
export const fineAnswers: Answerer = async () => FINE;

/** Headers that are not forwarded: they concern the connection, or are set again. */
const NOT_FORWARDED = new Set(['host', 'connection', 'content-length', 'transfer-encoding', 'keep-alive', 'expect']);

/**
 * Forwards each webhook unchanged, and passes on status, Retry-After and body of the answer.
 *
 * @throws LockgateError `input-url`
 */
export function forwardedAnswers(url: string): Answerer {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new LockgateError('input-url', `${JSON.stringify(url)} is not an http or https URL`);
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

/** The status of an answer, or what replaces it. */
export function statusOf(answer: ReceiverAnswer): number | 'timeout' | 'reset' {
  return typeof answer === 'object' ? answer.status : answer;
}
