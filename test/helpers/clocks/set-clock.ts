/**
 * A machine's clock that a test sets while programs run: libfaketime shows them the date that stands in a file. The
 * monotonic clock, and with it every timer, stays the real one, as it does when somebody sets a real machine's clock.
 */
import { existsSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Teardown, tempFolder } from '../store/temp-folder.js';

const LIBRARY = 'libfaketimeMT.so.1';

/** Where Debian's package `faketime` puts its library; undefined where it is not installed. */
export function faketimeLibrary(): string | undefined {
  const folders = ['/usr/lib/faketime', '/usr/local/lib/faketime'];
  if (existsSync('/usr/lib'))
    for (const name of readdirSync('/usr/lib')) folders.push(path.join('/usr/lib', name, 'faketime'));
  return folders.map((folder) => path.join(folder, LIBRARY)).find((file) => existsSync(file));
}

/** Why a test that sets the clock can't run here; undefined where it can. */
export function whyNoSetClock(): string | undefined {
  return faketimeLibrary() === undefined ? 'libfaketime is not installed (Debian package faketime)' : undefined;
}

export class SetClock {
  readonly #file: string;

  /** Set right, until {@link set} says otherwise. */
  constructor(test: Teardown) {
    this.#file = path.join(tempFolder(test), 'clock');
    this.set('+0');
  }

  /** What a program needs in its environment to have this clock. */
  get environment(): NodeJS.ProcessEnv {
    return {
      LD_PRELOAD: faketimeLibrary(),
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      FAKETIME_CACHE_DURATION: '1',
      NO_FAKE_STAT: '1',
    };
  }

  /** Off from the right time by this much, such as `+401d`, `-1h`, `-10y`; seen within a second or two. */
  set(offset: string): void {
    writeFileSync(`${this.#file}.next`, `${offset}\n`);
    renameSync(`${this.#file}.next`, this.#file);
  }
}
