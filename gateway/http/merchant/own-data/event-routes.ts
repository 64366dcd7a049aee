/** The route for a merchant's events: the bodies that its webhooks get, read from a cursor on (interfaces.md §2). */
import { Type } from 'typebox';
import { type Milliseconds, Seconds, systemClock } from '../../../../proto/clock.js';
import { LockgateError } from '../../../../proto/errors.js';
import { isReason } from '../../../../proto/wire/reasons.js';
import { OverBudget } from '../../../fairness/over-budget.js';
import { decodePosition, encodePosition } from '../../../store/contract/log/log-position.js';
import {
  type EventPage,
  type EventPageTerms,
  type EventPlace,
  OLDEST_PLACE,
  readEventPage,
} from '../../../webhooks/event-page.js';
import { MAX_WAITING_PER_MERCHANT } from '../../../webhooks/new-event-signal.js';
import { PAYLOAD_SCHEMAS } from '../../../webhooks/payload/schema.js';
import { inputRefusal, Refusal } from '../refusal.js';
import { type Call, type HttpAnswer, type MerchantRoute, Problem, problemResponse } from '../route.js';
import { encodeCursor, MAX_CURSOR_CHARS, type Position } from './cursor.js';
import { DEFAULT_LIMIT, LIMIT_QUERY, linkTo, listText, readCursor, wrongCursor } from './list.js';
import { PING_EXAMPLE } from './lock-example.js';
import { ownDataRoute } from './own-data-route.js';

const MAX_WAIT_SECONDS = 30;
/** The shortest time between two reads of a call that waits. */
const MIN_READ_DISTANCE: Milliseconds = 50;
const PING_TYPES = ['cellular', 'gps', 'close_connection'];

const Query = Type.Object({
  after: Type.Optional(
    Type.String({
      maxLength: MAX_CURSOR_CHARS,
      description: 'The `next_cursor` of an earlier answer; without it, the oldest stored event is the first.',
    }),
  ),
  cursor: Type.Optional(
    Type.String({ maxLength: MAX_CURSOR_CHARS, description: 'Another name for `after`, as other lists have it.' }),
  ),
  types: Type.Optional(
    Type.Array(Type.String(), { description: 'Only pings of these types: cellular, gps, close_connection.' }),
  ),
  reasons: Type.Optional(Type.Array(Type.String(), { description: 'Only pings with these reasons.' })),
  limit: LIMIT_QUERY,
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_WAIT_SECONDS,
      default: 0,
      description: 'How many seconds the answer may wait for an event if there is none yet.',
    }),
  ),
});

const Events = Type.Object({
  data: Type.Array(Type.Unsafe({ anyOf: PAYLOAD_SCHEMAS }), { description: 'Webhook bodies, oldest first.' }),
  next_cursor: Type.String({ description: 'The `after` of the next call; also if there was no event.' }),
});

const EXAMPLE = { data: [PING_EXAMPLE], next_cursor: 'kQm3Jx2dWzQxMiwxNzYzNjIwMjAwMDAwXQ' };

/** A merchant's events. */
export const EVENT_ROUTES: readonly MerchantRoute[] = [
  ownDataRoute({
    method: 'GET',
    path: '/v1/events',
    operationId: 'listEvents',
    tag: 'events',
    keyScope: 'locks:read',
    summary: 'Returns the events that webhooks bring, oldest first, from a cursor on.',
    description:
      'Whoever lost webhooks reads them here. Call it again with `after` set to the last `next_cursor`: every event ' +
      'comes once, in the order of its lock. With `wait` the answer waits until there is an event. Test webhooks are ' +
      `left out. At most ${MAX_WAITING_PER_MERCHANT} calls of a merchant wait at the same time.`,
    query: Query,
    responses: {
      200: {
        description: 'The events; none if nothing is new.',
        schema: Events,
        example: EXAMPLE,
        headers: { link: { description: 'The next page, with `rel="next"`.', type: 'string' } },
      },
      400: problemResponse('A parameter is not valid.'),
      410: {
        description: 'Events after the cursor were deleted for their age; `oldest_cursor` starts at the oldest one.',
        schema: Type.Object({ ...Problem.properties, oldest_cursor: Type.String() }),
        isProblem: true,
      },
    },
    handle: answerEvents,
  }),
];

