/**
 * Defines the body of a notification: a message to a notify URL about a trouble. docs/notification.schema.json is
 * generated from it. Readers must ignore unknown members: a later version may add members, but neither removes nor
 * changes any.
 */
import { type Static, Type } from 'typebox';

const Time = Type.String({ format: 'date-time' });
const MaybeTime = Type.Unsafe<string | null>({ anyOf: [Time, { type: 'null' }] });

function oneOf<Word extends string>(words: readonly Word[], description: string) {
  return Type.Unsafe<Word>({ type: 'string', enum: [...words], description });
}

/** The members of every message. */
const head = {
  message_id: Type.String({ description: 'The same on every attempt, and the same as the header webhook-id.' }),
  text: Type.String({ description: 'A sentence for people.' }),
};
const times = {
  opened_at: Type.String({ ...Time, description: 'When it began.' }),
  resolved_at: Type.Unsafe<string | null>({ ...MaybeTime, description: 'When it ended; null while it goes on.' }),
};

const NoticeNotification = Type.Object(
  {
    type: oneOf(['notice.opened', 'notice.resolved'], 'Whether the notice opens or has ended.'),
    ...head,
    notice_id: Type.Unsafe<number | null>({
      anyOf: [{ type: 'integer' }, { type: 'null' }],
      description: 'Its id in `lockgate notices`; null if it was deleted.',
    }),
    kind: Type.String({ description: 'The kind of the notice, such as url-disabled.' }),
    subject: Type.String({ description: 'What it is about: a URL’s id, a MAC, a resource.' }),
    ...times,
  },
  { title: 'NoticeNotification', description: 'To operators: a notice.' },
);

const WebhookNotification = Type.Object(
  {
    type: oneOf(
      ['webhook.failing', 'webhook.disabled', 'webhook.working', 'webhook.enabled', 'webhook.removed'],
      '`working` ends `failing`, `enabled` ends `disabled`, `removed` ends both.',
    ),
    ...head,
    webhook_id: Type.Integer({ description: 'The id of the webhook URL, as in GET /v1/webhooks.' }),
    origin: Type.String({ description: 'Its scheme, host and port.' }),
    ...times,
  },
  {
    title: 'WebhookNotification',
    description: 'To a merchant: one of its webhook URLs is in trouble, or works again.',
  },
);

const TestNotification = Type.Object(
  { type: oneOf(['test'], 'A test of the notify URL.'), ...head },
  { title: 'TestNotification', description: 'Sent on request, to try the notify URL.' },
);

/** The schema of every body. */
export const NOTIFICATION_SCHEMAS = [NoticeNotification, WebhookNotification, TestNotification] as const;

export type NotificationBody =
  | Static<typeof NoticeNotification>
  | Static<typeof WebhookNotification>
  | Static<typeof TestNotification>;

/** The JSON Schema of a notification's body (draft 2020-12), as the text of a file. */
export function notificationSchemaText(): string {
  const document = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Notification',
    description: 'The body of a message to a notify URL, by its type. Ignore unknown members.',
    oneOf: NOTIFICATION_SCHEMAS,
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}
