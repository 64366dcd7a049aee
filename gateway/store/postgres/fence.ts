/**
 * The fence in SQL: the row of this process's claim. A statement that writes joins it in each of its parts, so that it
 * writes nothing once another process has ended the claim.
 */
import { LockgateError } from '../../../proto/errors.js';
import type { Claim } from './node-claim.js';
import { plannedOnce, type Sql } from './sql.js';

/** The fence of a commit, as the first part of a WITH. It makes the slot's commits take turns. */
export const FENCE = `f AS (
  SELECT 1 FROM node WHERE slot = @slot AND epoch = @epoch AND session = @session FOR NO KEY UPDATE)`;

/**
 * The fence of other transactions: they do not wait for commits of uplinks, nor these for them. Who ends a claim must
 * lock its row FOR UPDATE, and so waits for these transactions. Rows that name the gateway that wrote them get the
 * epoch from the transaction's setting `lockgate.epoch`.
 */
const SHARED_FENCE = plannedOnce(
  `SELECT set_config('lockgate.epoch', epoch::text, true) AS held FROM node
   WHERE slot = @slot AND epoch = @epoch FOR KEY SHARE`,
);

/** The claim has ended: another process has the slot. This process may store nothing more. */
export class Fenced extends LockgateError {
  constructor() {
    super('store-fenced', 'another gateway has taken over the slot of this one: it must end');
  }
}

/** Takes the shared fence until the end of the transaction. @throws Fenced */
export async function takeSharedFence(sql: Sql, { slot, epoch }: Pick<Claim, 'slot' | 'epoch'>): Promise<void> {
  if ((await sql.get(SHARED_FENCE, { slot, epoch })) === undefined) throw new Fenced();
}
