/**
 * Reads the list of locks for `device import`: CSV with a MAC per line, and optionally a merchant, a name and labels.
 * The cells are separated by commas or semicolons, as spreadsheets write them. The error names the bad lines (at most
 * twenty), not only the first, so that a list can be fixed at once.
 */
import { readFileSync, statSync } from 'node:fs';
import { CsvError, parse } from 'csv-parse/sync';
import { type Labels, nameFault, parseLabels } from '../../../gateway/store/contract/devices/device-labels.js';
import { LockgateError } from '../../../proto/errors.js';
import { formatMac, type Mac, parseMac } from '../../../proto/wire/mac.js';

/** The gateway refuses to add more locks at once. */
const MAX_LOCKS = 100_000;
const MAX_LIST_BYTES = 16 * 1024 * 1024;
const MAX_LINE_CHARACTERS = 10_000;
/** The error names at most this many bad lines, and counts the remaining ones. */
const MAX_NAMED_FAULTS = 20;
const COLUMNS = ['mac', 'merchant', 'name', 'labels'];
/** Without a header only these are expected. */
const UNNAMED_COLUMNS = ['mac', 'merchant'];

/** One lock of the list. */
export interface ListedLock {
  readonly mac: Mac;
  /** The merchant's name. */
  readonly merchant?: string;
  readonly name?: string;
  readonly labels?: Labels;
  /** The number of its line, from 1. */
  readonly line: number;
}

/** A bad line and what is wrong with it. */
export interface LineFault {
  readonly line: number;
  readonly message: string;
}

/** A row of csv-parse with the number of its line. */
interface CsvRecord {
  readonly info: { readonly lines: number };
  readonly record: readonly string[];
}

/** Reads the list. @throws LockgateError `input-import` with the file, and each bad line with what was expected */
export function readImportList(file: string): ListedLock[] {
  const name = file === '-' ? 'standard input' : file;
  const [first, ...rest] = readRecords(name, readText(file));
  if (first === undefined) throw new LockgateError('input-import', `${name} lists no locks: expected one MAC per line`);
  const columns = readHeader(name, first);
  const records = columns === undefined ? [first, ...rest] : rest;
  const locks: ListedLock[] = [];
  const faults: LineFault[] = [];
  const firstLineOf = new Map<Mac, number>();
  for (const { info, record } of records) {
    const lock = readLine(record, columns ?? UNNAMED_COLUMNS, info.lines);
    if ('message' in lock) faults.push(lock);
    else {
      const firstLine = firstLineOf.get(lock.mac);
      if (firstLine === undefined) firstLineOf.set(lock.mac, lock.line);
      else faults.push({ line: lock.line, message: duplicateText(lock.mac, firstLine) });
      locks.push(lock);
    }
  }
  if (faults.length > 0) throw badLines(name, faults);
  if (locks.length === 0) throw new LockgateError('input-import', `${name} lists no locks below its header`);
  if (locks.length > MAX_LOCKS)
    throw new LockgateError('input-import', `${name} lists ${locks.length} locks: at most ${MAX_LOCKS} at once`);
  return locks;
}

/** One error for all bad lines. */
export function badLines(name: string, faults: readonly LineFault[]): LockgateError {
  const reported = faults.slice(0, MAX_NAMED_FAULTS).map(({ line, message }) => `${name}:${line}: ${message}`);
  if (faults.length > MAX_NAMED_FAULTS) reported.push(`and ${faults.length - MAX_NAMED_FAULTS} more bad lines`);
  return new LockgateError('input-import', `no lock was added. ${reported.join('; ')}`);
}

function duplicateText(mac: Mac, firstLine: number): string {
  return `${formatMac(mac)} is already in line ${firstLine}: expected each lock once`;
}

/** The columns of the header; undefined if the first line is not a header. */
function readHeader(name: string, { info, record }: CsvRecord): readonly string[] | undefined {
  const columns = record.map((cell) => cell.toLowerCase());
  if (!columns.includes('mac')) return undefined;
  const unexpected = columns.find((column, index) => !COLUMNS.includes(column) || columns.indexOf(column) !== index);
  if (unexpected === undefined) return columns;
  const message = `column ${JSON.stringify(unexpected)}: expected mac, and maybe merchant, name and labels, once each`;
  throw badLines(name, [{ line: info.lines, message }]);
}

/** A lock, or what is wrong with its line. */
function readLine(record: readonly string[], columns: readonly string[], line: number): ListedLock | LineFault {
  if (record.slice(columns.length).some((cell) => cell !== ''))
    return { line, message: `${record.length} cells: expected ${columns.join(',')}` };
  const mac = parseMac(record[columns.indexOf('mac')] ?? '');
  if (!mac.ok) return { line, message: mac.error.message };
  const cell = (column: string): string => record[columns.indexOf(column)] ?? '';
  const [merchant, name] = [cell('merchant'), cell('name')];
  const fault = nameFault(name);
  if (fault !== undefined) return { line, message: `the name: ${fault}` };
  const labels = parseLabels(cell('labels'));
  if (typeof labels === 'string') return { line, message: labels };
  const isLabelled = Object.keys(labels).length > 0;
  return {
    mac: mac.value,
    line,
    ...(merchant !== '' && { merchant }),
    ...(name !== '' && { name }),
    ...(isLabelled && { labels }),
  };
}

/** A comma or a semicolon: whichever comes first in the first line, outside quotes. */
function delimiterOf(text: string): string {
  const [firstLine = ''] = text.trimStart().split(/\r?\n/, 1);
  return /[,;]/.exec(firstLine.replaceAll(/"[^"]*"/g, ''))?.[0] ?? ',';
}

function readRecords(name: string, text: string): CsvRecord[] {
  try {
    // With `info` each record comes with its line, which the types of csv-parse don't say: hence the cast.
    return parse(text, {
      bom: true,
      delimiter: delimiterOf(text),
      trim: true,
      info: true,
      skip_empty_lines: true,
      skip_records_with_empty_values: true,
      relax_column_count: true,
      max_record_size: MAX_LINE_CHARACTERS,
    }) as unknown as CsvRecord[];
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const line = typeof error.lines === 'number' ? error.lines : 1;
    throw badLines(name, [{ line, message: `not CSV: ${error.message}` }]);
  }
}

function readText(file: string): string {
  try {
    if (file !== '-' && statSync(file).size > MAX_LIST_BYTES) throw tooLong(file);
    const text = readFileSync(file === '-' ? 0 : file, 'utf8');
    if (text.length > MAX_LIST_BYTES) throw tooLong(file);
    return text;
  } catch (error) {
    if (error instanceof LockgateError) throw error;
    throw new LockgateError('input-import', `${file} can’t be read: ${(error as Error).message}`);
  }
}

function tooLong(file: string): LockgateError {
  return new LockgateError('input-import', `${file} has more than ${MAX_LIST_BYTES / 1024 / 1024} MiB`);
}
