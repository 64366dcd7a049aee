/**
 * The audit log, through Kysely. Every write is exclusive.
 *
 * Entries made by merchants' users and keys are limited separately from all others, so that a merchant's program cannot
 * push out what operators did. Counting costs a few milliseconds, so it is done only once in a while.
 */
import type { Insertable, Kysely, Selectable } from 'kysely';
import {
  type AuditEntry,
  type AuditFilter,
  type AuditResult,
  type AuditStart,
  type AuditStore,
  MAX_AUDIT_ENTRIES,
  MAX_AUDIT_ENTRIES_OF_MERCHANTS,
  MAX_AUDIT_ENTRIES_PER_MERCHANT,
} from '../contract/operators/audit-store.js';
import { sql } from './kysely.js';
import { findMerchant } from './registry.js';
import type { AuditTable } from './schema/operators.js';
import type { Tables } from './schema.js';
import type { TableParts } from './table-parts.js';

/** When an entry's id is a multiple of this, the oldest entries beyond the maximums of all entries are deleted. */
const ENTRIES_BETWEEN_DELETIONS = 100;
/** The same for the maximum of one merchant, by the ids of that merchant's entries. */
const MERCHANT_ENTRIES_BETWEEN_DELETIONS = 20;
/** Maximum number of a merchant's entries that are deleted at once. */
const MAX_DELETED_OF_MERCHANT = 500;

/* The conditions of the two partial indexes, as their migration spells them: otherwise SQLite would not use them. */
const BY_MERCHANTS = sql<boolean>`actor IN ('user', 'key')`;
const BY_OTHERS = sql<boolean>`actor NOT IN ('user', 'key')`;

export class Audit implements AuditStore {
  readonly #parts: TableParts;

  constructor(parts: TableParts) {
    this.#parts = parts;
  }

  begin(start: AuditStart): Promise<number> {
    return this.#transaction((db) =>
      this.#insert(db, [{ ...startColumns(start), after: null, outcome: 'begun', code: null, ended_at_ms: null }]),
    );
  }

  end(id: number, result: AuditResult): Promise<void> {
    return this.#transaction(async (db) => {
      const merchant = await merchantColumn(db, result);
      const columns = { ...resultColumns(result), ...merchant };
      await db.updateTable('audit').set(columns).where('id', '=', id).execute();
    });
  }

  write(entries: readonly (AuditStart & AuditResult)[]): Promise<void> {
    return this.#transaction(async (db) => {
      const rows: Insertable<AuditTable>[] = [];
      for (const entry of entries) {
        const merchant = await merchantColumn(db, entry);
        rows.push({ ...startColumns(entry), ...resultColumns(entry), ...merchant });
      }
      await this.#insert(db, rows);
    });
  }

  abandon(): Promise<void> {
    return this.#transaction(async (db) => {
      await db.updateTable('audit').set({ outcome: 'unknown' }).where('outcome', '=', 'begun').execute();
    });
  }

  async list({ sinceMs, action, object, merchant, fromId, beforeId, limit }: AuditFilter): Promise<AuditEntry[]> {
    const { readTables } = this.#parts;
    let query = readTables
      .selectFrom('audit')
      .leftJoin('merchant', 'merchant.id', 'audit.merchant_id')
      .selectAll('audit')
      .select('merchant.name as merchant_name');
    if (merchant !== undefined)
      query = query.where('audit.merchant_id', '=', (await findMerchant(readTables, merchant)).id);
    if (sinceMs !== undefined) query = query.where('at_ms', '>=', sinceMs);
    if (object !== undefined) query = query.where('object', '=', object);
    if (fromId !== undefined) query = query.where('audit.id', '>=', fromId);
    if (beforeId !== undefined) query = query.where('audit.id', '<', beforeId);
    if (action !== undefined)
      query = query.where(({ eb, or, and }) =>
        // "/" follows "." in ASCII, so everything between the two bounds starts with the group's name and a dot.
        or([eb('action', '=', action), and([eb('action', '>', `${action}.`), eb('action', '<', `${action}/`)])]),
      );
    return (await query.orderBy('audit.id', 'desc').limit(limit).execute()).map(toEntry);
  }

  /**
   * Inserts entries in one statement, now and then deletes the oldest ones beyond the maximums.
   *
   * @param rows at least one
   * @returns the id of the last one
   */
  async #insert(db: Kysely<Tables>, rows: readonly Insertable<AuditTable>[]): Promise<number> {
    const inserted = await db.insertInto('audit').values(rows).returning(['id', 'actor', 'merchant_id']).execute();
    for (const { id, actor, merchant_id: merchantId } of inserted) {
      const isOfMerchant = (actor === 'user' || actor === 'key') && merchantId !== null;
      if (isOfMerchant && id % MERCHANT_ENTRIES_BETWEEN_DELETIONS === 0) await deleteOfMerchant(db, merchantId);
      if (id % ENTRIES_BETWEEN_DELETIONS === 0) await this.#deleteOldest(db, id);
    }
    return Math.max(...inserted.map(({ id }) => id));
  }

  /** Deletes the oldest entries of operators, owners and the gateway, and merchants' entries that are very old. */
  async #deleteOldest(db: Kysely<Tables>, newestId: number): Promise<void> {
    const { dialect } = this.#parts;
    const byMerchants = dialect.indexHint('audit_by_merchants');
    const byOthers = dialect.indexHint('audit_by_others');
    // Counted by ids, which is cheap: among this many ids there are at most this many entries.
    const oldestId = newestId - MAX_AUDIT_ENTRIES - MAX_AUDIT_ENTRIES_OF_MERCHANTS;
    await sql`DELETE FROM audit ${byMerchants} WHERE ${BY_MERCHANTS} AND id <= ${oldestId}`.execute(db);
    await sql`DELETE FROM audit ${byOthers} WHERE ${BY_OTHERS} AND id <= (
      SELECT id FROM audit ${byOthers} WHERE ${BY_OTHERS} ORDER BY id DESC
      LIMIT 1 OFFSET ${MAX_AUDIT_ENTRIES})`.execute(db);
  }

  #transaction<T>(work: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
    return this.#parts.mutex.runExclusive(() => this.#parts.tables.transaction().execute(work));
  }
}

