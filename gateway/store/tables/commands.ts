/** Commands to locks, through Kysely. Every write is exclusive. */
import type { Insertable, Kysely, Selectable, Transaction } from 'kysely';
import { LockgateError } from '../../../proto/errors.js';
import type { Mac } from '../../../proto/wire/mac.js';
import type { Command, PowerChange } from '../../../proto/wire/ping.js';
import {
  type CommandFilter,
  type CommandRecord,
  type CommandState,
  type CommandStore,
  IDEMPOTENCY_LIFETIME,
  type IdempotentAnswer,
  type IdempotentCall,
  type NewCommand,
} from '../contract/command-record.js';
import { noSuchDevice } from '../contract/errors.js';
import { sql } from './kysely.js';
import type { CommandTable } from './schema/devices.js';
import type { Tables } from './schema.js';
import type { TableParts } from './table-parts.js';

/** Maximum rows of one INSERT or one IN list: SQLite allows 32,766 values in a statement. */
const MAX_ROWS_PER_STATEMENT = 1000;
/** The highest id that fits the wire (proto/lock.proto, Downlink.id). */
const MAX_COMMAND_ID = 2 ** 32 - 1;

/** Literals instead of parameters, since SQLite uses the partial index of unfinished commands only for literals. */
const UNFINISHED = sql<CommandState>`('queued', 'sent')`;

/** Reads from one connection, and writes through another under the write mutex. */
export class CommandTableStore implements CommandStore {
  readonly #mutex: TableParts['mutex'];
  readonly #writer: Kysely<Tables>;
  readonly #reader: Kysely<Tables>;
  readonly #onEnded: () => Promise<void>;

  /** @param onEnded called after a write that may have ended commands */
  constructor({ mutex, tables, readTables }: TableParts, onEnded: () => Promise<void>) {
    this.#mutex = mutex;
    this.#writer = tables;
    this.#reader = readTables;
    this.#onEnded = onEnded;
  }

