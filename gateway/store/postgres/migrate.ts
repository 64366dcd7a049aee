/**
 * Brings a database's schema to this version: each missing step in a transaction, under an advisory lock, so that
 * gateways that start together wait for each other.
 */
import type { Client } from 'pg';
import { Seconds, systemClock } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import { withClient } from './connections/connections.js';
import { isLockTimeout, LIMIT_LOCK_WAIT } from './lock-wait.js';
import { STEPS, type Step } from './migrations.js';

/** The first of the two numbers of this program's advisory locks: arbitrary, so that no other program has it. */
export const ADVISORY_LOCKS = 0x10c6a7e;
/** The second number of the lock under which the schema is changed. */
const MIGRATION_LOCK = 1;

/** How often a step is tried that others keep from being made, and the wait between two tries: it doubles. */
const MAX_TRIES = 12;
const FIRST_WAIT = Seconds(0.5);
const MAX_WAIT = Seconds(8);

/**
 * Brings the schema of a database to this version, or makes it. Gateways of the version before may be at work
 * meanwhile: a step that needs a table which others read soon gives up, so that their commits go on, and is tried again
 * for about a minute.
 *
 * @throws LockgateError `store-newer` if a newer version made the schema; `store-foreign` if it looks like another
 *   program's, since it has a table with the name of one of ours; `data-in-use` if others read a table for too long
 */
export async function migrate(url: string): Promise<void> {
  await withClient(url, async (client) => {
    // It is held until the connection ends, over all tries: gateways that start together wait for the first one.
    await client.query(`SET lock_timeout = '2min'`);
    await client.query('SELECT pg_advisory_lock($1, $2)', [ADVISORY_LOCKS, MIGRATION_LOCK]);
    const applied = await readApplied(client);
    for (const step of STEPS) if (!applied.has(step.name)) await applyPatiently(client, step);
  });
}

/** The steps that the database has. It is made ready for the first one if it is empty. */
async function readApplied(client: Client): Promise<Set<string>> {
  const { rows: present } = await client.query(
    `SELECT to_regclass('lockgate_migration') IS NOT NULL AS is_ours,
       to_regclass('merchant') IS NOT NULL AS has_tables`,
  );
  const { is_ours: isOurs, has_tables: hasTables } = present[0] as { is_ours: boolean; has_tables: boolean };
  if (!isOurs && hasTables)
    throw new LockgateError('store-foreign', 'the database has tables of another program: use another database');
  if (!isOurs)
    await client.query(
      'CREATE TABLE lockgate_migration (name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())',
    );
  const { rows } = await client.query('SELECT name FROM lockgate_migration');
  const applied = new Set((rows as { name: string }[]).map(({ name }) => name));
  const unknown = [...applied].find((name) => STEPS.every((step) => step.name !== name));
  if (unknown !== undefined)
    throw new LockgateError('store-newer', `a newer version of lockgate wrote the database: it has ${unknown}`);
  return applied;
}

async function applyPatiently(client: Client, step: Step): Promise<void> {
  for (let [tries, wait] = [1, FIRST_WAIT]; ; tries += 1, wait = Math.min(2 * wait, MAX_WAIT))
    try {
      await apply(client, step);
      return;
    } catch (error) {
      await client.query('ROLLBACK').catch(() => undefined);
      if (!isLockTimeout(error)) throw error;
      if (tries === MAX_TRIES)
        throw new LockgateError(
          'data-in-use',
          `${step.name} of the schema can’t be made, since the database’s tables are being read, as a dump does`,
        );
      await new Promise<void>((resolve) => systemClock.after(wait, resolve));
    }
}

/** Applies a step in a transaction. */
async function apply(client: Client, { name, sql }: Step): Promise<void> {
  await client.query('BEGIN');
  await client.query(LIMIT_LOCK_WAIT);
  await client.query(sql);
  await client.query('INSERT INTO lockgate_migration (name) VALUES ($1)', [name]);
  await client.query('COMMIT');
}
