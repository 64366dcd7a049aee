/** The JSON of where notifications go, and how sending goes, in answers for operators. */
import { Type } from 'typebox';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import type { RecipientReading } from '../../../notify/notifier.js';
import type { AttemptResult } from '../../../webhooks/sending/attempt.js';
import { Count, MaybeText, MaybeTime, OneOf, OrNull, Time } from '../schemas.js';
import { originOf } from './audit-terms.js';

/** A recipient of notifications. */
export const RecipientAnswer = Type.Object({
  origin: Type.String({ description: 'Scheme, host and port of the notify URL.' }),
  state: OneOf(['new', 'working', 'failing'], '`new`: nothing was sent yet. Otherwise how the last attempt went.'),
  pending: Type.Integer({ minimum: 0, description: 'Messages that will be sent.' }),
  dead: Type.Integer({ minimum: 0, description: 'Messages whose attempts have all failed.' }),
  last_success_at: MaybeTime,
  last_error: OrNull(Type.Object({ at: Time, status: OrNull(Type.Integer()), error: Type.String() })),
  old_secrets_until: Type.Array(Time, { description: 'Until when each older secret also signs.' }),
});

/** The answer to a new secret. */
export const NotifySecretAnswer = Type.Object({ notify_secret: Type.String(), old_secrets_until: Type.Array(Time) });

/** The answer to a test. */
export const NotifyTestAnswer = Type.Object({
  origin: Type.String(),
  status: OrNull(Type.Integer({ description: 'The HTTP status; null if there was no answer.' })),
  duration_ms: OrNull(Count),
  error: MaybeText,
});

export function recipientJson(recipient: RecipientReading) {
  const { url, pending, dead, lastSuccessAtMs, lastError, oldSecretsUntilMs } = recipient;
  return {
    origin: originOf(url) ?? '',
    state: stateOf(recipient),
    pending,
    dead,
    last_success_at: lastSuccessAtMs === null ? null : formatDate(lastSuccessAtMs),
    last_error: lastError && { at: formatDate(lastError.atMs), status: lastError.status, error: lastError.error },
    old_secrets_until: oldSecretsUntilMs.map(formatDate),
  };
}

function stateOf({ lastSuccessAtMs, lastError }: RecipientReading): 'new' | 'working' | 'failing' {
  if (lastError !== null && lastError.atMs >= (lastSuccessAtMs ?? 0)) return 'failing';
  return lastSuccessAtMs === null ? 'new' : 'working';
}

/** The result of a test. The duration for a refused address is left out: it would reveal what listens there. */
export function testedJson({ url, status, durationMs, error, isAddressRefused }: AttemptResult & { url: string }) {
  return { origin: originOf(url) ?? '', status, duration_ms: isAddressRefused ? null : durationMs, error };
}
