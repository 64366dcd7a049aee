import { readFileSync } from 'node:fs';
import { parse } from 'csv-parse/sync';

/** The records of a CSV file of ours. */
export function readCsv(file: string): readonly (readonly string[])[] {
  return parse(readFileSync(file, 'utf8')) as string[][];
}
