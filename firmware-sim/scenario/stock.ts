/** The scenarios that come with the simulator: files in scenarios/, beside the sources, found from wherever one is. */
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { didYouMean } from '../../proto/did-you-mean.js';
import { LockgateError } from '../../proto/errors.js';

/** The folder. It holds no code and is not compiled, so it is looked for from the root of the package. */
export const STOCK_FOLDER = fileURLToPath(new URL('../../../firmware-sim/scenarios/', import.meta.url));

/** Their names, in the order of the alphabet. */
export function stockNames(): string[] {
  return readdirSync(STOCK_FOLDER)
    .filter((file) => file.endsWith('.yaml'))
    .map((file) => file.slice(0, -'.yaml'.length))
    .sort();
}

/** The file of a stock scenario by its name. @throws LockgateError `input-scenario` where there is none of that name */
export function stockFile(name: string): string {
  const names = stockNames();
  if (names.includes(name)) return path.join(STOCK_FOLDER, `${name}.yaml`);
  const meant = didYouMean(name, names);
  throw new LockgateError(
    'input-scenario',
    `there is no scenario ${JSON.stringify(name)}: expected a file, or one of ${names.join(', ')}.${meant}`,
  );
}

/** The file that somebody means: their own, or a stock one by its name. @throws LockgateError as {@link stockFile} */
export function scenarioFile(nameOrFile: string): string {
  const isFile = /\.ya?ml$/i.test(nameOrFile) || nameOrFile.includes('/') || nameOrFile.includes('\\');
  return isFile || (existsSync(nameOrFile) && !stockNames().includes(nameOrFile)) ? nameOrFile : stockFile(nameOrFile);
}
