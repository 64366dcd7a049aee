/** The version of lockgate, read from its package.json. */
import { readFileSync } from 'node:fs';

/** Reads the nearest package.json above this file: the same file from the sources and from `dist`. */
function readVersion(): string {
  for (const up of ['../package.json', '../../package.json']) {
    try {
      const { name, version } = JSON.parse(readFileSync(new URL(up, import.meta.url), 'utf8')) as Record<
        string,
        string
      >;
      if (name === 'lockgate' && version !== undefined) return version;
    } catch {
      // Not there: `dist` has no package.json.
    }
  }
  throw new Error('package.json is missing');
}

/** The version of lockgate, as in package.json. */
export const VERSION: string = readVersion();
