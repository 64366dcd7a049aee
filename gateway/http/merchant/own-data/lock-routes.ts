/** The routes for a merchant's locks: list, one lock, its name and labels (interfaces.md §2). */
import { type Static, Type } from 'typebox';
import type { Mac } from '../../../../proto/wire/mac.js';
import { readTwin } from '../../../commands/twin.js';
import { type ListedLock, listedLock } from '../../../locks/list/listed-lock.js';
import {
  LISTED_STATES,
  type ListedState,
  PRESENCES,
  type PresenceName,
  parseLabelFilter,
} from '../../../locks/list/lock-filter.js';
import type { ListPosition } from '../../../locks/list/lock-list.js';
import { parseSort, SORTS } from '../../../locks/list/lock-order.js';
import type { Device } from '../../../store/contract/devices/device.js';
import { type Labels, labelsFault, MAX_NAME_CHARS, nameFault } from '../../../store/contract/devices/device-labels.js';
import { inputRefusal } from '../refusal.js';
import { type Call, type MerchantRoute, problemResponse, tooLarge, WRONG_TYPE } from '../route.js';
import type { Position } from './cursor.js';
import { longPageAnswer, PAGE_QUERY, pageResponse, readPage } from './list.js';
import { LOCK_DETAIL_EXAMPLE, LOCK_EXAMPLE } from './lock-example.js';
import { LabelsSchema, LockDetailSchema, LockSchema, lockDetailJson, lockJson } from './lock-json.js';
import { findOwnLock, MacParam, NO_SUCH_LOCK, ownDataRoute } from './own-data-route.js';

/** A name and sixteen labels need about 4 KiB. */
const MAX_BODY_BYTES = 8 * 1024;
const MAX_SEARCH_CHARS = 100;
/** A filter with more labels finds no lock. */
const MAX_LABEL_FILTERS = 16;

const words = <Word extends string>(list: readonly Word[], description: string) =>
  Type.Array(Type.Unsafe<Word>({ type: 'string', enum: [...list] }), { description });

const ListQuery = Type.Object({
  presence: Type.Optional(words<PresenceName>(PRESENCES, 'Only locks with one of these presences.')),
  state: Type.Optional(words<ListedState>(LISTED_STATES, 'Only locks in one of these states.')),
  label: Type.Optional(
    Type.Array(Type.String(), {
      maxItems: MAX_LABEL_FILTERS,
      description: 'Only locks with all of these labels: `key=value`, or `key` for any value.',
    }),
  ),
  search: Type.Optional(
    Type.String({ maxLength: MAX_SEARCH_CHARS, description: 'Part of a MAC, a name or a label, in any case.' }),
  ),
  sort: Type.Optional(
    Type.Unsafe<string>({
      type: 'string',
      enum: [...SORTS],
      default: 'mac',
      description: '`trouble`: what needs attention first; `received`: the last message; `-` reverses an order.',
    }),
  ),
  ...PAGE_QUERY,
});

const Change = Type.Object(
  {
    name: Type.Optional(
      Type.String({ maxLength: MAX_NAME_CHARS, description: 'A new name; an empty one removes it.' }),
    ),
    labels: Type.Optional(LabelsSchema),
  },
  { title: 'LockChange' },
);

const listLocks = ownDataRoute({
  method: 'GET',
  path: '/v1/locks',
  operationId: 'listLocks',
  tag: 'locks',
  keyScope: 'locks:read',
  summary: 'Lists your locks with their present states.',
  description: 'A parameter with several values is repeated, or has them separated by commas.',
  query: ListQuery,
  responses: {
    200: pageResponse('The locks.', LockSchema, LOCK_EXAMPLE),
    400: problemResponse('A parameter is not valid.'),
  },
  handle: async (call) => {
    const { parts, merchantId, query, signal } = call;
    const { lockList, usage } = parts.ownData;
    const { presence: presences, state: states, label, search, sort = 'mac' } = query as Static<typeof ListQuery>;
    const labels = label?.map(parseLabelFilter);
    const asked = { filter: { merchantId, presences, states, labels, search }, order: parseSort(sort) };
    const listKey = `locks ${JSON.stringify(asked)}`;
    const { limit, after } = readPage(call, listKey, ['any', 'string', 'string', 'number']);
    const { locks, next, rows } = await lockList.page(asked, { limit, after: after && toListPosition(after), signal });
    parts.budgets.chargeRows(merchantId, rows);
    return await longPageAnswer(call, listKey, {
      items: locks,
      toJson: (lock) => lockJson(lock, usage.sims.activatedAtMs(lock.device.mac)),
      next: next === null ? null : toPosition(next),
    });
  },
});

