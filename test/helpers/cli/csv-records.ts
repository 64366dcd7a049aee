/** Reads CSV files for tests, with a parser that is independent of lockgate's code. */
import { readFileSync } from 'node:fs';
import { parse } from 'csv-parse/sync';

/** Reads the records of a CSV file. */
export function readCsv(file: string): readonly (readonly string[])[] {
  return parse(readFileSync(file, 'utf8')) as string[][];
}
