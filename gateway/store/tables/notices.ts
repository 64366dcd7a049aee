/** Notices for operators, through Kysely. Every write is exclusive. */
import type { Kysely, Selectable } from 'kysely';
import { Seconds } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import { type NotificationChange, OPERATOR_RECIPIENT } from '../contract/notify/notification-store.js';
import {
  MAX_NOTICES,
  type Notice,
  type NoticeChange,
  type NoticeFilter,
  type NoticeKey,
  type NoticeKind,
  type NoticeStore,
  OPERATOR_SUBJECT,
} from '../contract/operators/notice-store.js';
import { sql } from './kysely.js';
import type { NoticeTable } from './schema/operators.js';
import type { Tables } from './schema.js';
import type { TableParts } from './table-parts.js';

/** A change that adds or repeats a notice, and does not only resolve it. */
type Occurrence = NoticeChange & { readonly text: string };

export interface NoticeParts extends TableParts {
  /** Queues notifications of the operators within the running transaction. */
  readonly queue: (db: Kysely<Tables>, changes: readonly NotificationChange[]) => void | Promise<void>;
}

export class Notices implements NoticeStore {
  readonly #parts: NoticeParts;

  constructor(parts: NoticeParts) {
    this.#parts = parts;
  }

  write(changes: readonly NoticeChange[]): Promise<void> {
    return this.#transaction(async (db) => {
      const occurrences = changes.filter((change): change is Occurrence => change.text !== null);
      for (const group of groupResolved(changes)) await resolve(db, group);
      if (occurrences.length > 0) await insert(db, occurrences);
      await this.#notify(db, changes, occurrences.length > 0);
      if (occurrences.length > 0) await deleteOldest(db);
    });
  }

  /** Queues a message for each notice that opens or is resolved. */
  async #notify(db: Kysely<Tables>, changes: readonly NoticeChange[], hasOccurrences: boolean): Promise<void> {
    const recipient = db.selectFrom('notify_recipient').select('url').where('id', '=', OPERATOR_RECIPIENT);
    if ((await recipient.executeTakeFirst()) === undefined) return;
    const ids = hasOccurrences ? await findUnreadIds(db, changes) : new Map<string, number>();
    await this.#parts.queue(
      db,
      changes.filter(isSent).flatMap((change) => notificationsOf(change, ids)),
    );
  }

  async list({ unread, kind, sinceMs, after, limit }: NoticeFilter): Promise<Notice[]> {
    let query = this.#parts.readTables.selectFrom('notice').selectAll();
    if (unread !== undefined) query = query.where('read_at_ms', unread ? 'is' : 'is not', null);
    if (kind !== undefined) query = query.where('kind', '=', kind);
    if (sinceMs !== undefined) query = query.where('last_at_ms', '>=', sinceMs);
    if (after !== undefined)
      query = query.where(({ eb, refTuple, tuple }) =>
        eb(refTuple('last_at_ms', 'id'), '<', tuple(after.lastAtMs, after.id)),
      );
    const rows = await query.orderBy('last_at_ms', 'desc').orderBy('id', 'desc').limit(limit).execute();
    return rows.map(toNotice);
  }

  async readOpen(): Promise<NoticeKey[]> {
    const query = this.#parts.readTables.selectFrom('notice').select(['kind', 'subject']);
    return await query.where('resolved_at_ms', 'is', null).execute();
  }

  readLeftOpen(): Promise<NoticeKey[]> {
    return this.readOpen();
  }

  async readUnread(): Promise<ReadonlyMap<NoticeKind, number>> {
    const rows = await this.#parts.readTables
      .selectFrom('notice')
      .select('kind')
      .select(({ fn }) => fn.countAll<number>().as('unread'))
      .where('read_at_ms', 'is', null)
      .groupBy('kind')
      .execute();
    return new Map(rows.map(({ kind, unread }) => [kind, unread]));
  }

  markRead(ids: readonly number[] | 'all', nowMs: number): Promise<number> {
    return this.#transaction(async (db) => {
      let update = db.updateTable('notice').set({ read_at_ms: nowMs }).where('read_at_ms', 'is', null);
      if (ids !== 'all') {
        await refuseUnknown(db, ids);
        update = update.where('id', 'in', [...ids]);
      }
      const { numUpdatedRows } = await update.executeTakeFirstOrThrow();
      return Number(numUpdatedRows);
    });
  }

  #transaction<T>(work: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
    return this.#parts.mutex.runExclusive(() => this.#parts.tables.transaction().execute(work));
  }
}

/**
 * Notices of one kind that were resolved in the same second: one second is exact enough, and one statement serves many
 * locks.
 */
interface ResolvedGroup {
  readonly kind: NoticeKind;
  readonly subjects: string[];
  /** The latest time of the group. */
  resolvedAtMs: number;
}

function groupResolved(changes: readonly NoticeChange[]): Iterable<ResolvedGroup> {
  const groups = new Map<string, ResolvedGroup>();
  for (const { kind, subject, text, resolvedAtMs } of changes) {
    if (text !== null || resolvedAtMs === null) continue;
    const key = `${kind} ${Math.floor(resolvedAtMs / Seconds(1))}`;
    const group = groups.get(key) ?? { kind, subjects: [], resolvedAtMs };
    group.subjects.push(subject);
    group.resolvedAtMs = Math.max(group.resolvedAtMs, resolvedAtMs);
    groups.set(key, group);
  }
  return groups.values();
}

