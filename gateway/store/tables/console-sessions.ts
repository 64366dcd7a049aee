/** Sessions of the console (console-session-store.ts), through Kysely. */
import type { CompiledQuery, ExpressionBuilder, Kysely, Selectable } from 'kysely';
import { dashboardRole } from '../contract/merchants/dashboard-roles.js';
import {
  type ConsoleSession,
  type ConsoleSessionStore,
  MAX_CONSOLE_LINKS,
  MAX_CONSOLE_SESSIONS,
  type NewConsoleLink,
  type NewConsoleSession,
  type OperatorConsoleSession,
  type SessionOwner,
} from '../contract/operators/console-session-store.js';
import { OPERATOR_ROLES } from '../contract/operators/operator-token-store.js';
import { sql } from './kysely.js';
import type { ConsoleSessionTable } from './schema/operators.js';
import type { Tables } from './schema.js';
import type { TableParts } from './table-parts.js';

/** What a row is: a session of a merchant's user or of an operator, or a link that opens an operator's session. */
type Kind = 'user' | 'operator' | 'link';

/** The columns that only some kinds have, without values. */
const NO_RIGHTS = {
  merchant_id: null,
  user_id: null,
  role: null,
  token_name: null,
  token_id: null,
  session_ends_at_ms: null,
};

/** In place of the values of a query that is compiled once; no session has these. */
const ANY_HASH = Buffer.alloc(0);
const ANY_TIME_MS = -1;

export class ConsoleSessions implements ConsoleSessionStore {
  readonly #parts: TableParts;
  /** The query of {@link find}, once it was needed. */
  #finding: CompiledQuery<ReadRow> | undefined;

  constructor(parts: TableParts) {
    this.#parts = parts;
  }

  async addForUser(merchantId: number, userId: bigint, session: NewConsoleSession): Promise<void> {
    await this.#transaction(async (db) => {
      await deleteExpired(db, session.nowMs);
      // The column's type is a number, for reading it as text; SQLite's and PostgreSQL's drivers accept a bigint.
      const holder = { merchant_id: merchantId, user_id: userId as never };
      await db
        .insertInto('console_session')
        .values({ ...NO_RIGHTS, ...rowOf('user', session), ...holder })
        .execute();
      const ofUser = (rows: ExpressionBuilder<Tables, 'console_session'>) =>
        rows.and([
          rows('kind', '=', 'user'),
          rows('merchant_id', '=', merchantId),
          rows('user_id', '=', userId as never),
        ]);
      await deleteOldest(db, ofUser, MAX_CONSOLE_SESSIONS);
    });
  }

  async addLink({ linkHash, role, tokenName, tokenId, nowMs, expiresAtMs, sessionEndsAtMs }: NewConsoleLink) {
    await this.#transaction(async (db) => {
      await deleteExpired(db, nowMs);
      const common = rowOf('link', { tokenHash: linkHash, nowMs, expiresAtMs, address: '', agent: null });
      const rights = { role, token_name: tokenName, token_id: tokenId, session_ends_at_ms: sessionEndsAtMs };
      await db
        .insertInto('console_session')
        .values({ ...NO_RIGHTS, ...common, ...rights })
        .execute();
      await deleteOldest(db, (rows) => rows('kind', '=', 'link'), MAX_CONSOLE_LINKS);
    });
  }

  redeemLink(linkHash: Buffer, session: NewConsoleSession): Promise<OperatorConsoleSession | null> {
    return this.#transaction(async (db) => {
      const link = await db
        .deleteFrom('console_session')
        .where('token_hash', '=', linkHash)
        .where('kind', '=', 'link')
        .returningAll()
        .executeTakeFirst();
      await deleteExpired(db, session.nowMs);
      if (link === undefined || link.expires_at_ms <= session.nowMs) return null;
      const expiresAtMs = Math.min(session.expiresAtMs, link.session_ends_at_ms ?? Number.POSITIVE_INFINITY);
      if (expiresAtMs <= session.nowMs) return null;
      const rights = { role: link.role, token_name: link.token_name, token_id: link.token_id };
      const row = { ...NO_RIGHTS, ...rowOf('operator', { ...session, expiresAtMs }), ...rights };
      const added = await db.insertInto('console_session').values(row).returningAll().executeTakeFirstOrThrow();
      await deleteOldest(db, (rows) => rows('kind', '=', 'operator'), MAX_CONSOLE_SESSIONS);
      return toOperatorSession(added);
    });
  }

  async find(tokenHash: Buffer, nowMs: number): Promise<ConsoleSession | null> {
    // Each call of a page asks this, and to build and compile the query takes longer than to answer it.
    this.#finding ??= this.#query(ANY_TIME_MS, (rows) => rows('console_session.token_hash', '=', ANY_HASH)).compile();
    const { parameters } = this.#finding;
    const values = parameters.map((value) => (value === ANY_HASH ? tokenHash : value === ANY_TIME_MS ? nowMs : value));
    const { rows } = await this.#parts.readTables.executeQuery<ReadRow>({ ...this.#finding, parameters: values });
    return rows.flatMap(toSession)[0] ?? null;
  }

  async list(owner: SessionOwner, nowMs: number): Promise<ConsoleSession[]> {
    return (await this.#query(nowMs, (rows) => isOwners(rows, owner)).execute()).flatMap(toSession);
  }

  async end(id: number, owner: SessionOwner): Promise<boolean> {
    const { numDeletedRows } = await this.#transaction((db) =>
      db
        .deleteFrom('console_session')
        .where('console_session.id', '=', id)
        .where((rows) => isOwners(rows, owner))
        .executeTakeFirst(),
    );
    return numDeletedRows > 0n;
  }

  /** The valid sessions that fit, newest first, with what their holders may do now. */
  #query(nowMs: number, fits: (rows: ExpressionBuilder<Tables, 'console_session'>) => ReturnType<typeof isOwners>) {
    return (
      this.#parts.readTables
        .selectFrom('console_session')
        .leftJoin('user_account', (join) =>
          join
            .onRef('user_account.merchant_id', '=', 'console_session.merchant_id')
            .onRef('user_account.id', '=', 'console_session.user_id'),
        )
        .leftJoin('merchant', 'merchant.id', 'console_session.merchant_id')
        .leftJoin('operator_token', 'operator_token.id', 'console_session.token_id')
        .selectAll('console_session')
        .select([
          sql<string | null>`cast(console_session.user_id as text)`.as('user_id_text'),
          'user_account.username',
          'user_account.dashboard_role',
          'merchant.name as merchant_name',
          'operator_token.revoked_at_ms as token_revoked_at_ms',
          'operator_token.id as found_token_id',
        ])
        .where('console_session.kind', '<>', 'link')
        .where('console_session.expires_at_ms', '>', nowMs)
        // An operator's session has no merchant; that of a closed merchant's user is not valid.
        .where('merchant.closed_at_ms', 'is', null)
        // The cast: in a query with joins, Kysely's builder has a wider type than the conditions, which are for one
        // table.
        .where(fits as never)
        .orderBy('console_session.id', 'desc')
        .limit(MAX_CONSOLE_SESSIONS)
    );
  }

  #transaction<T>(work: (db: Kysely<Tables>) => Promise<T>): Promise<T> {
    return this.#parts.mutex.runExclusive(() => this.#parts.tables.transaction().execute(work));
  }
}

