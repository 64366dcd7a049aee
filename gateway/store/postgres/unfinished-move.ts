/** The mark of a move to this database (`db move`) that was not finished, so that it may still be emptied again. */
import { LockgateError } from '../../../proto/errors.js';
import { MOVING_METADATA } from '../move/moved-tables.js';
import type { Sql } from './sql.js';

/** The id of the move; null if there is none. */
export async function readUnfinishedMove(sql: Sql): Promise<string | null> {
  const row = await sql.get<{ value: string }>('SELECT value FROM fact WHERE name = @name', { name: MOVING_METADATA });
  return row?.value ?? null;
}

/** @throws LockgateError `move-unfinished` */
export async function refuseUnfinishedMove(sql: Sql): Promise<void> {
  if ((await readUnfinishedMove(sql)) !== null)
    throw new LockgateError(
      'move-unfinished',
      'a store is being moved to this database, or the move was interrupted: run the same “lockgate db move” again',
    );
}
