/** The route for a lock's power states and connections over time, which timelines show (interfaces.md §2). */
import { type Static, Type } from 'typebox';
import { POWER_MODEL } from '../../../../../proto/power/model.js';
import { type MerchantRoute, problemResponse } from '../../route.js';
import { nullable } from '../lock-json.js';
import { findOwnLock, MacParam, NO_SUCH_LOCK, ownDataRoute } from '../own-data-route.js';
import { readLockHistory } from './history-read.js';
import { merchantReader, readSpan } from './ping-read.js';

const TIME = { type: 'string', format: 'date-time' };
const HistoryQuery = Type.Object({
  from: Type.Optional(Type.String({ description: 'What the gateway received at this time or later, RFC 3339.' })),
  to: Type.Optional(Type.String({ description: 'What the gateway received before this time, RFC 3339.' })),
});

export const HistorySchema = Type.Object(
  {
    states: Type.Array(
      Type.Object({
        state: Type.Unsafe<string>({ type: 'string', enum: POWER_MODEL.states.map(({ state }) => state) }),
        since: Type.String({ format: 'date-time' }),
      }),
      { description: 'The power state at the start of the span, and each later one; oldest first.' },
    ),
    connections: Type.Array(
      Type.Object({
        from: Type.String({ format: 'date-time' }),
        to: nullable<string>(TIME, 'Null while it lasts.'),
        cause: nullable<string>({ type: 'string' }, 'Why it ended, such as `closed` or `dropped`.'),
      }),
      { description: 'The connections that reach into the span; oldest first.' },
    ),
    complete_from: nullable<string>(TIME, 'Null if the whole span is there; otherwise ask for earlier with `to`.'),
  },
  { title: 'LockHistory', description: 'The power states and connections of a lock, by the gateway’s clock.' },
);

const EXAMPLE: Static<typeof HistorySchema> = {
  states: [{ state: 'MID', since: '2026-11-20T05:59:58.120Z' }],
  connections: [{ from: '2026-11-20T05:59:57.900Z', to: '2026-11-20T06:00:41.080Z', cause: 'closed' }],
  complete_from: null,
};

/** A lock's past. */
export const HISTORY_ROUTES: readonly MerchantRoute[] = [
  ownDataRoute({
    method: 'GET',
    path: '/v1/locks/{mac}/history',
    operationId: 'getLockHistory',
    tag: 'locks',
    keyScope: 'locks:read',
    summary: 'A lock’s power states and connections over time.',
    description: 'As its messages showed them, since the lock became yours.',
    params: Type.Object({ mac: MacParam }),
    query: HistoryQuery,
    responses: {
      200: { description: 'The history.', schema: HistorySchema, example: EXAMPLE },
      400: problemResponse('A parameter is not valid.'),
      404: NO_SUCH_LOCK,
    },
    handle: async (call) => {
      const { device } = await findOwnLock(call);
      const nowMs = call.parts.ownData.runClock.now();
      return { status: 200, body: await readLockHistory(merchantReader(call), device.id, readSpan(call), nowMs) };
    },
  }),
];
