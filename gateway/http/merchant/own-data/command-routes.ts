/** The routes for commands to a merchant's own locks (interfaces.md §2). */
import { Type } from 'typebox';
import { LockgateError } from '../../../../proto/errors.js';
import { formatMac, parseMac } from '../../../../proto/wire/mac.js';
import { readMerchantCommand } from '../../../commands/command-input.js';
import { digestOf } from '../../../commands/idempotent-calls.js';
import type { CommandRecord, CommandState } from '../../../store/contract/command-record.js';
import { Refusal } from '../refusal.js';
import {
  type Call,
  type CallAudit,
  type HttpAnswer,
  JSON_TYPE,
  type MerchantRoute,
  problemResponse,
  tooLarge,
  WRONG_TYPE,
} from '../route.js';
import { COMMAND_EXAMPLE, Command, CommandBody, commandAnswer, commandJson, StateWord } from './command-json.js';
import { PAGE_QUERY, pageAnswer, pageResponse, readPage } from './list.js';
import { findOwnLock, findQueriedLock, MacParam, NO_SUCH_LOCK, ownDataRoute } from './own-data-route.js';

const MAX_BODY_BYTES = 4 * 1024;
const MAX_IDEMPOTENCY_KEY_CHARS = 255;
/**
 * The route's path, also as the name under which answers to idempotent calls are stored. That name must not contain the
 * lock: the same key with another lock is then the same call with another body, which is refused.
 */
const SEND_PATH = '/v1/locks/{mac}/commands';

const NO_SUCH_COMMAND = problemResponse('The merchant has no such command.');
const IdParam = Type.Object({ id: Type.String({ description: 'The command’s id.' }) });

/** Commands to own locks. */
export const COMMAND_ROUTES: readonly MerchantRoute[] = [
  ownDataRoute({
    method: 'POST',
    path: SEND_PATH,
    operationId: 'sendCommand',
    tag: 'commands',
    keyScope: 'commands',
    summary: 'Sends a command to a lock.',
    description:
      'The answer comes when the command is stored; the lock gets it as soon as it can be reached. With an ' +
      '`Idempotency-Key` a repeated call within 24 h gets the first answer, and the command is sent once.',
    params: Type.Object({ mac: MacParam }),
    headers: Type.Object({
      'idempotency-key': Type.Optional(
        Type.String({ description: `A text of your choice, up to ${MAX_IDEMPOTENCY_KEY_CHARS} characters.` }),
      ),
    }),
    body: CommandBody,
    bodyBytes: MAX_BODY_BYTES,
    bodyExample: { type: 'unlock' },
    responses: {
      202: {
        description: 'The command is stored and will be sent.',
        schema: Command,
        example: COMMAND_EXAMPLE,
        headers: {
          'idempotency-replayed': { description: '`true` if an earlier call got this answer.', type: 'string' },
        },
      },
      400: problemResponse('The body, or the `Idempotency-Key`, is not valid.'),
      404: NO_SUCH_LOCK,
      409: problemResponse(
        'Too many commands wait for the lock, the body lacks `confirm_airplane`, which airplane mode needs, or the ' +
          'first call with this `Idempotency-Key` is not answered yet.',
      ),
      413: tooLarge(MAX_BODY_BYTES),
      415: WRONG_TYPE,
      422: problemResponse('A different call used this `Idempotency-Key` before.'),
    },
    handle: sendCommand,
    audit: auditSent,
  }),
  ownDataRoute({
    method: 'GET',
    path: '/v1/commands',
    operationId: 'listCommands',
    tag: 'commands',
    keyScope: 'commands',
    summary: 'Lists commands, newest first.',
    query: Type.Object({
      mac_addr: Type.Optional(Type.String({ description: 'Only commands to this lock.' })),
      state: Type.Optional(StateWord),
      ...PAGE_QUERY,
    }),
    responses: {
      200: pageResponse('The commands.', Command, COMMAND_EXAMPLE),
      400: problemResponse('A parameter is not valid.'),
      404: NO_SUCH_LOCK,
    },
    handle: listCommands,
  }),
  ownDataRoute({
    method: 'GET',
    path: '/v1/commands/{id}',
    operationId: 'getCommand',
    tag: 'commands',
    keyScope: 'commands',
    summary: 'Returns a command and its state.',
    params: IdParam,
    responses: {
      200: { description: 'The command.', schema: Command, example: COMMAND_EXAMPLE },
      404: NO_SUCH_COMMAND,
    },
    handle: async (call) => commandAnswer(200, call, await findOwnCommand(call)),
  }),
  ownDataRoute({
    method: 'POST',
    path: '/v1/commands/{id}/cancel',
    operationId: 'cancelCommand',
    tag: 'commands',
    keyScope: 'commands',
    summary: 'Cancels a command that has not been sent; may be repeated.',
    params: IdParam,
    responses: {
      200: {
        description: 'The cancelled command.',
        schema: Command,
        example: { ...COMMAND_EXAMPLE, state: 'cancelled', finished_at: '2026-11-20T06:30:05.000Z' },
      },
      404: NO_SUCH_COMMAND,
      409: problemResponse('The command has been sent, or is finished.'),
    },
    handle: async (call) => {
      const record = await findOwnCommand(call);
      // A repeated call gets the same answer.
      if (record.state === 'cancelled') return commandAnswer(200, call, record);
      return commandAnswer(200, call, await call.parts.ownData.commands.cancel(record.id));
    },
    audit: ({ params }) => ({ action: 'command.cancel', object: params.id ?? '', after: null }),
  }),
];