  async add(commands: readonly NewCommand[]): Promise<CommandRecord[]> {
    const ids = await this.#mutex.runExclusive(() =>
      this.#writer.transaction().execute(async (db) => await insertCommands(db, commands)),
    );
    // Nothing else is inserted meanwhile, so the ids between these two are all of this call; without ids the range is
    // empty.
    const [first, last] = [ids[0] ?? 0, ids.at(-1) ?? -1];
    const rows = await this.#commands().where('command.id', '>=', first).where('command.id', '<=', last).execute();
    return rows.sort((a, b) => a.id - b.id).map(toRecord);
  }

  async addOnce(
    command: NewCommand,
    call: IdempotentCall,
    answerOf: (record: CommandRecord) => string,
  ): Promise<CommandRecord> {
    const { merchantId, route, key, bodyDigest, nowMs } = call;
    const id = await this.#mutex.runExclusive(() =>
      this.#writer.transaction().execute(async (db) => {
        const [addedId = 0] = await insertCommands(db, [command]);
        const row = await commandsIn(db).where('command.id', '=', addedId).executeTakeFirstOrThrow();
        await deleteOldAnswers(db, call);
        await db
          .insertInto('idempotent_answer')
          .values({
            merchant_id: merchantId,
            route,
            key,
            body_digest: bodyDigest,
            answer: answerOf(toRecord(row)),
            created_at_ms: nowMs,
          })
          .execute();
        return addedId;
      }),
    );
    return toRecord(await this.#commands().where('command.id', '=', id).executeTakeFirstOrThrow());
  }

  async findAnswer({
    merchantId,
    route,
    key,
    nowMs,
  }: Omit<IdempotentCall, 'bodyDigest'>): Promise<IdempotentAnswer | null> {
    const row = await this.#reader
      .selectFrom('idempotent_answer')
      .select(['body_digest', 'answer'])
      .where('merchant_id', '=', merchantId)
      .where('route', '=', route)
      .where('key', '=', key)
      .where('created_at_ms', '>', nowMs - IDEMPOTENCY_LIFETIME)
      .executeTakeFirst();
    return row === undefined ? null : { bodyDigest: row.body_digest, answer: row.answer };
  }

  async find(id: number): Promise<CommandRecord | null> {
    const row = await this.#commands().where('command.id', '=', id).executeTakeFirst();
    return row === undefined ? null : toRecord(row);
  }

  async list({ merchantId, deviceId, state, beforeId, limit }: CommandFilter): Promise<CommandRecord[]> {
    let query = this.#commands().orderBy('command.id', 'desc').limit(limit);
    if (deviceId !== undefined) query = query.where('command.device_id', '=', deviceId);
    if (state !== undefined) query = query.where('command.state', '=', state);
    if (merchantId !== undefined) query = query.where('command.merchant_id', '=', merchantId);
    if (beforeId !== undefined) query = query.where('command.id', '<', beforeId);
    return (await query.execute()).map(toRecord);
  }

  async readUnfinished(deviceIds?: readonly number[], sinceMs?: number): Promise<CommandRecord[]> {
    // An empty list is no valid SQL.
    if (deviceIds?.length === 0) return [];
    let query = this.#commands().where('command.state', 'in', UNFINISHED);
    if (deviceIds !== undefined) query = query.where('command.device_id', 'in', deviceIds);
    if (sinceMs !== undefined) query = query.where('command.created_at_ms', '>=', sinceMs);
    return (await query.orderBy('command.id').execute()).map(toRecord);
  }

  async expire(ids: readonly number[], atMs: number): Promise<number[]> {
    const expired = await this.#mutex.runExclusive(() =>
      this.#writer.transaction().execute(async (db) => {
        const endedIds: number[] = [];
        for (const chunk of chunksOf(ids)) {
          const rows = await db
            .updateTable('command')
            .set({ state: 'expired', finished_at_ms: atMs })
            .where('id', 'in', chunk)
            .where('state', 'in', UNFINISHED)
            .returning('id')
            .execute();
          endedIds.push(...rows.map(({ id }) => id));
        }
        return endedIds;
      }),
    );
    await this.#onEnded();
    return expired;
  }

  postpone(ids: readonly number[], byMs: number): Promise<void> {
    return this.#mutex.runExclusive(() =>
      this.#writer.transaction().execute(async (db) => {
        for (const chunk of chunksOf(ids))
          await db
            .updateTable('command')
            .set(({ eb }) => ({
              created_at_ms: eb('created_at_ms', '+', byMs),
              expires_at_ms: eb('expires_at_ms', '+', byMs),
            }))
            .where('id', 'in', chunk)
            .where('state', 'in', UNFINISHED)
            .execute();
      }),
    );
  }

  async cancel(id: number, atMs: number): Promise<boolean> {
    const { numUpdatedRows } = await this.#mutex.runExclusive(() =>
      this.#writer
        .updateTable('command')
        .set({ state: 'cancelled', finished_at_ms: atMs })
        .where('id', '=', id)
        .where('state', '=', 'queued')
        .executeTakeFirst(),
    );
    await this.#onEnded();
    return numUpdatedRows > 0n;
  }

  async readPowerChanges(deviceId: number, nowMs: number, limit: number): Promise<PowerChange[]> {
    const rows = await this.#reader
      .selectFrom('command')
      .innerJoin('device', 'device.id', 'command.device_id')
      .select(['parameters'])
      .where('device_id', '=', deviceId)
      // Commands of a merchant that had the lock earlier don't count.
      .whereRef('command.merchant_id', '=', 'device.merchant_id')
      .where('type', '=', 'set-power')
      .where('state', 'in', ['queued', 'sent', 'done'])
      .where((where) => where.or([where('not_before_ms', 'is', null), where('not_before_ms', '<=', nowMs)]))
      .orderBy((order) => order.fn.coalesce('not_before_ms', 'command.created_at_ms'), 'desc')
      .orderBy('command.id', 'desc')
      .limit(limit)
      .execute();
    return rows.map(({ parameters }) => JSON.parse(parameters) as PowerChange);
  }

  #commands() {
    return commandsIn(this.#reader);
  }
}

/** A query for commands with the MACs of their locks. */
function commandsIn(db: Kysely<Tables>) {
  return db
    .selectFrom('command')
    .innerJoin('device', 'device.id', 'command.device_id')
    .selectAll('command')
    .select('device.mac');
}

