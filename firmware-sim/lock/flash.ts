/** The flash of simulated locks: the memory that survives a loss of power (protocol.md §1, §2). */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LockgateError } from '../../proto/errors.js';
import type { LockFlash } from '../../proto/power/step/state.js';
import type { Mac } from '../../proto/wire/mac.js';

/** The flash of all locks of a run, each lock's under its MAC. */
export interface Flash {
  /** The content that the lock last saved; undefined for a new lock. */
  load(mac: Mac): LockFlash | undefined;
  /** Saves the content. A lock calls this before it acts on its new state. */
  save(mac: Mac, flash: LockFlash): void;
}

/** A flash in memory, lost with the process: for tests, and for runs that start with new locks. */
export class MemoryFlash implements Flash {
  readonly #flashes = new Map<Mac, LockFlash>();

  load(mac: Mac): LockFlash | undefined {
    return this.#flashes.get(mac);
  }

  save(mac: Mac, flash: LockFlash): void {
    this.#flashes.set(mac, flash);
  }
}

/**
 * One file per lock in a directory, written to a temporary file and renamed. For fleets of up to some hundred locks.
 */
export class DirectoryFlash implements Flash {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
    mkdirSync(directory, { recursive: true, mode: 0o700 });
  }

  /** @throws LockgateError `bad-flash` if the file is not one that a simulated lock wrote */
  load(mac: Mac): LockFlash | undefined {
    const path = this.#fileOf(mac);
    let text: string;
    try {
      text = readFileSync(path, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
    try {
      const flash: LockFlash = JSON.parse(text);
      if (Number.isInteger(flash.boot) && Array.isArray(flash.waiting)) return flash;
    } catch {
      // The error below says what to do.
    }
    throw new LockgateError(
      'bad-flash',
      `${path} is not the flash of a simulated lock: remove it to start with a new lock`,
    );
  }

  save(mac: Mac, flash: LockFlash): void {
    const path = this.#fileOf(mac);
    writeFileSync(`${path}.new`, JSON.stringify(flash), { mode: 0o600 });
    renameSync(`${path}.new`, path);
  }

  #fileOf(mac: Mac): string {
    return join(this.#directory, `${mac}.json`);
  }
}
