/** The schema of a command in the operators' lists and answers. */
import { Type } from 'typebox';
import { COMMAND_TYPES } from '../../../../proto/wire/ping-from-json.js';
import { COMMAND_STATES } from '../../../store/contract/command-record.js';
import { Count, Described, MacText, MaybeText, MaybeTime, OneOf, OrNull, Time } from '../schemas.js';

/** The schema of `commandRecordJson` (../../shared/command-json.ts). */
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