/** Inserts commands, and returns their ids in the given order. @throws LockgateError as {@link CommandStore.add} */
async function insertCommands(db: Transaction<Tables>, commands: readonly NewCommand[]): Promise<number[]> {
  const addedIds: number[] = [];
  await checkTargets(db, commands);
  for (const chunk of chunksOf(commands)) {
    const added = await db.insertInto('command').values(chunk.map(toRow)).returning('id').execute();
    // Rows of one INSERT get ascending ids, but RETURNING may list them in any order.
    addedIds.push(...added.map(({ id }) => id).sort((a, b) => a - b));
  }
  if ((addedIds.at(-1) ?? 0) > MAX_COMMAND_ID)
    throw new LockgateError('commands-exhausted', `command ids end at ${MAX_COMMAND_ID}, and all are used`);
  return addedIds;
}

/** Deletes the oldest answers whose keys are no longer valid, and the one with the call's key if it is among them. */
async function deleteOldAnswers(
  db: Transaction<Tables>,
  { merchantId, route, key, nowMs }: IdempotentCall,
): Promise<void> {
  const oldestValidMs = nowMs - IDEMPOTENCY_LIFETIME;
  const oldest = db
    .selectFrom('idempotent_answer')
    .select('id')
    .where('created_at_ms', '<=', oldestValidMs)
    .orderBy('created_at_ms')
    .limit(MAX_ROWS_PER_STATEMENT);
  await db.deleteFrom('idempotent_answer').where('id', 'in', oldest).execute();
  await db
    .deleteFrom('idempotent_answer')
    .where('merchant_id', '=', merchantId)
    .where('route', '=', route)
    .where('key', '=', key)
    .where('created_at_ms', '<=', oldestValidMs)
    .execute();
}

/** Cancels all unfinished commands of one lock, in the transaction of `db` if it has one. */
export async function cancelUnfinished(db: Kysely<Tables>, deviceId: number, atMs: number): Promise<void> {
  await db
    .updateTable('command')
    .set({ state: 'cancelled', finished_at_ms: atMs })
    .where('device_id', '=', deviceId)
    .where('state', 'in', UNFINISHED)
    .execute();
}

/**
 * Checks that each lock is in service and still belongs to the merchant of the command. A lock that was removed or
 * moved since the request had its unfinished commands cancelled, and must not get a new one.
 *
 * @throws LockgateError `no-such-device`
 */
async function checkTargets(db: Transaction<Tables>, commands: readonly NewCommand[]): Promise<void> {
  const merchantOf = new Map(commands.map(({ deviceId, merchantId }) => [deviceId, merchantId]));
  for (const chunk of chunksOf([...merchantOf.keys()])) {
    const columns = ['id', 'mac', 'merchant_id', 'removed_at_ms'] as const;
    const rows = await db.selectFrom('device').select(columns).where('id', 'in', chunk).execute();
    const unavailable = rows.find((row) => row.removed_at_ms !== null || row.merchant_id !== merchantOf.get(row.id));
    if (unavailable !== undefined) throw noSuchDevice(unavailable.mac as Mac);
    if (rows.length < chunk.length) throw new Error('a command names a device that the store never had');
  }
}

function* chunksOf<T>(items: readonly T[]): Generator<T[]> {
  for (let start = 0; start < items.length; start += MAX_ROWS_PER_STATEMENT)
    yield items.slice(start, start + MAX_ROWS_PER_STATEMENT);
}

function toRow({ command, ...request }: NewCommand): Insertable<CommandTable> {
  const { type, ...parameters } = command;
  return {
    device_id: request.deviceId,
    merchant_id: request.merchantId,
    type,
    parameters: JSON.stringify(parameters),
    state: 'queued',
    created_at_ms: request.createdAtMs,
    not_before_ms: request.notBeforeMs,
    expires_at_ms: request.expiresAtMs,
    first_sent_at_ms: null,
    last_sent_at_ms: null,
    sent_count: 0,
    finished_at_ms: null,
    detail: '',
    asked_by: request.askedBy,
  };
}

function toRecord(row: Selectable<CommandTable> & { mac: string }): CommandRecord {
  return {
    id: row.id,
    deviceId: row.device_id,
    merchantId: row.merchant_id,
    mac: row.mac as Mac,
    command: { type: row.type, ...JSON.parse(row.parameters) } as Command,
    state: row.state,
    createdAtMs: row.created_at_ms,
    notBeforeMs: row.not_before_ms,
    expiresAtMs: row.expires_at_ms,
    firstSentAtMs: row.first_sent_at_ms,
    lastSentAtMs: row.last_sent_at_ms,
    sentCount: row.sent_count,
    finishedAtMs: row.finished_at_ms,
    detail: row.detail,
    askedBy: row.asked_by,
  };
}
