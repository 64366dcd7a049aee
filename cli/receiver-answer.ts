/**
 * What the local receiver of webhooks answers: what it was told to do wrong, one webhook after the other, what another
 * server says to the same webhook, or that all is well.
 */
import got from 'got';
import { type Milliseconds, Seconds } from '../proto/clock.js';
import { LockgateError } from '../proto/errors.js';
import type { ReceivedWebhook } from './receiver.js';

/** A status; `timeout` is no answer at all, `reset` ends the connection without one. */
export type ReceiverAnswer = number | 'timeout' | 'reset';

/** What an answer in order to a webhook is. */
export type Answerer = (webhook: ReceivedWebhook) => Promise<ReceiverAnswer>;

const FINE = 204;
/** For the whole of a forwarded request. */
const FORWARD_TIMEOUT: Milliseconds = Seconds(15);
/** What is said where the other server says nothing. */
const BAD_GATEWAY = 502;

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

/** Sends each webhook on as it came, and answers what that server answers. @throws LockgateError `input-url` */
export function forwardedAnswers(url: string): Answerer {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new LockgateError('input-url', `${JSON.stringify(url)} is no http or https URL`);
  return async ({ headers, bytes }) => {
    const kept = Object.entries(headers).filter(([name]) => !NOT_FORWARDED.has(name));
    try {
      const answer = await got.post(url, {
        headers: Object.fromEntries(kept),
        body: bytes,
        timeout: { request: FORWARD_TIMEOUT },
        retry: { limit: 0 },
        followRedirect: false,
        throwHttpErrors: false,
      });
      return answer.statusCode;
    } catch {
      return BAD_GATEWAY;
    }
  };
}
