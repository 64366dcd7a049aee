/**
 * The operators' routes for notices, sentences about what needs an operator's attention: list them, mark them as read.
 */
import { Type } from 'typebox';

import { LockgateError } from '../../../../proto/errors.js';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import { OPERATOR_RECIPIENT } from '../../../store/contract/notify/notification-store.js';
import { NOTICE_KINDS, type Notice, type NoticeFilter } from '../../../store/contract/operators/notice-store.js';
import { pick } from '../json/audit-terms.js';
import { NotifySecretAnswer, NotifyTestAnswer, RecipientAnswer, recipientJson, testedJson } from '../json/recipient.js';
import { cutPage, NextCursor, nextCursor, pageQuery, readPage } from '../page.js';
import { readDate, textOf, wordOf } from '../query.js';
import type { OperatorParts, Query, Route } from '../routes.js';
import { withBody } from '../routes.js';
import { Count, DateText, Exact, MaybeTime, OneOf, OrNull, Time } from '../schemas.js';
import { rotateNotifySecret } from './merchant-routes.js';

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
  next_cursor: NextCursor,
  unread: Count,
  sending: OrNull(RecipientAnswer),
});
const ListQuery = Exact({
  unread: Type.Optional(OneOf(['true', 'false'])),
  kind: Type.Optional(OneOf(NOTICE_KINDS)),
  since: Type.Optional(DateText),
  ...pageQuery(MAX_LISTED, DEFAULT_LISTED),
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
    summary: 'Lists notices, latest first, page by page. A notice that occurs again comes first again.',
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
  {
    method: 'POST',
    path: '/notices/rotate-secret',
    operation: 'notice.rotate-secret',
    summary: 'Makes a new secret that signs sent notices, with the old one valid for a while; returns it, once.',
    success: 200,
    answer: NotifySecretAnswer,
    audit: { object: () => '', after: ({ body }) => pick(body, 'grace_seconds') },
    body: Exact({ grace_seconds: Type.Optional(Type.Number()) }),
    handle: (parts, { body }) => rotateNotifySecret(parts, OPERATOR_RECIPIENT, body),
  },
  {
    method: 'POST',
    path: '/notices/test',
    operation: 'notice.test',
    summary: 'Sends a test message to the operators’ notify URL and waits for the answer.',
    success: 200,
    answer: NotifyTestAnswer,
    audit: { object: () => '', after: (_request, answer) => pick(answer, 'status') },
    handle: async ({ notifier }) => testedJson(await notifier.test(OPERATOR_RECIPIENT)),
  },
];

async function showNotices(
  { notices, notifier }: OperatorParts,
  { query }: { readonly query: Query },
): Promise<unknown> {
  const filter = readFilter(query);
  // Without `since`, which people often give as an age, so that it differs from page to page.
  const listKey = `notices ${JSON.stringify([filter.unread ?? null, filter.kind ?? null])}`;
  const { limit, after } = readPage(query, listKey, ['number', 'number'], DEFAULT_LISTED);
  const [lastAtMs, id] = (after ?? []) as number[];
  const cursor = lastAtMs === undefined || id === undefined ? undefined : { lastAtMs, id };
  const found = await notices.list({ ...filter, after: cursor, limit: limit + 1 });
  const { shown, end } = cutPage(found, limit, (notice) => [notice.lastAtMs, notice.id]);
  let unread = 0;
  for (const [, count] of notices.unread()) unread += count;
  const [recipient] = await notifier.read(OPERATOR_RECIPIENT);
  const sending = recipient === undefined ? null : recipientJson(recipient);
  return { notices: shown.map(noticeJson), next_cursor: nextCursor(listKey, end), unread, sending };
}

/** @throws LockgateError `input-date` */
function readFilter(query: Query): Pick<NoticeFilter, 'unread' | 'kind' | 'sinceMs'> {
  const unread = textOf(query, 'unread');
  return {
    unread: unread === undefined ? undefined : unread === 'true',
    kind: wordOf(query, 'kind', NOTICE_KINDS),
    sinceMs: readDate('since', textOf(query, 'since')),
  };
}

function noticeJson(notice: Notice) {
  const { id, kind, subject, text, count, firstAtMs, lastAtMs, readAtMs, resolvedAtMs } = notice;
  return {
    id,
    kind,
    subject,
    text,
    count,
    at: formatDate(firstAtMs),
    last_at: formatDate(lastAtMs),
    read_at: readAtMs === null ? null : formatDate(readAtMs),
    resolved_at: resolvedAtMs === null ? null : formatDate(resolvedAtMs),
  };
}
