/** `lockgate db accept`: lets the gateway start on a damaged store. */
import { acceptDamage } from '../../../gateway/data-folder/damage-acceptance.js';
import { LockgateError } from '../../../proto/errors.js';
import { localOwner } from '../../client.js';
import { print, printJson, printNote } from '../../terminal/output.js';
import { dataFolder } from './check.js';

/** The flags of `lockgate db accept`. */
export interface AcceptFlags {
  readonly data?: string;
  readonly yes?: boolean;
  readonly json?: boolean;
}

/**
 * Accepts the store's damage: renames the files that show it, so that the next start of the gateway does not refuse the
 * store.
 *
 * @throws LockgateError `input-confirmation` without --yes, `input-data`, `store-whole` if nothing is wrong
 */
export async function acceptStore(flags: AcceptFlags): Promise<void> {
  if (flags.yes !== true)
    throw new LockgateError(
      'input-confirmation',
      'the damage stays, and later starts don’t report it: restore a backup if you have one, or confirm with --yes',
    );
  const { damage, kept: evidenceFiles } = await acceptDamage(dataFolder(flags), {
    who: localOwner(),
    // Gets a sentence if other users of the machine could read files of the folder until now.
    onModesCorrected: printNote,
  });
  if (flags.json) return printJson({ accepted: true, damage, kept: evidenceFiles });
  print('Accepted, and recorded in the audit log:');
  for (const each of damage) print(`  ${each}`);
  print(`The evidence is in ${evidenceFiles.join(', ')}`);
  printNote('Damaged pings are never sent. To see all damage: lockgate db check');
}
