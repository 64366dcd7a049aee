/** `lockgate db check`: checks a store or a backup, and prints the checks as a table and each damage as a line. */
import type { CheckReport } from '../../../gateway/store/contract/check-report.js';
import { checkStoreFile, checkStoreInDatabase, storeFileOf } from '../../../gateway/store/store-at-rest.js';
import { readStoreUrl, STORE_URL_FORM } from '../../../gateway/store/store-url.js';
import { LockgateError } from '../../../proto/errors.js';
import { EXIT_CODE } from '../../terminal/exit-codes.js';
import { paint, print, printJson } from '../../terminal/output.js';
import { ProgressLine } from '../../terminal/progress-line.js';
import { printTable } from '../../terminal/table.js';

/** The flags of `lockgate db check`. */
export interface CheckFlags {
  readonly data?: string;
  /** The URL of a database, instead of a file or a folder. */
  readonly store?: string;
  readonly json?: boolean;
}

/** The data folder that a command works on. */
export function dataFolder(flags: { readonly data?: string }): string {
  return flags.data ?? (process.env.LOCKGATE_DATA || './data');
}

/** Returns the URL of a database that a flag names. @throws LockgateError `input-store` */
export function databaseUrl(flag: string, text: string): string {
  const url = readStoreUrl(text);
  // The text is not quoted: it may have a password.
  if (url === undefined)
    throw new LockgateError('input-store', `${flag} is not the URL of a database: expected ${STORE_URL_FORM}`);
  return url;
}

/** Checks a file, a database, or the store in the data folder. Sets exit code 1 if it is damaged. */
export async function checkStore(file: string | undefined, flags: CheckFlags): Promise<void> {
  let progressText = 'Checking';
  const progress = new ProgressLine(() => progressText);
  const onProgress = (what: string, done: number): void => {
    progressText = done === 0 ? `Checking ${what}` : `Checking ${what}: ${done.toLocaleString('en')}`;
  };
  const report = await check(file, flags, onProgress).finally(() => progress.end());
  if (flags.json) printJson(reportJson(report));
  else printReport(report);
  if (damagedOf(report) > 0) process.exitCode = EXIT_CODE.negativeAnswer;
}

async function check(
  file: string | undefined,
  flags: CheckFlags,
  onProgress: (what: string, done: number) => void,
): Promise<CheckReport> {
  if (flags.store === undefined) return await checkStoreFile(file ?? storeFileOf(dataFolder(flags)), onProgress);
  if (file !== undefined || flags.data !== undefined)
    throw new LockgateError('input-store', '--store, --data and a file exclude each other');
  return await checkStoreInDatabase(databaseUrl('--store', flags.store), onProgress);
}

/** The number of damaged places. */
function damagedOf({ checks }: CheckReport): number {
  return checks.reduce((sum, { damaged }) => sum + damaged, 0);
}

function reportJson(report: CheckReport) {
  const { file, bytes, schema, walBytes, checks, damage } = report;
  const damaged = damagedOf(report);
  return {
    file,
    sound: damaged === 0,
    bytes,
    wal_bytes: walBytes,
    schema,
    checks: checks.map(({ name, count, unit, damaged, note }) => ({ name, count, unit, damaged, note })),
    damaged,
    damage,
  };
}

function printReport(report: CheckReport): void {
  const { file, bytes, schema, checks, damage } = report;
  printTable(checks, [
    { title: 'CHECK', show: ({ name }) => name },
    { title: 'CHECKED', show: ({ count, unit }) => `${count.toLocaleString('en')} ${unit}` },
    {
      title: 'DAMAGED',
      show: ({ damaged }) => damaged.toLocaleString('en'),
      mark: ({ damaged }) => (damaged === 0 ? 'good' : 'bad'),
    },
    { title: 'NOTE', show: ({ note }) => note ?? '', optional: true },
  ]);
  for (const { check, table, row, what } of damage) {
    const location = [table, row === null ? null : `row ${row}`].filter((part) => part !== null).join(', ');
    print(`${paint('red', check)}${location === '' ? '' : `  ${location}`}: ${what}`);
  }
  const damaged = damagedOf(report);
  const unlisted = damaged - damage.length;
  if (unlisted > 0) print(`… and ${unlisted.toLocaleString('en')} more.`);
  const described = `${file} (${bytes.toLocaleString('en')} bytes, schema ${schema ?? 'unknown'})`;
  if (damaged === 0) print(paint('green', `Intact: ${described}.`));
  else {
    const places = damaged === 1 ? 'one place' : `${damaged.toLocaleString('en')} places`;
    print(paint('red', `Damaged in ${places}: ${described}. Restore an intact backup.`));
  }
}
