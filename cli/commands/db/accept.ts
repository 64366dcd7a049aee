/** `lockgate db accept`: a damaged store is gone on with, knowingly. */
import { acceptDamage } from '../../../gateway/data-folder/damage-acceptance.js';
import { LockgateError } from '../../../proto/errors.js';
import { ownerHere } from '../../client.js';
import { note, print, printJson } from '../../terminal/output.js';
import { dataFolder } from './check.js';

export interface AcceptFlags {
  readonly data?: string;
  readonly yes?: boolean;
  readonly json?: boolean;
}

/**
 * Accepts what a start refuses.
 *
 * @throws LockgateError `input-confirmation` without --yes, `input-data`, `store-whole` where nothing is wrong
 */
export async function acceptStore(flags: AcceptFlags): Promise<void> {
  if (flags.yes !== true)
    throw new LockgateError(
      'input-confirmation',
      'what is damaged stays so, and no start says it again: restore a backup if there is one, or say --yes if meant',
    );
  const { damage, kept } = await acceptDamage(dataFolder(flags), { who: ownerHere(), onMended: note });
  if (flags.json) return printJson({ accepted: true, damage, kept });
  print('Accepted, and noted in the audit log:');
  for (const each of damage) print(`  ${each}`);
  print(`What proves it is kept: ${kept.join(', ')}`);
  note('Single pings that are damaged are never sent. What else is: lockgate db check');
}
