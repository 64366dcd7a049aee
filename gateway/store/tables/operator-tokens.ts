/** Operators' named tokens (operator-token-store.ts), through Kysely. */
import type { Kysely, Selectable } from 'kysely';
import { LockgateError } from '../../../proto/errors.js';
import {
  MAX_OPERATOR_TOKENS,
  MAX_REVOKED_TOKENS,
  type NewOperatorToken,
  OPERATOR_ROLES,
  type OperatorTokenRecord,
  type OperatorTokenStore,
} from '../contract/operators/operator-token-store.js';
import type { OperatorTokenTable } from './schema/operators.js';
import type { Tables } from './schema.js';
import type { TableParts } from './table-parts.js';

/** Maximum length of an unknown name that an error quotes, in characters. */
const MAX_QUOTED_CHARS = 80;

export class OperatorTokens implements OperatorTokenStore {
  readonly #parts: TableParts;

  constructor(parts: TableParts) {
    this.#parts = parts;
  }

  add({ name, role, tokenHash, expiresAtMs, nowMs }: NewOperatorToken): Promise<OperatorTokenRecord> {
    return this.#transaction(async (db) => {
      const active = await db.selectFrom('operator_token').select('name').where('revoked_at_ms', 'is', null).execute();
      if (active.some((token) => token.name === name))
        throw new LockgateError('token-exists', `there is a token ${JSON.stringify(name)} already: revoke it first`);
      if (active.length >= MAX_OPERATOR_TOKENS)
        throw new LockgateError('too-many-tokens', `there are ${active.length} tokens, the maximum: revoke one first`);
      const row = {
        name,
        role,
        token_hash: tokenHash,
        created_at_ms: nowMs,
        last_used_at_ms: null,
        expires_at_ms: expiresAtMs,
        revoked_at_ms: null,
      };
      return toRecord(await db.insertInto('operator_token').values(row).returningAll().executeTakeFirstOrThrow());
    });
  }

  async find(tokenHash: Buffer): Promise<OperatorTokenRecord | null> {
    const row = await this.#rows().where('token_hash', '=', tokenHash).executeTakeFirst();
    return row === undefined ? null : toRecord(row);
  }

  async list(): Promise<OperatorTokenRecord[]> {
    return (await this.#rows().orderBy('id').execute()).map(toRecord);
  }

  revoke(name: string, nowMs: number): Promise<OperatorTokenRecord> {
    return this.#transaction(async (db) => {
      const revoked = await db
        .updateTable('operator_token')
        .set({ revoked_at_ms: nowMs })
        .where('name', '=', name)
        .where('revoked_at_ms', 'is', null)
        .returningAll()
        .executeTakeFirst();
      if (revoked === undefined)
        throw new LockgateError(
          'no-such-token',
          `there is no valid token ${JSON.stringify(name.slice(0, MAX_QUOTED_CHARS))}`,
        );
      // Deletes all but the latest revoked tokens. A limit is given since SQLite has no OFFSET without one.
      await db
        .deleteFrom('operator_token')
        .where('id', 'in', (rows) =>
          rows
            .selectFrom('operator_token')
            .select('id')
            .where('revoked_at_ms', 'is not', null)
            .orderBy('revoked_at_ms', 'desc')
            .orderBy('id', 'desc')
            .limit(MAX_OPERATOR_TOKENS)
            .offset(MAX_REVOKED_TOKENS),
        )
        .execute();
      return toRecord(revoked);
    });
  }

  async recordUse(id: number, atMs: number): Promise<void> {
    await this.#transaction((db) =>
      db.updateTable('operator_token').set({ last_used_at_ms: atMs }).where('id', '=', id).execute(),
    );
  }

  #rows() {
    return this.#parts.readTables.selectFrom('operator_token').selectAll();
  }

  #transaction<T>(work: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
    return this.#parts.mutex.runExclusive(() => this.#parts.tables.transaction().execute(work));
  }
}

function toRecord(row: Selectable<OperatorTokenTable>): OperatorTokenRecord {
  return {
    id: row.id,
    name: row.name,
    // An unknown role, of a later version, gets the least rights.
    role: OPERATOR_ROLES.find((role) => role === row.role) ?? 'metrics',
    createdAtMs: row.created_at_ms,
    lastUsedAtMs: row.last_used_at_ms,
    expiresAtMs: row.expires_at_ms,
    revokedAtMs: row.revoked_at_ms,
  };
}
