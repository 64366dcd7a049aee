/** `lockgate config reset-operator-token`: replaces a data folder's token, with or without a running gateway. */
import { realpathSync } from 'node:fs';
import { checkFolder, workOnFolder } from '../../../gateway/data-folder/data-folder.js';
import { operatorTokenFile, resetOperatorToken } from '../../../gateway/http/operator/token.js';
import { LockgateError } from '../../../proto/errors.js';
import { GatewayClient, localOwner } from '../../client.js';
import { print, printJson, printNote } from '../../terminal/output.js';

/** `taken`: a running gateway uses the new token; `unreachable`: a gateway runs but can't be reached from here. */
type GatewayState = 'taken' | 'not-running' | 'unreachable';

/**
 * Replaces the token and checks that a running gateway uses it. Prints the file that has the token, not the token.
 * @throws LockgateError `input-data` if there is no such folder, `secret-file` if it can't be written
 */
export async function resetToken(flags: { readonly data?: string; readonly json?: boolean }): Promise<void> {
  const data = flags.data ?? (process.env.LOCKGATE_DATA || './data');
  checkFolder(data);
  const gateway = await replaceToken(data);
  const file = operatorTokenFile(data);
  if (flags.json === true) return printJson({ reset: true, file, gateway });
  print(`The operator’s new token is in ${file}; the old one no longer works.`);
  if (gateway === 'taken') print('The running gateway uses it.');
  if (gateway === 'unreachable')
    printNote('A gateway runs on the folder but can’t be reached from here: it will use the token within two seconds.');
  noteOtherTokens(file);
}

/** Names the environment variables that make commands use another token than the new one in `file`. */
function noteOtherTokens(file: string): void {
  const { LOCKGATE_TOKEN, LOCKGATE_TOKEN_FILE } = process.env;
  if (LOCKGATE_TOKEN) printNote('The environment variable LOCKGATE_TOKEN has a different token.');
  if (LOCKGATE_TOKEN_FILE && !isSameFile(LOCKGATE_TOKEN_FILE, file))
    printNote(`The environment variable LOCKGATE_TOKEN_FILE names a different file: ${LOCKGATE_TOKEN_FILE}`);
}

function isSameFile(one: string, other: string): boolean {
  try {
    return realpathSync(one) === realpathSync(other);
  } catch {
    // A file that can't be resolved is not the one that was just written.
    return false;
  }
}

/** Replaces the token. If no gateway runs, also writes the audit entry, which otherwise the gateway writes. */
async function replaceToken(data: string): Promise<GatewayState> {
  try {
    // `onModesCorrected` gets a sentence if other users of the machine could read files of the folder until now.
    const work = { action: 'token.change', who: localOwner(), auditDetails: () => ({}), onModesCorrected: printNote };
    await workOnFolder(data, work, async () => resetOperatorToken(data));
    return 'not-running';
  } catch (error) {
    if (!(error instanceof LockgateError) || error.code === 'secret-file') throw error;
    const token = resetOperatorToken(data);
    // `data-in-use`: a gateway runs on the folder. The token is replaced even if the store can't be opened.
    if (error.code !== 'data-in-use') printNote(`The audit log has no entry for this change: ${error.message}`);
    return error.code === 'data-in-use' ? await checkGatewayState(data, token) : 'not-running';
  }
}

/** Calls the gateway with the new token, which is valid at once: the gateway checks the token's file at every call. */
async function checkGatewayState(data: string, token: string): Promise<GatewayState> {
  try {
    await new GatewayClient({ data, token }).get('/status');
    return 'taken';
  } catch (error) {
    if (error instanceof LockgateError) return 'unreachable';
    throw error;
  }
}
