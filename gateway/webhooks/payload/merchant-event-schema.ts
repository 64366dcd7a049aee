/**
 * Defines the bodies of webhooks for events that are not pings: the end of a command, a lock late or back, its battery
 * low or charged (docs/webhooks.md, "What your URL gets"). Readers must ignore unknown members, as in the bodies of
 * pings.
 */
import { type Static, Type } from 'typebox';
import { COMMAND_TYPES } from '../../../proto/wire/ping-from-json.js';
import type { MerchantEventType } from '../../store/contract/webhooks/merchant-event.js';
import { DATE, head } from './schema.js';

/** The states in which a command ends. */
const ENDS = ['done', 'rejected', 'failed', 'expired', 'cancelled'] as const;
export type CommandEnd = (typeof ENDS)[number];

function word<Word extends string>(words: readonly Word[], description: string) {
  return Type.Unsafe<Word>({ type: 'string', enum: [...words], description });
}

/** The members of every such body, before and after its own. */
function first<Name extends MerchantEventType>(type: Name) {
  return {
    event_id: head.event_id,
    type: Type.Literal(type, { description: 'Determines the other members. Pings have ping_type instead.' }),
    mac_addr: head.mac_addr,
    date: Type.String({ description: 'When it happened, by lockgate’s clock.', ...DATE }),
  };
}
const last = {
  test: Type.Boolean({ description: 'Always false.' }),
  simulated: Type.Boolean({ description: 'The lock is simulated.' }),
};

const CommandWebhook = Type.Object(
  {
    ...first('command'),
    command_id: Type.Integer({ description: 'The id of the command.', minimum: 1 }),
    command: word(COMMAND_TYPES, 'The type of the command.'),
    parameters: Type.Unsafe<Record<string, unknown>>({
      type: 'object',
      description: 'The parameters of the command, by its type.',
    }),
    state: word(ENDS, 'How it ended. A command that expired may still be answered: a second event then says so.'),
    detail: Type.String({ description: 'The lock’s reason; empty if there is none.' }),
    asked_by: Type.String({ description: 'Who asked for it.' }),
    created_at: Type.String({ description: 'When lockgate accepted it.', ...DATE }),
    first_sent_at: Type.Union([Type.String(DATE), Type.Null()], {
      description: 'When it was first sent to the lock; null if it never was.',
    }),
    sent_count: Type.Integer({ description: 'How often it was sent.', minimum: 0 }),
    ...last,
  },
  { title: 'CommandWebhook', description: 'A command to a lock has ended.' },
);

const PresenceWebhook = Type.Object(
  {
    ...first('presence'),
    presence: word(['late', 'back'], 'late: silent although it should have connected; back: no longer late.'),
    late_since: Type.String({
      description: 'Since when it is late; of a lock that is back, since when it was.',
      ...DATE,
    }),
    ...last,
  },
  { title: 'PresenceWebhook', description: 'A lock is late, or back.' },
);

const BatteryWebhook = Type.Object(
  {
    ...first('battery'),
    battery: word(['low', 'charged'], 'low: below 10 %, so the lock only reports thefts; charged: no longer.'),
    battery_percent: Type.Integer({ description: 'The charge that the lock reported.', minimum: 0 }),
    ...last,
  },
  { title: 'BatteryWebhook', description: 'The battery of a lock is low, or charged again.' },
);

/** The body of each type. */
export const MERCHANT_EVENT_SCHEMAS = [CommandWebhook, PresenceWebhook, BatteryWebhook] as const;

export type MerchantEventPayload =
  | Static<typeof CommandWebhook>
  | Static<typeof PresenceWebhook>
  | Static<typeof BatteryWebhook>;
