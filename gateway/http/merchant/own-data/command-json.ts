/** A command in the merchants' answers, and its schema (interfaces.md §2). */
import { Type } from 'typebox';
import { COMMAND_TYPES } from '../../../../proto/wire/ping-from-json.js';
import { COMMAND_STATES, type CommandRecord, type CommandState } from '../../../store/contract/command-record.js';
import { commandRecordJson } from '../../shared/command-json.js';
import type { Call, HttpAnswer } from '../route.js';

const Time = Type.String({ format: 'date-time' });
const MaybeTime = Type.Unsafe<string | null>({ anyOf: [Time, { type: 'null' }] });
const PARAMETERS_SENTENCE = 'By type; docs/http.md lists them.';
/** The type of a command. */
export const CommandType = Type.Unsafe<string>({ type: 'string', enum: [...COMMAND_TYPES] });
/** The state of a command. */
export const StateWord = Type.Unsafe<CommandState>({ type: 'string', enum: [...COMMAND_STATES] });

/** The body of a call that sends a command. */
export const CommandBody = Type.Object({
  type: CommandType,
  // command-input.ts checks them by the command's type.
  parameters: Type.Optional(Type.Object({}, { description: PARAMETERS_SENTENCE })),
  expires_in: Type.Optional(Type.Number({ description: 'Seconds; from then on the lock does not execute it.' })),
  not_before: Type.Optional(Type.String({ description: 'When it may first be sent (RFC 3339); left out: at once.' })),
  confirm_airplane: Type.Optional(
    Type.Boolean({ description: 'True confirms that airplane mode cuts the lock off until it is ended at the lock.' }),
  ),
});

/** A command in answers. */
export const Command = Type.Object(
  {
    id: Type.Integer(),
    mac_addr: Type.String(),
    type: CommandType,
    parameters: Type.Object({}, { additionalProperties: true, description: PARAMETERS_SENTENCE }),
    state: StateWord,
    detail: Type.String({ description: 'Why the lock rejected the command, or failed; empty if it gave no reason.' }),
    waits: Type.Unsafe({
      anyOf: [Type.Object({ for: Type.String(), text: Type.String(), due_at: MaybeTime }), { type: 'null' }],
      description: 'What an unfinished command waits for.',
    }),
    asked_by: Type.String(),
    created_at: Time,
    not_before: MaybeTime,
    expires_at: Time,
    first_sent_at: MaybeTime,
    last_sent_at: MaybeTime,
    sent_count: Type.Integer({ minimum: 0 }),
    finished_at: MaybeTime,
  },
  { title: 'Command', description: 'A command to a lock, with its state.' },
);

/** An example of a command. */
export const COMMAND_EXAMPLE = {
  id: 7,
  mac_addr: 'A4:C1:38:F0:E1:D2',
  type: 'unlock',
  parameters: {},
  state: 'queued',
  detail: '',
  waits: null,
  asked_by: 'API key 3f9a0c2b7d41 (shop backend)',
  created_at: '2026-11-20T06:30:00.000Z',
  not_before: null,
  expires_at: '2026-11-20T06:32:00.000Z',
  first_sent_at: null,
  last_sent_at: null,
  sent_count: 0,
  finished_at: null,
};

/** The answer with a command. */
export function commandAnswer(status: number, call: Call, record: CommandRecord): HttpAnswer {
  return { status, body: commandJson(call, record) };
}

/** A command in an answer, with what it waits for. */
export function commandJson({ parts }: Call, record: CommandRecord): object {
  const { mac, ...members } = commandRecordJson(record, parts.ownData.commands.waitOf(record));
  const { id, ...others } = members;
  return { id, mac_addr: mac, ...others };
}
