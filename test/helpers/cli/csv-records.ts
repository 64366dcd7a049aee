import { readFileSync } from 'node:fs';
import { parse } from 'csv-parse/sync';

/** Reads the records of a CSV file. */
export function readCsv(file: string): readonly (readonly string[])[] {
  return parse(readFileSync(file, 'utf8')) as string[][];
}