/** Who asks for a command, in words. */
function askedBy({ key, session }: Call): string {
  return session === undefined ? `API key ${key?.publicId} (${key?.name})` : `user ${session.username}`;
}

async function sendCommand(call: Call): Promise<HttpAnswer> {
  const { parts, merchantId, body } = call;
  const { device } = await findOwnLock(call);
  const target = { deviceId: device.id, merchantId, mac: device.mac };
  // Commands are scheduled and expire by the run's clock; stored answers expire by the wall clock.
  const order = readOrder(body, parts.runClock.now(), askedBy(call));
  const idempotencyKey = readIdempotencyKey(call);
  if (idempotencyKey === undefined) return commandAnswer(202, call, await parts.ownData.commands.sendTo(target, order));
  const idempotentCall = {
    merchantId,
    route: `POST ${SEND_PATH}`,
    key: idempotencyKey,
    bodyDigest: digestOf(device.mac, body),
    nowMs: parts.clock.now(),
  };
  const { answer, isRepeat } = await parts.idempotentCalls.once(idempotentCall, async () => {
    // The store asks for the answer once the command has its id, to store both in one transaction.
    let storedAnswer = '';
    const answerOf = (record: CommandRecord): string => {
      storedAnswer = JSON.stringify(commandJson(call, record));
      return storedAnswer;
    };
    await parts.ownData.commands.sendTo(target, order, { call: idempotentCall, answerOf });
    return storedAnswer;
  });
  const headers = isRepeat ? { 'idempotency-replayed': 'true' } : {};
  return { status: 202, headers, text: { type: JSON_TYPE, content: answer } };
}

/** What the audit log records of a sent command; nothing of a repeated call. */
function auditSent({ params }: Call, { body, text, headers }: HttpAnswer): CallAudit | null {
  if (headers?.['idempotency-replayed'] !== undefined) return null;
  const { id, type } = (body ?? JSON.parse(String(text?.content))) as { readonly id: number; readonly type: string };
  const mac = parseMac(params.mac ?? '');
  return { action: 'command.send', object: mac.ok ? formatMac(mac.value) : '', after: { id, type } };
}

/** @throws Refusal 400 `input-command` with a pointer to the wrong member */
function readOrder(body: unknown, nowMs: number, askedBy: string): ReturnType<typeof readMerchantCommand> {
  try {
    return readMerchantCommand(body, nowMs, askedBy);
  } catch (error) {
    if (!(error instanceof LockgateError) || error.code !== 'input-command') throw error;
    const detail = error.message;
    // The sentence starts with the member's path, such as `parameters.seconds`.
    const pointer = `/${(/^\S+/.exec(detail)?.[0] ?? '').replaceAll('.', '/')}`;
    throw new Refusal({ status: 400, code: error.code, detail, faults: [{ pointer, detail }] });
  }
}

/** The caller's idempotency key; undefined if it sent none. @throws Refusal 400 `input-idempotency-key` */
function readIdempotencyKey({ headers }: Call): string | undefined {
  const sentKey = headers['idempotency-key'];
  if (sentKey === undefined) return undefined;
  if (typeof sentKey === 'string' && sentKey !== '' && sentKey.length <= MAX_IDEMPOTENCY_KEY_CHARS) return sentKey;
  const detail = `the header Idempotency-Key is not valid: expected 1 to ${MAX_IDEMPOTENCY_KEY_CHARS} characters`;
  throw new Refusal({ status: 400, code: 'input-idempotency-key', detail });
}

async function listCommands(call: Call): Promise<HttpAnswer> {
  const { parts, merchantId, query } = call;
  const { state } = query as { state?: CommandState };
  const device = (await findQueriedLock(call))?.device;
  // A cursor is valid only for the list and the filters of its first page.
  const listKey = JSON.stringify(['commands', device?.id ?? null, state ?? null]);
  const { limit, after } = readPage(call, listKey, ['number']);
  const beforeId = after?.[0] as number | undefined;
  const found = await parts.store.commands.list({
    merchantId,
    deviceId: device?.id,
    state,
    beforeId,
    limit: limit + 1,
  });
  const shown = found.slice(0, limit);
  const last = shown.at(-1);
  const next = found.length > limit && last !== undefined ? [last.id] : null;
  return pageAnswer(call, listKey, { data: shown.map((record) => commandJson(call, record)), next });
}

/** @throws Refusal 404 `no-such-command`, also for another merchant's command and a malformed id */
async function findOwnCommand({ parts, merchantId, params }: Call): Promise<CommandRecord> {
  // No command has the id 0.
  const id = /^\d{1,10}$/.test(params.id ?? '') ? Number(params.id) : 0;
  const record = await parts.store.commands.find(id);
  if (record?.merchantId === merchantId) return record;
  throw new Refusal({ status: 404, code: 'no-such-command', detail: 'there is no such command' });
}
