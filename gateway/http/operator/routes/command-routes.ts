/**
 * The operators' routes for commands (interfaces.md §4): send, list, show, cancel; and the size of a merchant's fleet,
 * all of its locks.
 */
import { Type } from 'typebox';

import { formatMac } from '../../../../proto/wire/mac.js';
import { COMMAND_TYPES } from '../../../../proto/wire/ping-from-json.js';
import type { AuditDetails } from '../../../audit/audit.js';
import { readCommandRequest } from '../../../commands/command-input.js';
import { DEFAULT_LISTED, MAX_LISTED, MAX_MACS_PER_REQUEST } from '../../../commands/command-terms.js';
import type { CommandOutcome, Commands } from '../../../commands/commands.js';
import { COMMAND_STATES, type CommandFilter } from '../../../store/contract/command-record.js';
import { noSuchDevice } from '../../../store/contract/errors.js';
import type { Store } from '../../../store/contract/store.js';
import { commandRecordJson } from '../../shared/command-json.js';
import { countOf, pick } from '../json/audit-terms.js';
import { CommandAnswer } from '../json/command.js';
import { cutPage, NextCursor, nextCursor, pageQuery, readPage } from '../page.js';
import { textOf, wordOf } from '../query.js';
import { type Query, type Route, type RouteRequest, readMac } from '../routes.js';
import { Count, DateText, Described, Exact, MacText, Name, OneMac, OneOf } from '../schemas.js';

/**
 * The body of `POST /commands`. Which members are allowed together depends on the type, which commands/command-input.ts
 * validates; this schema only documents the members.
 */
const NewCommand = Exact({
  macs: Type.Optional(Type.Array(MacText, { minItems: 1, maxItems: MAX_MACS_PER_REQUEST })),
  merchant: Type.Optional(Name),
  all: Type.Optional(Type.Boolean({ description: 'True, together with merchant: all of its locks.' })),
  expected_count: Type.Optional(Type.Integer({ description: 'The expected number of these locks.' })),
  type: OneOf(COMMAND_TYPES),
  parameters: Type.Optional(Described('The parameters of the type (see lockgate command send --help).')),
  expires_in: Type.Optional(Type.Number({ description: 'Seconds.' })),
  not_before: Type.Optional(Type.Union([DateText, Type.Null()])),
  confirm_airplane: Type.Optional(Type.Boolean()),
  asked_by: Type.Optional(Type.String()),
});
/** The refusal for one lock; the command may have been accepted for others. */
const RefusedCommand = Type.Object({
  mac: MacText,
  error: Type.Object({ code: Type.String(), detail: Type.String() }),
});

/** The target for the audit log: the MAC of a single lock, or the merchant. */
function targetOf({ body }: RouteRequest): string {
  const { macs, merchant } = body as { macs?: string[]; merchant?: string };
  const [only, ...others] = macs ?? [];
  if (only !== undefined && others.length === 0) return formatMac(readMac(only));
  return merchant ?? '';
}

/** What the audit log records: the request, and how many locks refused it. */
function requestDetails({ body }: RouteRequest, answer?: AuditDetails): AuditDetails {
  const commands = (answer?.commands ?? []) as readonly { id?: number; error?: unknown }[];
  return {
    ...pick(body, 'type', 'parameters', 'not_before', 'expires_in', 'asked_by'),
    locks: countOf(answer, 'commands') ?? countOf(body as AuditDetails, 'macs'),
    ...(commands.length === 1 && { id: commands[0]?.id }),
    refused: commands.filter(({ error }) => error !== undefined).length,
  };
}

