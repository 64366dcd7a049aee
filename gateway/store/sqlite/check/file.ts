/** SQLite's checks of a file (pages, indexes, foreign keys), and a comparison of its schema with the expected one. */
import { readSchema, type SchemaItem } from '../schema-version.js';
import type { CheckContext, CheckOutcome } from './context.js';
import { MAX_DAMAGE_LISTED } from './context.js';

/** Runs SQLite's integrity check of pages, trees and indexes. */
export function checkPages({ db, damage }: CheckContext): CheckOutcome {
  const lines = db.prepare(`PRAGMA integrity_check(${MAX_DAMAGE_LISTED})`).pluck().all() as string[];
  for (const line of lines) {
    if (line === 'ok') continue;
    // SQLite's sentence about a wrong index: `row 12 missing from index delivery_due`.
    const [, row = null, index = null] = /^row (\d+) missing from index (\S+)/.exec(line) ?? [];
    damage(index === null ? null : tableOf(db, index), row, line.replaceAll('\n', ' '));
  }
  return { count: Number(db.pragma('page_count', { simple: true })) };
}

/** The table of an index; null if the index is unknown. */
function tableOf(db: CheckContext['db'], index: string): string | null {
  const table = db.prepare(`SELECT tbl_name FROM sqlite_master WHERE name = ?`).pluck().get(index);
  return typeof table === 'string' ? table : null;
}

/** Finds rows that refer to missing rows. */
export function checkForeignKeys({ db, damage }: CheckContext): CheckOutcome {
  const rows = db.pragma('foreign_key_check') as { table: string; rowid: number | null; parent: string }[];
  for (const { table, rowid, parent } of rows) damage(table, rowid, `it refers to a missing row of ${parent}`);
  return { count: Number(db.prepare(`SELECT count(*) FROM sqlite_master WHERE type = 'table'`).pluck().get()) };
}

/** Checks that tables, indexes and triggers are those of the file's version, and that no id can be assigned twice. */
export function checkSchema({ db, damage }: CheckContext, expected: readonly SchemaItem[]): CheckOutcome {
  const actual = readSchema(db);
  const itemByName = new Map(actual.map((item) => [item.name, item]));
  for (const item of expected) {
    const found = itemByName.get(item.name);
    if (found === undefined) damage(null, null, `the ${item.type} ${item.name} is missing`);
    else if (found.type !== item.type || found.tbl_name !== item.tbl_name || found.sql !== item.sql)
      damage(null, null, `the ${item.type} ${item.name} differs from this version's`);
  }
  const names = new Set(expected.map(({ name }) => name));
  for (const { type, name } of actual) if (!names.has(name)) damage(null, null, `there is an unknown ${type} ${name}`);
  const sequences = db.prepare('SELECT name, seq FROM sqlite_sequence').all() as { name: string; seq: number }[];
  for (const { name, seq } of sequences) {
    const lastId = names.has(name) ? Number(db.prepare(`SELECT max(rowid) FROM "${name}"`).pluck().get() ?? 0) : null;
    // Negated, so that a damaged `seq` that is no number is reported too.
    if (lastId === null || !(seq >= lastId))
      damage(
        'sqlite_sequence',
        name,
        `the last assigned id is ${seq}, but the table ${lastId === null ? 'does not exist' : `has ${lastId}`}`,
      );
  }
  return { count: expected.length + sequences.length };
}
