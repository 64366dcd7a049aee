/**
 * The operators' routes for notices, sentences about what needs an operator's attention: list them, mark them as read.
 */
import { Type } from 'typebox';

import { LockgateError } from '../../../../proto/errors.js';
import { toDate } from '../../../../proto/wire/ping-json.js';
import {
  NOTICE_KINDS,
  type Notice,
  type NoticeCursor,
  type NoticeFilter,
} from '../../../store/contract/notice-store.js';
import { pick } from '../json/audit-terms.js';
import { limitOf, readDate, textOf, wordOf } from '../query.js';
import type { OperatorParts, Query, Route } from '../routes.js';
import { withBody } from '../routes.js';
import { Count, DateText, Exact, Limit, MaybeText, MaybeTime, OneOf, Time } from '../schemas.js';

/** The number of notices in one answer: by default, and at most. */
const DEFAULT_LISTED = 50;
const MAX_LISTED = 500;
/** Maximum number of notices that one call marks by id. */
const MAX_MARKED_IDS = 1_000;

const Notices = Type.Object({
  notices: Type.Array(
    Type.Object({
      id: Type.Integer(),
      kind: OneOf(NOTICE_KINDS),
      subject: Type.String(),
      text: Type.String(),
      count: Count,
      at: Time,
      last_at: Time,
      read_at: MaybeTime,
      resolved_at: MaybeTime,
    }),
  ),
  next: MaybeText,
  unread: Count,
});
const ListQuery = Exact({
  unread: Type.Optional(OneOf(['true', 'false'])),
  kind: Type.Optional(OneOf(NOTICE_KINDS)),
  since: Type.Optional(DateText),
  cursor: Type.Optional(Type.String()),
  limit: Limit(MAX_LISTED, DEFAULT_LISTED),
});
const ReadRequest = Exact({
  ids: Type.Optional(Type.Array(Type.Integer({ minimum: 1 }), { minItems: 1, maxItems: MAX_MARKED_IDS })),
  all: Type.Optional(Type.Literal(true)),
});

/** Every route for notices. */
export const NOTICE_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/notices',
    summary: 'Lists notices, latest first; `next` is the cursor of the next page.',
    operation: 'notice.list',
    success: 200,
    query: ListQuery,
    answer: Notices,
    handle: showNotices,
  },
  {
    method: 'POST',
    path: '/notices/read',
    operation: 'notice.read',
    summary: 'Marks notices as read, by id or all of them.',
    success: 200,
    answer: Type.Object({ read: Count }),
    audit: { object: () => '', after: ({ body }, answer) => ({ ...pick(body, 'all'), ...pick(answer, 'read') }) },
    ...withBody(ReadRequest, async ({ notices }, { ids, all }) => {
      if ((ids === undefined) === (all === undefined))
        throw new LockgateError('input-notices', 'expected either "ids" with a list, or "all" with true');
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

/** @throws LockgateError `input-date`, `input-cursor` */
function readFilter(query: Query): NoticeFilter {
  const unread = textOf(query, 'unread');
  return {
    unread: unread === undefined ? undefined : unread === 'true',
    kind: wordOf(query, 'kind', NOTICE_KINDS),
    sinceMs: readDate('since', textOf(query, 'since')),
    after: readCursor(textOf(query, 'cursor')),
    limit: limitOf(query, DEFAULT_LISTED),
  };
}

/** Reads a cursor: the time and the id of the last notice of the previous page. @throws LockgateError `input-cursor` */
function readCursor(text: string | undefined): NoticeCursor | undefined {
  if (text === undefined) return undefined;
  const [, lastAtMs, id] = /^(\d{1,15})-(\d{1,15})$/.exec(text) ?? [];
  if (id !== undefined) return { lastAtMs: Number(lastAtMs), id: Number(id) };
  throw new LockgateError(
    'input-cursor',
    `cursor is ${JSON.stringify(text.slice(0, 80))}: expected the "next" of an earlier answer`,
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