async function resolve(db: Kysely<Tables>, { kind, subjects, resolvedAtMs }: ResolvedGroup): Promise<void> {
  await db
    .updateTable('notice')
    .set({ resolved_at_ms: resolvedAtMs })
    .where('kind', '=', kind)
    .where('subject', 'in', subjects)
    .where('resolved_at_ms', 'is', null)
    .execute();
}

/**
 * Inserts notices in one statement. A notice that is already stored, and is unresolved or unread (a partial index finds
 * it), is counted up instead.
 */
async function insert(db: Kysely<Tables>, occurrences: readonly Occurrence[]): Promise<void> {
  const rows = occurrences.map(({ kind, subject, text, count, firstAtMs, lastAtMs, resolvedAtMs }) => ({
    kind,
    subject,
    text,
    count,
    first_at_ms: firstAtMs,
    last_at_ms: lastAtMs,
    read_at_ms: null,
    resolved_at_ms: resolvedAtMs,
  }));
  await db
    .insertInto('notice')
    .values(rows)
    .onConflict((conflict) =>
      conflict
        .columns(['kind', 'subject'])
        .where(({ eb, or }) => or([eb('resolved_at_ms', 'is', null), eb('read_at_ms', 'is', null)]))
        .doUpdateSet(({ eb, ref }) => ({
          text: ref('excluded.text'),
          count: eb('notice.count', '+', ref('excluded.count')),
          last_at_ms: ref('excluded.last_at_ms'),
          read_at_ms: null,
          resolved_at_ms: ref('excluded.resolved_at_ms'),
        })),
    )
    .execute();
}

/** Deletes the notices beyond the maximum number: read notices first, then by age. */
async function deleteOldest(db: Kysely<Tables>): Promise<void> {
  const countQuery = db.selectFrom('notice').select(({ fn }) => fn.countAll<number>().as('count'));
  const { count } = await countQuery.executeTakeFirstOrThrow();
  if (count <= MAX_NOTICES) return;
  const oldest = db
    .selectFrom('notice')
    .select('id')
    .orderBy(sql`read_at_ms IS NULL`)
    .orderBy('last_at_ms')
    .orderBy('id')
    .limit(count - MAX_NOTICES);
  await db.deleteFrom('notice').where('id', 'in', oldest).execute();
}

/** @throws LockgateError `no-such-notice` */
async function refuseUnknown(db: Kysely<Tables>, ids: readonly number[]): Promise<void> {
  const rows = await db
    .selectFrom('notice')
    .select('id')
    .where('id', 'in', [...ids])
    .execute();
  const known = new Set(rows.map(({ id }) => id));
  const unknown = ids.find((id) => !known.has(id));
  if (unknown !== undefined) throw new LockgateError('no-such-notice', `there is no notice ${unknown}`);
}

function toNotice(row: Selectable<NoticeTable>): Notice {
  return {
    id: row.id,
    kind: row.kind,
    subject: row.subject,
    text: row.text,
    count: row.count,
    firstAtMs: row.first_at_ms,
    lastAtMs: row.last_at_ms,
    readAtMs: row.read_at_ms,
    resolvedAtMs: row.resolved_at_ms,
  };
}

/** A notice that the operators' URL fails is not sent to that URL. */
function isSent({ kind, subject }: NoticeChange): boolean {
  return kind !== 'notify-failing' || subject !== OPERATOR_SUBJECT;
}

/** The ids of the unread notices that the changes opened or repeated, by kind and subject. */
async function findUnreadIds(
  db: Kysely<Tables>,
  changes: readonly NoticeChange[],
): Promise<ReadonlyMap<string, number>> {
  const subjects = changes.filter(({ text }) => text !== null).map(({ subject }) => subject);
  const rows = await db
    .selectFrom('notice')
    .select(['id', 'kind', 'subject'])
    .where('kind', 'in', [...new Set(changes.map(({ kind }) => kind))])
    .where('subject', 'in', subjects)
    .where('read_at_ms', 'is', null)
    .execute();
  return new Map(rows.map(({ id, kind, subject }) => [`${kind} ${subject}`, id]));
}

function notificationsOf(change: NoticeChange, ids: ReadonlyMap<string, number>): NotificationChange[] {
  const { kind, subject, text, firstAtMs, resolvedAtMs } = change;
  const trouble = { recipientId: OPERATOR_RECIPIENT, kind, subject };
  const notifications: NotificationChange[] = [];
  if (text !== null) {
    const noticeId = ids.get(`${kind} ${subject}`);
    const details = noticeId === undefined ? {} : { noticeId };
    // `mayHold`: the message waits while the notice opens and ends again and again.
    notifications.push({ ...trouble, atMs: firstAtMs, change: { type: 'open', text, details, mayHold: true } });
  }
  if (resolvedAtMs !== null)
    notifications.push({ ...trouble, atMs: resolvedAtMs, change: { type: 'end', how: 'resolved' } });
  return notifications;
}
