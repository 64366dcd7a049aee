/**
 * Checks pages and indexes with PostgreSQL's own extension `amcheck`, where an operator has installed it into the
 * database (`CREATE EXTENSION amcheck`) and lets this user run it. Reading every table in the other checks already
 * compares each page with PostgreSQL's checksum, where the cluster has them.
 */
import type { CheckContext, CheckOutcome } from './context.js';

interface Relation {
  readonly name: string;
  readonly is_index: boolean;
}

/** Our tables and B-tree indexes that have pages, in this schema. */
const RELATIONS = `SELECT c.oid::regclass::text AS name, c.relkind = 'i' AS is_index FROM pg_class c
  LEFT JOIN pg_am a ON a.oid = c.relam
  WHERE c.relnamespace = current_schema()::regnamespace
    AND (c.relkind = 'r' OR (c.relkind = 'i' AND a.amname = 'btree')) ORDER BY c.relkind, 1`;

export async function checkPages({ sql, damage, progress }: CheckContext): Promise<CheckOutcome> {
  const state = await sql.get<{ checksums: string; may_check: boolean | null }>(
    `SELECT current_setting('data_checksums') AS checksums,
       (SELECT has_function_privilege(p.oid, 'EXECUTE') FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid
        JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'amcheck'
        WHERE p.proname = 'bt_index_check' AND p.pronargs = 2) AS may_check`,
  );
  const notes = state?.checksums === 'on' ? [] : ['the cluster has no data_checksums'];
  if (state?.may_check !== true) {
    notes.push(state?.may_check === false ? 'the user may not run amcheck' : 'amcheck is not installed');
    return { count: 0, note: notes.join('; ') };
  }
  const relations = await sql.all<Relation>(RELATIONS);
  for (const [index, { name, is_index: isIndex }] of relations.entries()) {
    for (const what of isIndex ? await indexFaults({ sql }, name) : await tableFaults({ sql }, name))
      damage(name, null, what);
    progress(index + 1);
  }
  return { count: relations.length, note: notes.join('; ') || null };
}

/** Checks an index, and that it has every row of its table. */
async function indexFaults({ sql }: Pick<CheckContext, 'sql'>, name: string): Promise<string[]> {
  // A fault is an error, after which the transaction is rolled back to here.
  await sql.run('SAVEPOINT before_index');
  try {
    await sql.get('SELECT bt_index_check(@name::regclass, true)', { name });
    return [];
  } catch (error) {
    await sql.run('ROLLBACK TO before_index');
    return [(error as Error).message];
  }
}

async function tableFaults({ sql }: Pick<CheckContext, 'sql'>, name: string): Promise<string[]> {
  const rows = await sql.all<{ blkno: number; msg: string }>('SELECT blkno, msg FROM verify_heapam(@name::regclass)', {
    name,
  });
  return rows.map(({ blkno, msg }) => `page ${blkno}: ${msg}`);
}
