/** Finds the built-in scenarios, which are files in firmware-sim/scenarios/. Works from any working directory. */
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { didYouMean } from '../../proto/did-you-mean.js';
import { LockgateError } from '../../proto/errors.js';

/**
 * The folder of the built-in scenarios. It contains no code and is not compiled, so it is located relative to the root
 * of the package, which is two levels above a bundle and three above this module's own file in dist. One of the two
 * exists, since each installed package has the folder.
 */
export const BUILT_IN_FOLDER = ['../../firmware-sim/scenarios/', '../../../firmware-sim/scenarios/']
  .map((relativeUrl) => fileURLToPath(new URL(relativeUrl, import.meta.url)))
  .find((folder) => existsSync(folder)) as string;

/** The names of the built-in scenarios, in alphabetical order. */
export function builtInNames(): string[] {
  return readdirSync(BUILT_IN_FOLDER)
    .filter((file) => file.endsWith('.yaml'))
    .map((file) => file.slice(0, -'.yaml'.length))
    .sort();
}

/** The file of a built-in scenario. @throws LockgateError `input-scenario` for an unknown name */
export function builtInFile(name: string): string {
  const names = builtInNames();
  if (names.includes(name)) return path.join(BUILT_IN_FOLDER, `${name}.yaml`);
  const suggestion = didYouMean(name, names);
  throw new LockgateError(
    'input-scenario',
    `there is no scenario ${JSON.stringify(name)}: expected a file, or one of ${names.join(', ')}.${suggestion}`,
  );
}

/**
 * The scenario file that a user names: the user's own file, or a built-in scenario.
 *
 * @throws LockgateError `input-scenario` for an unknown name
 */
export function scenarioFile(nameOrFile: string): string {
  const isFile = /\.ya?ml$/i.test(nameOrFile) || nameOrFile.includes('/') || nameOrFile.includes('\\');
  return isFile || (existsSync(nameOrFile) && !builtInNames().includes(nameOrFile))
    ? nameOrFile
    : builtInFile(nameOrFile);
}
