/** `lockgate db migrate`: upgrades the store to this version of lockgate. */
import { migrateDataFolder } from '../../../gateway/store/store-at-rest.js';
import { print, printJson, printNote } from '../../terminal/output.js';
import { dataFolder } from './check.js';

/** The flags of `lockgate db migrate`. */
export interface MigrateFlags {
  readonly data?: string;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

/** Migrates the store in the data folder, or with --dry-run only prints the steps. No gateway may run on the folder. */
export async function migrateStore(flags: MigrateFlags): Promise<void> {
  const isDry = flags.dryRun === true;
  const folder = dataFolder(flags);
  // `onModesCorrected` gets a sentence if other users of the machine could read files of the folder until now.
  const { from, steps, copy } = await migrateDataFolder(folder, { isDry, onModesCorrected: printNote });
  if (flags.json) return printJson({ data: folder, from, to: steps.at(-1) ?? from, steps, copy, dry_run: isDry });
  if (steps.length === 0) return print(`Nothing to do: the store in ${folder} is at ${from ?? 'the first version'}.`);
  print(`${isDry ? 'To be done' : 'Done'}, from ${from ?? 'nothing'}:`);
  for (const step of steps) print(`  ${step}`);
  if (isDry) printNote('Nothing was changed. The migration will make a copy of the current file.');
  if (copy !== null) print(`A copy of the old store is in ${copy}; delete it when the new version works.`);
}
