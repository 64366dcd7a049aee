/** The limits of a webhook URL's attempts, as operators send and read them: rate, time limit, own authorities. Pure. */
import { Type } from 'typebox';
import { Seconds } from '../../../../proto/clock.js';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import type { WebhookUrl } from '../../../store/contract/webhooks/webhook-url.js';
import { type LimitsChange, summarizeCa } from '../../../webhooks/limit-input.js';
import { OrNull, Time } from '../schemas.js';

/** The members of a request; null removes a limit. */
export const LimitsInput = {
  rate: Type.Optional(OrNull(Type.Number())),
  timeout_seconds: Type.Optional(OrNull(Type.Number())),
  ca: Type.Optional(OrNull(Type.String({ description: 'PEM certificates.' }))),
};

interface LimitsBody {
  readonly rate?: number | null | undefined;
  readonly timeout_seconds?: number | null | undefined;
  readonly ca?: string | null | undefined;
}

/** The members of an answer; null for no limit of its own. */
export const limitsMembers = {
  rate: OrNull(Type.Number({ description: 'The most attempts per second.' })),
  timeout_seconds: OrNull(Type.Number({ description: 'The time limit of an attempt.' })),
  ca: OrNull(
    Type.Object(
      { subjects: Type.Array(Type.String()), valid_to: Time },
      { description: 'The only authorities that are trusted for its https; the first of them expires at `valid_to`.' },
    ),
  ),
};

/** Splits the limits from the other members of a request. */
export function splitLimits<T extends LimitsBody>(body: T): [LimitsChange, Omit<T, keyof LimitsBody>] {
  const { rate, timeout_seconds: seconds, ca, ...others } = body;
  const timeoutMs = typeof seconds === 'number' ? Seconds(seconds) : seconds;
  return [{ attemptsPerSecond: rate, timeoutMs, ca }, others];
}

/** The limits of a URL. */
export function limitsJson({ attemptsPerSecond, timeoutMs, ca }: WebhookUrl) {
  return {
    rate: attemptsPerSecond,
    timeout_seconds: timeoutMs === null ? null : timeoutMs / Seconds(1),
    ca: ca === null ? null : caJson(ca),
  };
}

function caJson(pem: string) {
  const { subjects, validToMs } = summarizeCa(pem);
  return { subjects, valid_to: formatDate(validToMs) };
}
