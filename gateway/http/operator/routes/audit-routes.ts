/** The operator's route for the audit log: who changed what, when, with what outcome. */
import { Type } from 'typebox';

import { formatMac, parseMac } from '../../../../proto/wire/mac.js';
import { formatDate } from '../../../../proto/wire/ping-json.js';
import { checkAction } from '../../../audit/actions.js';
import type { AuditPageTerms } from '../../../audit/entry-page.js';
import { AUDIT_ACTORS, AUDIT_OUTCOMES, type AuditEntry } from '../../../store/contract/operators/audit-store.js';
import { NextCursor, nextCursor, pageQuery, readPage } from '../page.js';
import { readDate, textOf } from '../query.js';
import type { OperatorParts, Query, Route } from '../routes.js';
import { DateText, Described, Exact, MaybeText, MaybeTime, OneOf, OrNull, Time } from '../schemas.js';

/** The number of entries in one answer: by default, and at most. */
const DEFAULT_LISTED = 50;
const MAX_LISTED = 500;

const Entry = Type.Object({
  id: Type.Integer(),
  at: Time,
  actor: OneOf(AUDIT_ACTORS),
  address: MaybeText,
  agent: MaybeText,
  os_user: MaybeText,
  token: MaybeText,
  merchant: MaybeText,
  user: MaybeText,
  key: MaybeText,
  action: Type.String(),
  object: Type.String(),
  before: OrNull(Described('The state before.')),
  after: OrNull(Described('The state after, or as requested.')),
  outcome: OneOf(AUDIT_OUTCOMES),
  code: MaybeText,
  ended_at: MaybeTime,
});

/** The route for the audit log, which is read-only. */
export const AUDIT_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/audit',
    operation: 'audit.list',
    summary: 'Lists changes and who made them, newest first, page by page.',
    success: 200,
    query: Exact({
      since: Type.Optional(DateText),
      action: Type.Optional(Type.String({ description: 'Such as device.set, or device for the whole group.' })),
      object: Type.Optional(Type.String({ description: 'A MAC, a name or an id.' })),
      merchant: Type.Optional(
        Type.String({ description: 'Only what its users and keys did, and changes by others that name it.' }),
      ),
      ...pageQuery(MAX_LISTED, DEFAULT_LISTED),
    }),
    answer: Type.Object({ entries: Type.Array(Entry), next_cursor: NextCursor }),
    handle: showEntries,
  },
];

async function showEntries(parts: OperatorParts, { query }: { readonly query: Query }): Promise<unknown> {
  const { audit, merchants } = parts;
  const filter = readFilter(query);
  // Without `since`: it only cuts off the list's end, so a cursor's position keeps its meaning.
  const listKey = `audit ${JSON.stringify([filter.action, filter.object, filter.merchant])}`;
  const { limit, after } = readPage(query, listKey, ['number'], DEFAULT_LISTED);
  const { entries, nextBeforeId } = await audit.page({
    filter,
    beforeId: after?.[0] as number | undefined,
    limit,
    // Operators' long reads take turns with those of merchants: only together can all be kept from delaying pings.
    nextTurn: () => merchants.ownData.readTurns.next(),
  });
  return {
    entries: entries.map(entryJson),
    next_cursor: nextCursor(listKey, nextBeforeId === null ? null : [nextBeforeId]),
  };
}

/** @throws LockgateError `input-date`; as a RequestFaults, which is one, `input-action` */
function readFilter(query: Query): AuditPageTerms['filter'] {
  return {
    sinceMs: readDate('since', textOf(query, 'since')),
    action: actionOf(textOf(query, 'action')),
    object: readObject(textOf(query, 'object')),
    merchant: textOf(query, 'merchant'),
  };
}

/** @throws RequestFaults `input-action` */
function actionOf(text: string | undefined): string | undefined {
  return text === undefined ? undefined : checkAction(text);
}

/** Reads the object's name. A MAC is normalised, since entries have MACs in one spelling. */
function readObject(text: string | undefined): string | undefined {
  const mac = text === undefined ? undefined : parseMac(text);
  return mac?.ok === true ? formatMac(mac.value) : text;
}

function entryJson(entry: AuditEntry) {
  const { id, atMs, actor, address, agent, osUser, token, action, object, outcome, code, endedAtMs } = entry;
  const [before, after] = [entry.before, entry.after].map((json) =>
    json === null ? null : (JSON.parse(json) as unknown),
  );
  return {
    id,
    at: formatDate(atMs),
    actor,
    address,
    agent,
    os_user: osUser,
    token,
    merchant: entry.merchant?.name ?? null,
    user: entry.user ?? null,
    key: entry.key ?? null,
    action,
    object,
    before,
    after,
    outcome,
    code,
    ended_at: endedAtMs === null ? null : formatDate(endedAtMs),
  };
}
