/**
 * Brings a database's schema to this version: all missing steps in one transaction, under an advisory lock, so that
 * gateways that start together wait for each other.
 */
import type { Client } from 'pg';
import { Seconds, systemClock } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import { withClient } from './connections/connections.js';
import { isLockTimeout, MAX_LOCK_WAIT } from './lock-wait.js';
import { STEPS } from './migrations.js';

/** The first of the two numbers of this program's advisory locks: arbitrary, so that no other program has it. */
export const ADVISORY_LOCKS = 0x10c6a7e;
/** The second number of the lock under which the schema is changed. */
const MIGRATION_LOCK = 1;

/** For how long others may keep the schema from being changed, and how soon it is tried again. */
const MAX_TRIES = 60;
const TRY_INTERVAL = Seconds(1);

/**
 * Brings the schema of a database to this version, or makes it. Gateways of the version before may be at work
 * meanwhile: a step that needs a table which others read gives up after a second, so that their commits go on, and is
 * tried again.
 *
 * @throws LockgateError `store-newer` if a newer version made the schema; `store-foreign` if it looks like another
 *   program's, since it has a table with the name of one of ours; `data-in-use` if others read a table for too long
 */
export async function migrate(url: string): Promise<void> {
  await withClient(url, async (client) => {
    for (let tries = 1; ; tries += 1)
      try {
        await applySteps(client);
        return;
      } catch (error) {
        await client.query('ROLLBACK').catch(() => undefined);
        if (!isLockTimeout(error)) throw error;
        if (tries === MAX_TRIES)
          throw new LockgateError(
            'data-in-use',
            'the database’s schema can’t be changed, since its tables are being read, as a dump does: try again later',
          );
        await new Promise<void>((resolve) => systemClock.after(TRY_INTERVAL, resolve));
      }
  });
}

/** Applies all missing steps in one transaction. */
async function applySteps(client: Client): Promise<void> {
  await client.query('BEGIN');
  await client.query('SELECT pg_advisory_xact_lock($1, $2)', [ADVISORY_LOCKS, MIGRATION_LOCK]);
  await client.query(`SET LOCAL lock_timeout = ${MAX_LOCK_WAIT}`);
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
  for (const { name, sql } of STEPS) {
    if (applied.has(name)) continue;
    await client.query(sql);
    await client.query('INSERT INTO lockgate_migration (name) VALUES ($1)', [name]);
  }
  await client.query('COMMIT');
}