/** The columns that all kinds have. */
function rowOf(kind: Kind, { tokenHash, nowMs, expiresAtMs, address, agent }: NewConsoleSession) {
  return { kind, token_hash: tokenHash, created_at_ms: nowMs, expires_at_ms: expiresAtMs, address, agent };
}

async function deleteExpired(db: Kysely<Tables>, nowMs: number): Promise<void> {
  await db.deleteFrom('console_session').where('expires_at_ms', '<=', nowMs).execute();
}

/**
 * Deletes rows that fit, except for the `keep` latest. It deletes at most `keep` at once, since SQLite has no OFFSET
 * without a LIMIT; usually one is too many.
 */
async function deleteOldest(
  db: Kysely<Tables>,
  fits: (rows: ExpressionBuilder<Tables, 'console_session'>) => ReturnType<typeof isOwners>,
  keep: number,
): Promise<void> {
  const tooOld = db
    .selectFrom('console_session')
    .select('id')
    .where(fits)
    .orderBy('id', 'desc')
    .limit(keep)
    .offset(keep);
  await db.deleteFrom('console_session').where('id', 'in', tooOld).execute();
}

/** A condition: the row is a session of this owner. */
function isOwners(rows: ExpressionBuilder<Tables, 'console_session'>, owner: SessionOwner) {
  if (owner === 'operators') return rows.and([rows('console_session.kind', '=', 'operator')]);
  const { merchantId, userId } = owner;
  return rows.and([
    rows('console_session.kind', '=', 'user'),
    rows('console_session.merchant_id', '=', merchantId),
    ...(userId === undefined ? [] : [rows('console_session.user_id', '=', userId as never)]),
  ]);
}

type Row = Selectable<ConsoleSessionTable>;

/** A session with what its holder may do now. */
interface ReadRow extends Row {
  readonly user_id_text: string | null;
  readonly username: string | null;
  readonly dashboard_role: string | null;
  readonly merchant_name: string | null;
  readonly token_revoked_at_ms: number | null;
  readonly found_token_id: number | null;
}

/** The session; none if its holder has lost its rights. */
function toSession(row: ReadRow): ConsoleSession[] {
  if (row.kind === 'user') return toUserSession(row);
  const isTokenLost = row.token_id !== null && (row.found_token_id === null || row.token_revoked_at_ms !== null);
  return isTokenLost ? [] : [toOperatorSession(row)];
}

function recordOf({ id, created_at_ms: createdAtMs, expires_at_ms: expiresAtMs, address, agent }: Row) {
  return { id, createdAtMs, expiresAtMs, address, agent };
}

/** The session; none if its user was removed or has no role any more. */
function toUserSession(row: ReadRow): ConsoleSession[] {
  const { merchant_id: merchantId, merchant_name: merchantName, user_id_text: userId, username } = row;
  const role = dashboardRole(row.dashboard_role);
  if (role === null || merchantId === null || merchantName === null || userId === null) return [];
  const holder = { merchantId, merchantName, userId: BigInt(userId), username: username ?? '', role };
  return [{ kind: 'user', ...recordOf(row), ...holder }];
}

function toOperatorSession(row: Row): OperatorConsoleSession {
  // An unknown role, of a later version, gets the least rights.
  const role = OPERATOR_ROLES.find((known) => known === row.role) ?? 'metrics';
  return { kind: 'operator', ...recordOf(row), role, tokenName: row.token_name ?? '', tokenId: row.token_id };
}
