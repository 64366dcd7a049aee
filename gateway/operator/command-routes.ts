/** The operator's routes for commands (interfaces.md §4): send, list, show, cancel, and how large a fleet is. */
import { Type } from 'typebox';
import { LockgateError } from '../../proto/errors.js';
import { formatMac } from '../../proto/mac.js';
import { readCommandRequest } from '../commands/command-input.js';
import { LISTED, LISTED_MOST } from '../commands/command-terms.js';
import type { CommandOutcome, Commands } from '../commands/commands.js';
import { COMMAND_STATES, type CommandFilter, type CommandState } from '../store/command-record.js';
import { noSuchDevice } from '../store/registry-tables.js';
import type { Store } from '../store/store.js';
import { commandRecordJson } from './command-json.js';
import { type Query, type Route, readMac } from './routes.js';

/** Every route for commands. */
export const COMMAND_ROUTES: readonly Route[] = [
  {
    method: 'POST',
    path: '/commands',
    summary: 'Sends a command to locks, or to all of a merchant’s; answers what became of it for each.',
    success: 201,
    body: Type.Object({}),
    handle: async ({ commands, clock }, { body }) => {
      const outcomes = await commands.send(readCommandRequest(body, clock.now()));
      return { commands: outcomes.map((outcome) => outcomeJson(outcome, commands)) };
    },
  },
  {
    method: 'GET',
    path: '/commands',
    summary: 'Commands, the newest first: of some lock, in some state.',
    success: 200,
    handle: async ({ store, commands }, { query }) => {
      const records = await store.commands.list(await readFilter(store, query));
      return { commands: records.map((record) => commandRecordJson(record, commands.waitOf(record))) };
    },
  },
  {
    method: 'GET',
    path: '/commands/:id',
    summary: 'One command: where it stands, and what it waits for.',
    success: 200,
    handle: async ({ commands }, { params }) => {
      const record = await commands.find(readId(params.id));
      return commandRecordJson(record, commands.waitOf(record));
    },
  },
  {
    method: 'POST',
    path: '/commands/:id/cancel',
    summary: 'Takes a command back that has not been sent.',
    success: 200,
    handle: async ({ commands }, { params }) => commandRecordJson(await commands.cancel(readId(params.id)), null),
  },
  {
    method: 'GET',
    path: '/merchants/:name/fleet',
    summary: 'How many locks a merchant has: what a command for all of them must say.',
    success: 200,
    handle: async ({ commands }, { params }) => {
      const merchant = params.name ?? '';
      return { merchant, locks: (await commands.fleetOf(merchant)).length };
    },
  },
];

function outcomeJson(outcome: CommandOutcome, commands: Commands): object {
  const mac = formatMac(outcome.mac);
  if ('record' in outcome) return commandRecordJson(outcome.record, commands.waitOf(outcome.record));
  return { mac, error: { code: outcome.refusal.code, detail: outcome.refusal.message } };
}

async function readFilter(store: Store, query: Query): Promise<CommandFilter> {
  const macs = query.mac;
  const mac = macs === undefined ? undefined : readMac(typeof macs === 'string' ? macs : (macs[0] ?? ''));
  const device = mac === undefined ? undefined : await store.findDevice(mac);
  if (mac !== undefined && device === null) throw noSuchDevice(mac);
  return { deviceId: device?.device.id, state: readState(query.state), limit: readLimit(query.limit) };
}

function readState(text: Query[string]): CommandState | undefined {
  if (text === undefined) return undefined;
  const state = COMMAND_STATES.find((each) => each === text);
  if (state !== undefined) return state;
  throw new LockgateError('input-state', `state is ${JSON.stringify(text)}: expected ${COMMAND_STATES.join(', ')}`);
}

function readLimit(text: Query[string]): number {
  if (text === undefined) return LISTED;
  const limit = Number(text);
  if (/^\d{1,6}$/.test(String(text)) && limit >= 1 && limit <= LISTED_MOST) return limit;
  throw new LockgateError('input-limit', `limit is ${JSON.stringify(text)}: expected a number, 1 to ${LISTED_MOST}`);
}

/** An id that can't be one names no command. */
function readId(text: string | undefined): number {
  return /^\d{1,10}$/.test(text ?? '') ? Number(text) : 0;
}