/**
 * A place in a list of locks as the values of a cursor: the value that the list is sorted by, the MAC, and the place in
 * an order that the gateway remembers for further pages, if there is one. An empty `orderId` stands for null, so that
 * the value's type is always the same.
 */
function toPosition({ value, mac, orderId, offset }: ListPosition): Position {
  return [value, mac, orderId ?? '', offset];
}

function toListPosition([value, mac, orderId, offset]: Position): ListPosition {
  return {
    value: value as ListPosition['value'],
    mac: mac as Mac,
    orderId: orderId === '' ? null : (orderId as string),
    offset: offset as number,
  };
}

const getLock = ownDataRoute({
  method: 'GET',
  path: '/v1/locks/{mac}',
  operationId: 'getLock',
  tag: 'locks',
  keyScope: 'locks:read',
  summary: 'One lock, with what is believed of it and its twin.',
  params: Type.Object({ mac: MacParam }),
  responses: {
    200: { description: 'The lock.', schema: LockDetailSchema, example: LOCK_DETAIL_EXAMPLE },
    404: NO_SUCH_LOCK,
  },
  handle: async (call) => ({ status: 200, body: await detailOf(call, (await findOwnLock(call)).device) }),
});

const changeLock = ownDataRoute({
  method: 'PATCH',
  path: '/v1/locks/{mac}',
  operationId: 'changeLock',
  tag: 'locks',
  keyScope: 'locks:write',
  summary: 'Changes the name and the labels of a lock, and nothing else.',
  description: 'What is left out stays. `labels` replaces all labels; an empty `name` removes the name.',
  params: Type.Object({ mac: MacParam }),
  body: Change,
  bodyBytes: MAX_BODY_BYTES,
  bodyExample: { name: 'Harbour 7', labels: { city: 'Hamburg' } },
  responses: {
    200: { description: 'The lock.', schema: LockDetailSchema, example: LOCK_DETAIL_EXAMPLE },
    400: problemResponse('The body is not JSON, or the name or a label is not valid.'),
    404: NO_SUCH_LOCK,
    413: tooLarge(MAX_BODY_BYTES),
    415: WRONG_TYPE,
  },
  handle: async (call) => {
    const { parts, body } = call;
    const { name, labels } = body as Static<typeof Change>;
    const { device } = await findOwnLock(call);
    const trimmed = name?.trim();
    checkDescription(trimmed, labels);
    if (trimmed !== undefined || labels !== undefined)
      await parts.ownData.devices.describe(device, { name: trimmed === '' ? null : trimmed, labels });
    return { status: 200, body: await detailOf(call, (await findOwnLock(call)).device) };
  },
  audit: ({ body }, answer) => {
    const { name, labels } = body as Static<typeof Change>;
    return { action: 'device.set', object: (answer.body as { mac_addr: string }).mac_addr, after: { name, labels } };
  },
});

/** @throws Refusal 400 for a bad name or label */
function checkDescription(name: string | undefined, labels: Labels | undefined): void {
  const inName = name === undefined ? undefined : nameFault(name);
  const inLabels = labels === undefined ? undefined : labelsFault(labels);
  const faults = [
    ...(inName === undefined ? [] : [{ pointer: '/name', detail: inName }]),
    ...(inLabels === undefined ? [] : [{ pointer: pointerTo(inLabels.key), detail: inLabels.detail }]),
  ];
  if (faults.length > 0) throw inputRefusal('body', faults);
}

function pointerTo(key: string): string {
  return key === '' ? '/labels' : `/labels/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

async function detailOf({ parts }: Call, device: Device) {
  const { locks, usage, runClock } = parts.ownData;
  // Locks are judged by the run's clock: wall-clock time, except in a sped-up simulation.
  const nowMs = runClock.now();
  const lock: ListedLock = listedLock(device, locks, nowMs);
  const twin = await readTwin(parts.store.commands, device.id, lock.state?.belief, nowMs);
  return lockDetailJson(lock, usage.sims.activatedAtMs(device.mac), twin);
}

/** A merchant's locks. */
export const LOCK_ROUTES: readonly MerchantRoute[] = [listLocks, getLock, changeLock];
