/** `lockgate config reset-operator-token`: another token for a data folder, with or without a gateway running on it. */
import { checkFolder, workOnFolder } from '../../../gateway/data-folder/data-folder.js';
import { operatorTokenFile, resetOperatorToken } from '../../../gateway/http/operator/token.js';
import { LockgateError } from '../../../proto/errors.js';
import { GatewayClient, ownerHere } from '../../client.js';
import { note, print, printJson } from '../../terminal/output.js';

/** What a running gateway made of it: it took it; there is none; there is one that did not answer. */
type Taken = 'taken' | 'not-running' | 'unreachable';

/**
 * Makes it, and sees that a running gateway has taken it. The token itself is not printed: it is in the file.
 *
 * @throws LockgateError `input-data` where there is no such folder, `secret-file` where it can't be written
 */
export async function resetToken(flags: { readonly data?: string; readonly json?: boolean }): Promise<void> {
  const data = flags.data ?? (process.env.LOCKGATE_DATA || './data');
  checkFolder(data);
  const gateway = await reset(data);
  const file = operatorTokenFile(data);
  if (flags.json === true) return printJson({ reset: true, file, gateway });
  print(`A new operator’s token is in ${file}; the one before is dead.`);
  if (gateway === 'taken') print('The running gateway has taken it.');
  if (gateway === 'unreachable')
    note('A gateway runs on the folder and can’t be asked from here: it takes the token within two seconds.');
  if ((process.env.LOCKGATE_TOKEN ?? '') !== '') note('LOCKGATE_TOKEN is set here, to another token than this.');
}

/** A running gateway notes it in the audit log itself, and holds the store. */
async function reset(data: string): Promise<Taken> {
  try {
    const work = { action: 'token.change', who: ownerHere(), facts: () => ({}), onMended: note };
    await workOnFolder(data, work, async () => resetOperatorToken(data));
    return 'not-running';
  } catch (error) {
    if (!(error instanceof LockgateError) || error.code === 'secret-file') throw error;
    const token = resetOperatorToken(data);
    // The store can't be opened for another reason: whoever owns the folder may have a token all the same.
    if (error.code !== 'data-in-use') note(`It is not in the audit log: ${error.message}`);
    return error.code === 'data-in-use' ? await seeTaken(data, token) : 'not-running';
  }
}

async function seeTaken(data: string, token: string): Promise<Taken> {
  try {
    await new GatewayClient({ data, token }).get('/status');
    return 'taken';
  } catch (error) {
    if (error instanceof LockgateError) return 'unreachable';
    throw error;
  }
}
