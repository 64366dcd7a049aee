/** The JSON form of a command in the operators' lists and answers, and its schema. Pure. */
import { Type } from 'typebox';
import { commandToJson } from '../../../../proto/trace/writer.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import { COMMAND_TYPES } from '../../../../proto/wire/ping-from-json.js';
import { toDate } from '../../../../proto/wire/ping-json.js';
import type { Wait } from '../../../commands/command-wait.js';
import { COMMAND_STATES, type CommandRecord } from '../../../store/contract/command-record.js';
import { Count, Described, MacText, MaybeText, MaybeTime, OneOf, OrNull, Time } from '../schemas.js';

/** The schema of {@link commandRecordJson}. */
export const CommandAnswer = Type.Object({
  id: Type.Integer(),
  mac: MacText,
  type: OneOf(COMMAND_TYPES),
  parameters: Described('The parameters of this type.'),
  state: OneOf(COMMAND_STATES),
  detail: MaybeText,
  waits: OrNull(Type.Object({ for: Type.String(), text: Type.String(), due_at: MaybeTime })),
  asked_by: Type.String(),
  created_at: Time,
  not_before: MaybeTime,
  expires_at: Time,
  first_sent_at: MaybeTime,
  last_sent_at: MaybeTime,
  sent_count: Count,
  finished_at: MaybeTime,
});

/** A command with its state. Times are by the run's clock. */
export function commandRecordJson(record: CommandRecord, wait: Wait | null): Readonly<Record<string, unknown>> {
  const { type, ...parameters } = commandToJson(record.command);
  return {
    id: record.id,
    mac: formatMac(record.mac),
    type,
    parameters,
    state: record.state,
    detail: record.detail,
    waits: wait === null ? null : waitJson(wait),
    asked_by: record.askedBy,
    created_at: toDate(record.createdAtMs),
    not_before: dateOrNull(record.notBeforeMs),
    expires_at: toDate(record.expiresAtMs),
    first_sent_at: dateOrNull(record.firstSentAtMs),
    last_sent_at: dateOrNull(record.lastSentAtMs),
    sent_count: record.sentCount,
    finished_at: dateOrNull(record.finishedAtMs),
  };
}

function waitJson({ for: reason, text, dueMs }: Wait): object {
  return { for: reason, text, due_at: dueMs === undefined ? null : toDate(dueMs) };
}

function dateOrNull(timeMs: number | null): string | null {
  return timeMs === null ? null : toDate(timeMs);
}
