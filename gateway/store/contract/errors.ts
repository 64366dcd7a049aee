/** The errors of a store: failures of an engine (StoreFailure), and requests for missing rows (`no-such-…`). */
import { LockgateError } from '../../../proto/errors.js';
import { formatMac, type Mac } from '../../../proto/wire/mac.js';

/**
 * The kind of a failure. Each kind has a different remedy: a full disk may get room again (`full`), another process may
 * release the file or the row (`busy`), a database that can't be reached may come back (`away`), but after an I/O error
 * (`io`) the state of the disk is unknown. With `fenced`, nothing is stored any more for this process, which must end:
 * another process has taken over its slot (slots/ownership.ts), the database was failed over or restored
 * (`store-changed`), or it no longer stores durably (`store-unsafe`). With `other`, what was written may be the cause.
 */
export type StoreFailureKind = 'full' | 'io' | 'busy' | 'away' | 'fenced' | 'other';

/** The store could not read or write: disk full, I/O error, file damaged. The caller must not acknowledge anything. */
export class StoreFailure extends Error {
  readonly kind: StoreFailureKind;

  /** @param what completes the sentence "the store could not …" @param cause what the engine threw */
  constructor(what: string, cause: unknown) {
    super(`the store could not ${what}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.name = 'StoreFailure';
    this.kind = failureKind(cause);
  }
}

/**
 * Error codes by kind: SQLite's (sqlite.org/rescode.html), PostgreSQL's
 * (postgresql.org/docs/15/errcodes-appendix.html), the system's, and those of this project's engines (`LOCKGATE_…`,
 * `store-…`). A new engine adds its codes here.
 */
const FAILURE_CODES: Readonly<Record<Exclude<StoreFailureKind, 'other'>, RegExp>> = {
  // SHMSIZE: SQLite could not extend its shared-memory file. No write failed; the disk is full.
  // 53100: PostgreSQL's disk.
  full: /^(SQLITE_FULL|SQLITE_IOERR_SHMSIZE|ENOSPC|53100)$/,
  io: /^(SQLITE_(IOERR|CORRUPT|NOTADB).*|EIO)$/,
  // 40001 and 40P01: two transactions were in each other's way; 55P03: a row stayed locked for too long.
  busy: /^(SQLITE_(BUSY|LOCKED).*|40001|40P01|55P03)$/,
  // 08: the connection failed; 25006: the server takes no writes; 53300: it has no free connection; 57P0x: it stops,
  // has crashed, or starts.
  away: /^(08...|25006|53300|57P0[1-4]|E(CONN|HOST|NET)[A-Z]+|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|LOCKGATE_NO_ANSWER)$/,
  fenced: /^(LOCKGATE_FENCED|store-(fenced|changed|unsafe))$/,
};

const KINDS = Object.keys(FAILURE_CODES) as (keyof typeof FAILURE_CODES)[];

/** What PostgreSQL's driver (pg, pg-pool) says, without a code, about a connection that it lost or could not get. */
const LOST_CONNECTION = new RegExp(
  `^(${[
    'timeout exceeded when trying to connect',
    'timeout expired',
    'Connection terminated',
    'Connection terminated unexpectedly',
    'Connection terminated due to connection timeout',
    'Client has encountered a connection error and is not queryable',
    'Client was closed and is not queryable',
  ].join('|')})$`,
);

/** Returns the kind of an error that an engine threw, by its `code`; a driver's without a code by its message. */
export function failureKind(error: unknown): StoreFailureKind {
  if (error instanceof StoreFailure) return error.kind;
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  if (typeof code === 'string') return KINDS.find((kind) => FAILURE_CODES[kind].test(code)) ?? 'other';
  return error instanceof Error && LOST_CONNECTION.test(String(message)) ? 'away' : 'other';
}

/**
 * The codes of an engine that can't store a text with the character U+0000: PostgreSQL's, for texts and for JSON; and
 * the code of {@link unstorableText}.
 */
const UNSTORABLE_TEXT = /^(22021|22P05|input-text)$/;

/** The error for a caller's text that the engine can't store. */
export function unstorableText(cause?: unknown): LockgateError {
  return new LockgateError('input-text', 'a text has the character U+0000, which the store can’t hold', { cause });
}

/** Whether an engine refused a text, of a write or of a search, because it has the character U+0000. */
export function isUnstorableText(error: unknown): boolean {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: unknown };
  return (typeof code === 'string' && UNSTORABLE_TEXT.test(code)) || (cause !== undefined && isUnstorableText(cause));
}

/** Converts an error of opening a store: an engine's error becomes a {@link StoreFailure}; others are unchanged. */
export function openFailure(error: unknown): unknown {
  if (error instanceof LockgateError || error instanceof StoreFailure || failureKind(error) === 'other') return error;
  return new StoreFailure('open', error);
}

/** The error for a MAC that no device in service (registered and not removed) has. */
export function noSuchDevice(mac: Mac): LockgateError {
  return new LockgateError('no-such-device', `there is no device ${formatMac(mac)}`);
}

/** The error for a name that no merchant has. */
export function noSuchMerchant(name: string): LockgateError {
  return new LockgateError('no-such-merchant', `there is no merchant named ${JSON.stringify(name)}`);
}

/** The error for an id that no webhook URL has. */
export function noSuchWebhook(urlId: number): LockgateError {
  return new LockgateError('no-such-webhook', `there is no webhook URL ${urlId}`);
}

/** The error for something that a closed merchant can't have or do. */
export function merchantClosed(name: string): LockgateError {
  return new LockgateError('merchant-closed', `the merchant ${JSON.stringify(name)} is closed: reopen it first`);
}
