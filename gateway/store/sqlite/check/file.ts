/** SQLite's checks of a file (pages, indexes, foreign keys), and a comparison of its schema with the expected one. */
import type { SchemaItem } from '../schema-version.js';
import type { CheckContext, CheckOutcome } from './context.js';
import { MAX_DAMAGE_LISTED } from './context.js';

/** Runs SQLite's integrity check of pages, trees and indexes. */
export function checkPages({ db, damage }: CheckContext): CheckOutcome {
  const lines = db.prepare(`PRAGMA integrity_check(${MAX_DAMAGE_LISTED})`).pluck().all() as string[];
  for (const line of lines) {
    if (line === 'ok') continue;
    const [, row = null, index = null] = /^row (\d+) missing from index (\S+)/.exec(line) ?? [];
    damage(index === null ? null : tableOf(db, index), row, line.replaceAll('\n', ' '));
  }
  return { count: Number(db.pragma('page_count', { simple: true })) };
}

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
  const actual = db.prepare('SELECT type, name, sql FROM sqlite_master').all() as SchemaItem[];
  const sqlByName = new Map(actual.map(({ name, sql }) => [name, sql]));
  for (const { type, name, sql } of expected) {
    if (!sqlByName.has(name)) damage(null, null, `the ${type} ${name} is missing`);
    else if (sqlByName.get(name) !== sql) damage(null, null, `the ${type} ${name} differs from this version's`);
  }
  const names = new Set(expected.map(({ name }) => name));
  for (const { type, name } of actual) if (!names.has(name)) damage(null, null, `there is an unknown ${type} ${name}`);
  const sequences = db.prepare('SELECT name, seq FROM sqlite_sequence').all() as { name: string; seq: number }[];
  for (const { name, seq } of sequences) {
    const lastId = names.has(name) ? Number(db.prepare(`SELECT max(rowid) FROM "${name}"`).pluck().get() ?? 0) : null;
    if (lastId === null || !(seq >= lastId))
      damage(
        'sqlite_sequence',
        name,
        `the last assigned id is ${seq}, but the table ${lastId === null ? 'does not exist' : `has ${lastId}`}`,
      );
  }
  return { count: expected.length + sequences.length };
}