async function answerEvents(call: Call): Promise<HttpAnswer> {
  const { parts, merchantId, signal, query } = call;
  const { types, reasons, limit = DEFAULT_LIMIT, wait = 0 } = query as EventQuery;
  // A cursor is a place in the log, which has the uplinks of all merchants, so the list's name includes the merchant.
  const listKey = `events ${merchantId}`;
  const filter: EventPageTerms['filter'] = {
    types: readWords('types', types, (word) => PING_TYPES.includes(word), PING_TYPES.join(', ')),
    reasons: readWords('reasons', reasons, isReason, 'reasons such as REASON_THEFT'),
  };
  const terms: EventPageTerms = { filter, limit, turns: parts.ownData.readTurns, signal };
  let place = placeOf(query as EventQuery, listKey);
  const read = async (): Promise<EventPage> => {
    const page = await readEventPage(parts, merchantId, place, terms).catch((error: unknown) => {
      throw goneIfSwept(error, listKey);
    });
    place = page.next;
    return page;
  };
  if (wait === 0) return await pageOf(call, listKey, await read());
  const waiting = parts.newEvents.listen(merchantId, Seconds(wait), signal);
  if (waiting === null) throw tooManyWaiting();
  try {
    let page = await read();
    while (page.events.length === 0 && page.isAtEnd && !waiting.isOver()) {
      await call.waitWithoutPlace(() => waiting.next());
      page = await read();
      // Most wake-ups may be for events that the filter leaves out, so reads of one call keep a distance.
      if (page.events.length === 0) await call.waitWithoutPlace(() => pause(MIN_READ_DISTANCE));
    }
    return await pageOf(call, listKey, page);
  } finally {
    waiting.end();
  }
}

interface EventQuery {
  readonly after?: string;
  readonly cursor?: string;
  readonly types?: readonly string[];
  readonly reasons?: readonly string[];
  readonly limit?: number;
  readonly wait?: number;
}

function placeOf({ after, cursor }: EventQuery, listKey: string): EventPlace {
  const name = after === undefined ? 'cursor' : 'after';
  const text = after ?? cursor;
  if (text === undefined) return OLDEST_PLACE;
  if (cursor !== undefined && cursor !== text)
    throw inputRefusal('query', [{ pointer: '/cursor', detail: 'expected the same as after, or only one of them' }]);
  // A position in the log, and the time before which every event has been read (`EventPlace`).
  const [place, completeToMs] = readCursor(name, text, listKey, ['any', 'number']);
  const position = decodePosition(place);
  if (position === undefined) throw wrongCursor(name);
  return { after: position, completeToMs: completeToMs as number };
}

/** The values in the cursor of a place. */
function valuesOf({ after, completeToMs }: EventPlace): Position {
  return [encodePosition(after), completeToMs];
}

/** Returns the words of a parameter; undefined if it has none. @throws Refusal 400 `input-query` */
function readWords(
  name: string,
  texts: readonly string[] = [],
  isValid: (word: string) => boolean,
  expected: string,
): readonly string[] | undefined {
  if (texts.length === 0) return undefined;
  const words = texts.map((word) => word.trim());
  const wrong = words.find((word) => !isValid(word));
  if (wrong === undefined) return words;
  const detail = `expected ${expected}, not ${JSON.stringify(wrong.slice(0, 60))}`;
  throw inputRefusal('query', [{ pointer: `/${name}`, detail }]);
}

/** Returns the refusal 410, with the cursor of the oldest event, if events after a place were deleted; or `error`. */
function goneIfSwept(error: unknown, listKey: string): unknown {
  if (!(error instanceof LockgateError) || error.code !== 'events-gone') return error;
  const oldest = encodeCursor(listKey, valuesOf(OLDEST_PLACE));
  return new Refusal({ status: 410, code: error.code, detail: error.message, members: { oldest_cursor: oldest } });
}

async function pause(milliseconds: Milliseconds): Promise<void> {
  await new Promise<void>((resolve) => systemClock.after(milliseconds, resolve));
}

function tooManyWaiting(): OverBudget {
  const most = `at most ${MAX_WAITING_PER_MERCHANT} of a merchant`;
  const detail = `too many calls wait for events already, ${most}: let one end first`;
  return OverBudget.rate('waiting-calls', detail, Seconds(1));
}

/** The answer with a page of events. Not serialised by the route's schema, since events have several shapes. */
async function pageOf(call: Call, listKey: string, { events, next }: EventPage): Promise<HttpAnswer> {
  const cursor = encodeCursor(listKey, valuesOf(next));
  // The link names the cursor `after`, also if the request called it `cursor`.
  const headers = { link: linkTo(call.url, 'after', cursor, 'cursor') };
  return { status: 200, headers, text: await listText(call, events, (event) => event, { next_cursor: cursor }) };
}