/** Every route for commands. */
export const COMMAND_ROUTES: readonly Route[] = [
  {
    method: 'POST',
    path: '/commands',
    summary: 'Sends a command to locks, or to all of a merchant’s; returns the outcome for each.',
    operation: 'command.send',
    success: 201,
    body: NewCommand,
    isBodyCheckedByHandler: true,
    answer: Type.Object({ commands: Type.Array(Type.Union([CommandAnswer, RefusedCommand])) }),
    audit: { object: targetOf, after: requestDetails },
    handle: async ({ commands, clock }, { body }) => {
      const outcomes = await commands.send(readCommandRequest(body, clock.now()));
      return { commands: outcomes.map((outcome) => outcomeJson(outcome, commands)) };
    },
  },
  {
    method: 'GET',
    path: '/commands',
    summary: 'Lists commands, newest first, optionally of one lock or in one state, page by page.',
    operation: 'command.list',
    success: 200,
    query: Exact({
      mac: OneMac,
      state: Type.Optional(OneOf(COMMAND_STATES)),
      ...pageQuery(MAX_LISTED, DEFAULT_LISTED),
    }),
    answer: Type.Object({ commands: Type.Array(CommandAnswer), next_cursor: NextCursor }),
    handle: async ({ store, commands }, { query }) => {
      const filter = await readFilter(store, query);
      const listKey = `commands ${JSON.stringify(filter)}`;
      const { limit, after } = readPage(query, listKey, ['number'], DEFAULT_LISTED);
      const beforeId = after?.[0] as number | undefined;
      const found = await store.commands.list({ ...filter, beforeId, limit: limit + 1 });
      const { shown, end } = cutPage(found, limit, ({ id }) => [id]);
      return {
        commands: shown.map((record) => commandRecordJson(record, commands.waitOf(record))),
        next_cursor: nextCursor(listKey, end),
      };
    },
  },
  {
    method: 'GET',
    path: '/commands/:id',
    summary: 'One command: its state, and what it is waiting for.',
    operation: 'command.show',
    success: 200,
    answer: CommandAnswer,
    handle: async ({ commands }, { params }) => {
      const record = await commands.find(readId(params.id));
      return commandRecordJson(record, commands.waitOf(record));
    },
  },
  {
    method: 'POST',
    path: '/commands/:id/cancel',
    summary: 'Cancels a command that has not been sent.',
    operation: 'command.cancel',
    success: 200,
    answer: CommandAnswer,
    audit: { object: ({ params }) => params.id ?? '', after: (_request, answer) => pick(answer, 'mac', 'type') },
    handle: async ({ commands }, { params }) => commandRecordJson(await commands.cancel(readId(params.id)), null),
  },
  {
    method: 'GET',
    path: '/merchants/:name/fleet',
    summary: 'The number of a merchant’s locks, as a command for all of them must state it.',
    operation: 'merchant.show-fleet',
    success: 200,
    answer: Type.Object({ merchant: Type.String(), locks: Count }),
    handle: async ({ commands }, { params }) => {
      const merchant = params.name ?? '';
      return { merchant, locks: (await commands.fleetOf(merchant)).length };
    },
  },
];

/** The outcome for one lock: the command, or why it was refused. */
function outcomeJson(outcome: CommandOutcome, commands: Commands): object {
  const mac = formatMac(outcome.mac);
  if ('record' in outcome) return commandRecordJson(outcome.record, commands.waitOf(outcome.record));
  return { mac, error: { code: outcome.refusal.code, detail: outcome.refusal.message } };
}

async function readFilter(store: Store, query: Query): Promise<Pick<CommandFilter, 'deviceId' | 'state'>> {
  const macText = textOf(query, 'mac');
  const mac = macText === undefined ? undefined : readMac(macText);
  const device = mac === undefined ? undefined : await store.findDevice(mac);
  if (mac !== undefined && device === null) throw noSuchDevice(mac);
  const state = wordOf(query, 'state', COMMAND_STATES);
  return { deviceId: device?.device.id, state };
}

/** Reads a command's id, of 32 bits and so at most 10 digits; 0, which no command has, if the text is malformed. */
function readId(text: string | undefined): number {
  return /^\d{1,10}$/.test(text ?? '') ? Number(text) : 0;
}