/** Deletes the oldest entries of one merchant's users and keys beyond the maximum. */
async function deleteOfMerchant(db: Kysely<Tables>, merchantId: number): Promise<void> {
  await sql`DELETE FROM audit WHERE id IN (
    SELECT id FROM audit WHERE merchant_id = ${merchantId} AND ${BY_MERCHANTS} ORDER BY id DESC
    LIMIT ${MAX_DELETED_OF_MERCHANT} OFFSET ${MAX_AUDIT_ENTRIES_PER_MERCHANT})`.execute(db);
}

/** The columns that are known when an action begins. */
function startColumns({ atMs, actor, address, agent, osUser, token, action, object, before, ...who }: AuditStart) {
  const { merchant = null, user = null, key = null } = who;
  const people = { merchant_id: merchant?.id ?? null, user_name: user, key_name: key };
  return { at_ms: atMs, actor, address, agent, os_user: osUser, token, action, object, before, ...people };
}

/** The columns that are known when an action has ended. */
function resultColumns({ outcome, code, object, after, endedAtMs }: AuditResult) {
  return { outcome, code, object, after, ended_at_ms: endedAtMs };
}

/** The column with the merchant that the result names, if there is such a merchant. */
async function merchantColumn(
  db: Kysely<Tables>,
  { changedMerchant: name }: AuditResult,
): Promise<{ merchant_id?: number }> {
  if (name === undefined) return {};
  const row = await db.selectFrom('merchant').select('id').where('name', '=', name).executeTakeFirst();
  return row === undefined ? {} : { merchant_id: row.id };
}

function toEntry(row: Selectable<AuditTable> & { readonly merchant_name: string | null }): AuditEntry {
  return {
    id: row.id,
    atMs: row.at_ms,
    actor: row.actor,
    address: row.address,
    agent: row.agent,
    osUser: row.os_user,
    token: row.token,
    action: row.action,
    object: row.object,
    before: row.before,
    after: row.after,
    outcome: row.outcome,
    code: row.code,
    endedAtMs: row.ended_at_ms,
    merchant: row.merchant_id === null ? null : { id: row.merchant_id, name: row.merchant_name ?? '' },
    user: row.user_name,
    key: row.key_name,
  };
}
