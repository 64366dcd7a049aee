/** The audit log in the SQLite store, through Kysely. Every write holds the write mutex. */
import type { Insertable, Kysely, Selectable } from 'kysely';
import {
  type AuditEntry,
  type AuditFilter,
  type AuditResult,
  type AuditStart,
  type AuditStore,
  MAX_AUDIT_ENTRIES,
} from '../../contract/audit-store.js';
import type { AuditTable, Tables } from '../schema.js';
import type { TableParts } from './access.js';

export class SqliteAudit implements AuditStore {
  readonly #parts: TableParts;

  constructor(parts: TableParts) {
    this.#parts = parts;
  }

  begin(start: AuditStart): Promise<number> {
    return this.#transaction((db) =>
      insert(db, { ...startColumns(start), after: null, outcome: 'begun', code: null, ended_at_ms: null }),
    );
  }

  end(id: number, result: AuditResult): Promise<void> {
    return this.#transaction(async (db) => {
      await db.updateTable('audit').set(resultColumns(result)).where('id', '=', id).execute();
    });
  }

  write(entries: readonly (AuditStart & AuditResult)[]): Promise<void> {
    return this.#transaction(async (db) => {
      for (const entry of entries) await insert(db, { ...startColumns(entry), ...resultColumns(entry) });
    });
  }

  abandon(): Promise<void> {
    return this.#transaction(async (db) => {
      await db.updateTable('audit').set({ outcome: 'unknown' }).where('outcome', '=', 'begun').execute();
    });
  }

  async list({ sinceMs, action, object, beforeId, limit }: AuditFilter): Promise<AuditEntry[]> {
    let query = this.#parts.readTables.selectFrom('audit').selectAll();
    if (sinceMs !== undefined) query = query.where('at_ms', '>=', sinceMs);
    if (object !== undefined) query = query.where('object', '=', object);
    if (beforeId !== undefined) query = query.where('id', '<', beforeId);
    if (action !== undefined)
      query = query.where(({ eb, or, and }) =>
        // "/" follows "." in ASCII, so everything between the two bounds starts with the group's name and a dot.
        or([eb('action', '=', action), and([eb('action', '>', `${action}.`), eb('action', '<', `${action}/`)])]),
      );
    return (await query.orderBy('id', 'desc').limit(limit).execute()).map(toEntry);
  }

  #transaction<T>(work: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
    return this.#parts.mutex.runExclusive(() => this.#parts.tables.transaction().execute(work));
  }
}

/** Inserts an entry, deletes the oldest entries beyond the maximum, and returns the new entry's id. */
async function insert(db: Kysely<Tables>, row: Insertable<AuditTable>): Promise<number> {
  const { id } = await db.insertInto('audit').values(row).returning('id').executeTakeFirstOrThrow();
  await db
    .deleteFrom('audit')
    .where('id', '<=', id - MAX_AUDIT_ENTRIES)
    .execute();
  return id;
}

function startColumns({ atMs, actor, address, agent, osUser, token, action, object, before }: AuditStart) {
  return { at_ms: atMs, actor, address, agent, os_user: osUser, token, action, object, before };
}

function resultColumns({ outcome, code, object, after, endedAtMs }: AuditResult) {
  return { outcome, code, object, after, ended_at_ms: endedAtMs };
}

function toEntry(row: Selectable<AuditTable>): AuditEntry {
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
  };
}
