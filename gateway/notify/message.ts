/** Makes the messages of a notification: id, type and body. Pure: every attempt at a message has the same bytes. */
import { formatDate } from '../../proto/wire/ping-json.js';
import { type DueMessage, type EndedHow, OPERATOR_RECIPIENT } from '../store/contract/notify/notification-store.js';
import type { NotificationBody } from './schema.js';

/** A message as it is posted. */
export interface Message {
  /** The webhook-id. */
  readonly id: string;
  readonly body: string;
}

/** The message for what is due: that a trouble opened, or that it ended (`due.part`). */
export function makeMessage(due: DueMessage, recipientId: number): Message {
  const id = `${due.publicId}_${due.part}`;
  const body = recipientId === OPERATOR_RECIPIENT ? noticeBody(id, due) : webhookBody(id, due);
  return { id, body: JSON.stringify(body) };
}

/** A message that only tries the URL. `publicId` makes its id unique. */
export function makeTestMessage(publicId: string): Message {
  const id = `${publicId}_test`;
  const body: NotificationBody = { type: 'test', message_id: id, text: 'A test of this notify URL by lockgate.' };
  return { id, body: JSON.stringify(body) };
}

/** The body of an operators' message: every trouble that operators are notified of is a notice. */
function noticeBody(id: string, due: DueMessage): NotificationBody {
  const { part, kind, subject, text, details } = due;
  const isOpening = part === 'opened';
  return {
    type: isOpening ? 'notice.opened' : 'notice.resolved',
    message_id: id,
    text: isOpening ? text : `Resolved: ${text}`,
    notice_id: details.noticeId ?? null,
    kind,
    subject,
    opened_at: formatDate(due.openedAtMs),
    resolved_at: isOpening ? null : formatDate(due.endedAtMs ?? due.openedAtMs),
  };
}

/** How a merchant's message about the end of a trouble goes on after the name of the webhook URL. */
const ENDED_SENTENCES: Readonly<Record<Exclude<EndedHow, 'resolved'>, string>> = {
  working: 'works again',
  enabled: 'is enabled again: it gets new events, and those stored meanwhile can be recovered',
  removed: 'was removed',
};

/** The body of a merchant's message: its troubles are those of its webhook URLs. */
function webhookBody(id: string, due: DueMessage): NotificationBody {
  const { part, kind, text, details } = due;
  // Both are always set for a webhook URL's trouble.
  const { webhookId = 0, origin = '' } = details;
  const common = { message_id: id, webhook_id: webhookId, origin, opened_at: formatDate(due.openedAtMs) };
  if (part === 'opened') {
    const type = kind === 'webhook-disabled' ? 'webhook.disabled' : 'webhook.failing';
    return { type, text, ...common, resolved_at: null };
  }
  const { endedHow, endedAtMs } = due;
  // A webhook URL's trouble always ends in one of the three ways below.
  const how = endedHow === null || endedHow === 'resolved' ? 'working' : endedHow;
  return {
    type: `webhook.${how}`,
    text: `Webhook URL ${webhookId} (${origin}) ${ENDED_SENTENCES[how]}.`,
    ...common,
    resolved_at: formatDate(endedAtMs ?? due.openedAtMs),
  };
}
