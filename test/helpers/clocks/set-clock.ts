/**
 * A machine's clock that a test sets while programs run: libfaketime gives the programs the date from a file. The
 * monotonic clock, and so every timer, stays real, as when a real machine's clock is set.
 */
import { existsSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Teardown, tempFolder } from '../store/temp-folder.js';

/** The library for programs with several threads, which replaces the functions that read the system's clock. */
const LIBRARY = 'libfaketimeMT.so.1';

/** The path of the library of Debian's package `faketime`; undefined if it is not installed. */
export function faketimeLibrary(): string | undefined {
  const folders = ['/usr/lib/faketime', '/usr/local/lib/faketime'];
  if (existsSync('/usr/lib'))
    for (const name of readdirSync('/usr/lib')) folders.push(path.join('/usr/lib', name, 'faketime'));
  return folders.map((folder) => path.join(folder, LIBRARY)).find((file) => existsSync(file));
}

/** Why a test that sets the clock can't run here; undefined if it can. */
export function whyNoSetClock(): string | undefined {
  return faketimeLibrary() === undefined ? 'libfaketime is not installed (Debian package faketime)' : undefined;
}

/** The date of the programs that are started with {@link environment}. */
export class SetClock {
  readonly #file: string;

  /** The clock shows the real time until {@link set} is called. */
  constructor(test: Teardown) {
    this.#file = path.join(tempFolder(test), 'clock');
    this.set('+0');
  }

  /**
   * The environment variables that give a program this clock. libfaketime reads the file again each second, and leaves
   * the times of files as they are.
   */
  get environment(): NodeJS.ProcessEnv {
    return {
      LD_PRELOAD: faketimeLibrary(),
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      FAKETIME_CACHE_DURATION: '1',
      NO_FAKE_STAT: '1',
    };
  }

  /** Sets the clock's offset from the real time, such as `+401d`, `-1h`, `-10y`. Programs see it within two seconds. */
  set(offset: string): void {
    writeFileSync(`${this.#file}.next`, `${offset}\n`);
    renameSync(`${this.#file}.next`, this.#file);
  }
}
