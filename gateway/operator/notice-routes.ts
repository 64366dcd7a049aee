/** The operator's routes for notices: what is new, and that it was read. */
import { Type } from 'typebox';
import { LockgateError } from '../../proto/errors.js';
import { toDate } from '../../proto/ping-json.js';
import {
  NOTICE_KINDS,
  type Notice,
  type NoticeCursor,
  type NoticeFilter,
  type NoticeKind,
} from '../store/notice-store.js';
import { readDate, textOf } from './query.js';
import type { OperatorParts, Query, Route } from './routes.js';
import { withBody } from './routes.js';

/** Notices in one answer, where nobody says otherwise, and at the most. */
const LISTED = 50;
const LISTED_MOST = 500;
/** Notices that one call marks by their ids. */
const MARKED_MOST = 1_000;

const Reading = Type.Object({
  ids: Type.Optional(Type.Array(Type.Integer({ minimum: 1 }), { minItems: 1, maxItems: MARKED_MOST })),
  all: Type.Optional(Type.Literal(true)),
});

/** Every route for notices. */
export const NOTICE_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/notices',
    summary: 'What an operator should know, the latest first; `next` is the cursor of what follows.',
    success: 200,
    handle: showNotices,
  },
  {
    method: 'POST',
    path: '/notices/read',
    summary: 'Marks notices as read, by their ids or all of them.',
    success: 200,
    ...withBody(Reading, async ({ notices }, { ids, all }) => {
      if ((ids === undefined) === (all === undefined))
        throw new LockgateError('input-notices', 'which notices? expected "ids" with a list, or "all" with true');
      return { read: await notices.markRead(ids ?? 'all') };
    }),
  },
];

async function showNotices({ notices }: OperatorParts, { query }: { readonly query: Query }): Promise<unknown> {
  const filter = readFilter(query);
  const listed = await notices.list(filter);
  const last = listed.at(-1);
  const next = last === undefined || listed.length < filter.limit ? null : `${last.lastAtMs}-${last.id}`;
  let unread = 0;
  for (const [, count] of notices.unread()) unread += count;
  return { notices: listed.map(noticeJson), next, unread };
}

/** @throws LockgateError `input-unread`, `input-kind`, `input-date`, `input-limit`, `input-cursor` */
function readFilter(query: Query): NoticeFilter {
  return {
    unread: readUnread(textOf(query, 'unread')),
    kind: readKind(textOf(query, 'kind')),
    sinceMs: readDate('since', textOf(query, 'since')),
    after: readCursor(textOf(query, 'cursor')),
    limit: readLimit(textOf(query, 'limit')),
  };
}

function readUnread(text: string | undefined): boolean | undefined {
  if (text === undefined || text === 'true' || text === 'false')
    return text === undefined ? undefined : text === 'true';
  throw new LockgateError('input-unread', `unread is ${JSON.stringify(text.slice(0, 80))}: expected true or false`);
}

function readKind(text: string | undefined): NoticeKind | undefined {
  const kind = NOTICE_KINDS.find((each) => each === text);
  if (text === undefined || kind !== undefined) return kind;
  const expected = NOTICE_KINDS.join(', ');
  throw new LockgateError('input-kind', `kind is ${JSON.stringify(text.slice(0, 80))}: expected ${expected}`);
}

function readLimit(text: string | undefined): number {
  if (text === undefined) return LISTED;
  const limit = Number(text);
  if (/^\d{1,6}$/.test(text) && limit >= 1 && limit <= LISTED_MOST) return limit;
  const expected = `a number, 1 to ${LISTED_MOST}`;
  throw new LockgateError('input-limit', `limit is ${JSON.stringify(text.slice(0, 80))}: expected ${expected}`);
}

function readCursor(text: string | undefined): NoticeCursor | undefined {
  if (text === undefined) return undefined;
  const [, lastAtMs, id] = /^(\d{1,15})-(\d{1,15})$/.exec(text) ?? [];
  if (id !== undefined) return { lastAtMs: Number(lastAtMs), id: Number(id) };
  throw new LockgateError(
    'input-cursor',
    `cursor is ${JSON.stringify(text.slice(0, 80))}: expected what an earlier answer has as "next"`,
  );
}

function noticeJson(notice: Notice) {
  const { id, kind, subject, text, count, firstAtMs, lastAtMs, readAtMs, resolvedAtMs } = notice;
  return {
    id,
    kind,
    subject,
    text,
    count,
    at: toDate(firstAtMs),
    last_at: toDate(lastAtMs),
    read_at: readAtMs === null ? null : toDate(readAtMs),
    resolved_at: resolvedAtMs === null ? null : toDate(resolvedAtMs),
  };
}
