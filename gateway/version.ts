import { readFileSync } from 'node:fs';

/** The nearest package.json above this file is ours, from the sources and from `dist` alike. */
function readVersion(): string {
  for (const up of ['../package.json', '../../package.json']) {
    try {
      const { name, version } = JSON.parse(readFileSync(new URL(up, import.meta.url), 'utf8')) as Record<
        string,
        string
      >;
      if (name === 'lockgate' && version !== undefined) return version;
    } catch {
      // Not there: `dist` has none of its own.
    }
  }
  throw new Error('package.json is missing');
}

/** The version of lockgate, as in package.json. */
export const VERSION: string = readVersion();
