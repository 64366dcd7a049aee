/**
 * Brings a database's schema to this version: all missing steps in one transaction, under an advisory lock, so that
 * gateways that start together wait for each other.
 */
import type { Client } from 'pg';
import { Seconds, systemClock } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import { withClient } from './connections/connections.js';
import { isLockTimeout, LIMIT_LOCK_WAIT } from './lock-wait.js';
import { STEPS } from './migrations.js';

/** The first of the two numbers of this program's advisory locks: arbitrary, so that no other program has it. */
export const ADVISORY_LOCKS = 0x10c6a7e;
/** The second number of the lock under which the schema is changed. */
const MIGRATION_LOCK = 1;

/** How often the steps are tried while others hold them up, and the wait between two tries: it doubles. */
const MAX_TRIES = 12;
const FIRST_WAIT = Seconds(0.5);
const MAX_WAIT = Seconds(8);

/** For how long a start waits for another one that changes the schema, and when the server ends one that is gone. */
const SESSION_SETTINGS = `SET lock_timeout = '2min'; SET idle_session_timeout = '30s'`;

/**
 * Brings the schema of a database to this version, or makes it. Gateways of the version before may be at work
 * meanwhile: where a step needs a table that others read, the steps soon give way, so that commits go on, and are tried
 * again for over a minute.
 *
 * @throws LockgateError `store-newer` if a newer version made the schema; `store-foreign` if it looks like another
 *   program's, since it has a table with the name of one of ours; `data-in-use` if others hold it up for too long
 */
export async function migrate(url: string): Promise<void> {
  await withClient(url, async (client) => {
    await client.query(SESSION_SETTINGS);
    const lock = [ADVISORY_LOCKS, MIGRATION_LOCK];
    // It is held over all tries, so that gateways that start together wait for the first one.
    await client.query('SELECT pg_advisory_lock($1, $2)', lock).catch((error: unknown) => {
      throw isLockTimeout(error) ? heldUp('another gateway has been changing it for over two minutes') : error;
    });
    try {
      await applyPatiently(client);
    } finally {
      await client.query('SELECT pg_advisory_unlock($1, $2)', lock).catch(() => undefined);
    }
  });
}

function heldUp(why: string): LockgateError {
  return new LockgateError('data-in-use', `the database’s schema can’t be changed: ${why}; start again later`);
}

async function applyPatiently(client: Client): Promise<void> {
  for (let [tries, wait] = [1, FIRST_WAIT]; ; tries += 1, wait = Math.min(2 * wait, MAX_WAIT))
    try {
      await applySteps(client);
      return;
    } catch (error) {
      await client.query('ROLLBACK').catch(() => undefined);
      if (!isLockTimeout(error)) throw error;
      if (tries === MAX_TRIES) throw heldUp('others, such as a dump, have been reading its tables for over a minute');
      await new Promise<void>((resolve) => systemClock.after(wait, resolve));
    }
}

/** Applies all missing steps in one transaction. */
async function applySteps(client: Client): Promise<void> {
  await client.query('BEGIN');
  await client.query(LIMIT_LOCK_WAIT);
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
