/**
 * `lockgate device import`: adds a list of locks and writes their secrets. The file for the secrets is created before
 * any lock is added, so that no secret is lost. Only its owner can read it, and it must not replace an existing file.
 */
import { closeSync, fsyncSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { stringify } from 'csv-stringify/sync';
import { LockgateError } from '../../../proto/errors.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { type ConnectionFlags, GatewayClient, GatewayRefusal } from '../../client.js';
import { print, printJson, printNote } from '../../terminal/output.js';
import { ProgressLine } from '../../terminal/progress-line.js';
import { badLines, type LineFault, type ListedLock, readImportList } from './import-list.js';

/** The flags of `lockgate device import`. */
export interface ImportFlags extends ConnectionFlags {
  readonly json?: boolean;
  readonly merchant?: string;
  readonly simulated?: boolean;
  readonly out?: string;
}

/** An added lock with its secret. */
interface AddedLock {
  readonly mac: string;
  readonly merchant: string;
  readonly secret: string;
}

/**
 * Adds the locks and writes their secrets.
 *
 * @throws LockgateError `input-import` for a bad list, `input-out` if the file can't be created, or the gateway's error
 */
export async function importLocks(file: string, flags: ImportFlags): Promise<void> {
  const locks = readImportList(file);
  const descriptor = flags.out === undefined ? undefined : openNew(flags.out);
  try {
    const added = await addOrRemoveFile(file, locks, flags);
    if (flags.out !== undefined && descriptor !== undefined) writeSecrets(flags.out, descriptor, added);
    report(added, flags);
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** Adds the locks. If the gateway refuses or its answer is lost, removes the file for the secrets. */
async function addOrRemoveFile(
  file: string,
  locks: readonly ListedLock[],
  flags: ImportFlags,
): Promise<readonly AddedLock[]> {
  const progress = new ProgressLine(() => `adding ${locks.length} locks`);
  try {
    return await addLocks(file, locks, flags);
  } catch (error) {
    // There are no secrets to write: they come only with the gateway's answer.
    if (flags.out !== undefined) rmSync(flags.out, { force: true });
    throw error;
  } finally {
    progress.end();
  }
}

/** Adds the locks. @throws LockgateError `input-import` with the lines that the gateway refuses, or its error */
async function addLocks(file: string, locks: readonly ListedLock[], flags: ImportFlags): Promise<readonly AddedLock[]> {
  const { merchant, simulated } = flags;
  try {
    const answer = await new GatewayClient(flags).post<{ devices: readonly AddedLock[] }>('/devices/import', {
      devices: locks.map((lock) => ({
        mac: formatMac(lock.mac),
        ...(lock.merchant !== undefined && { merchant: lock.merchant }),
        ...(lock.name !== undefined && { name: lock.name }),
        ...(lock.labels !== undefined && { labels: lock.labels }),
      })),
      ...(merchant !== undefined && { merchant }),
      ...(simulated === true && { simulated }),
    });
    return answer.devices;
  } catch (error) {
    const faults = error instanceof GatewayRefusal ? lineFaults(error, locks) : [];
    if (faults.length > 0) throw badLines(file === '-' ? 'standard input' : file, faults);
    throw error;
  }
}

/** The gateway's errors about single locks, by their lines in the list. */
function lineFaults({ errors }: GatewayRefusal, locks: readonly ListedLock[]): LineFault[] {
  return errors.flatMap(({ pointer, detail }) => {
    const index = /^\/devices\/(\d+)\//.exec(pointer)?.[1];
    const line = index === undefined ? undefined : locks[Number(index)]?.line;
    return line === undefined ? [] : [{ line, message: detail }];
  });
}

/** Creates a file that only its owner can read. Returns its descriptor. */
function openNew(file: string): number {
  try {
    return openSync(file, 'wx', 0o600);
  } catch (error) {
    const exists = (error as NodeJS.ErrnoException).code === 'EEXIST';
    const why = exists ? 'exists already, and is not overwritten' : `can’t be created: ${(error as Error).message}`;
    throw new LockgateError('input-out', `${file} ${why}. No lock was added`);
  }
}

/** Writes the secrets to the disk or, if that fails, to stdout: the gateway never shows them again. */
function writeSecrets(file: string, descriptor: number, added: readonly AddedLock[]): void {
  try {
    writeFileSync(descriptor, csvOf(added));
    fsyncSync(descriptor);
  } catch (error) {
    process.stdout.write(csvOf(added));
    throw new LockgateError(
      'out-unwritten',
      `${file} can’t be written (${(error as Error).message}): the locks were added; their secrets are on the ` +
        'standard output and are shown only once',
    );
  }
}

function csvOf(added: readonly AddedLock[]): string {
  return stringify([['mac', 'secret'], ...added.map(({ mac, secret }) => [mac, secret])]);
}

function report(added: readonly AddedLock[], { out, json }: ImportFlags): void {
  const count = added.length;
  const devices = out === undefined ? added : added.map(({ mac, merchant }) => ({ mac, merchant }));
  if (json) {
    printJson({ imported: count, out: out ?? null, devices });
    return;
  }
  if (out === undefined) process.stdout.write(csvOf(added));
  const what = `Added ${count} ${count === 1 ? 'lock' : 'locks'}`;
  if (out !== undefined) print(`${what}; their secrets are in ${out}, which only you can read.`);
  else printNote(`${what}. The secrets are shown only once.`);
}
