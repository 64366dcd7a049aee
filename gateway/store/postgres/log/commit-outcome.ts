/** What became of a commit: what the database's answer says, or its silence. Pure. */
import type { CommandChange } from '../../contract/command-record.js';
import type { Commit, IncomingUplink } from '../../contract/log/commit.js';
import { ALL_STORED, type CommitResult } from '../../contract/log/commit-result.js';
import { Fenced } from '../fence.js';
import type { CommitResultRow } from './commit-statement.js';

/**
 * What was not stored of a commit that was stored. `row` is null if the database's answer was lost, and the commit's
 * mark showed later that it is stored. Then no sending is reported as stored, so that no bytes are sent for a command
 * that may have been cancelled; a command that is stored as sent is sent again later. All else is reported as stored.
 */
export function resultOf(
  { incoming, commands = [] }: Commit,
  fresh: ReadonlySet<IncomingUplink>,
  refused: ReadonlySet<number>,
  row: CommitResultRow | null,
): CommitResult {
  const sent = new Set(row?.sent ?? []);
  const answered = new Set(row?.answered ?? []);
  const isStored = (change: CommandChange): boolean =>
    change.type === 'sent' ? sent.has(change.id) : row === null || answered.has(`${change.id} ${change.deviceId}`);
  const refusedCommands = commands.flatMap((change, index) => (refused.has(index) || !isStored(change) ? [index] : []));
  const repeatedUplinks = incoming.flatMap((item, index) =>
    item.type === 'uplink' && !fresh.has(item) ? [index] : [],
  );
  return refusedCommands.length + repeatedUplinks.length === 0 ? ALL_STORED : { refusedCommands, repeatedUplinks };
}

/** @throws TypeError for an uplink with a member that is not a whole number (a safe integer) */
export function refuseInvalid({ incoming }: Commit): void {
  for (const item of incoming) {
    if (item.type !== 'uplink') continue;
    const { deviceId, merchantId, credentialId, boot, sequence, kind } = item;
    for (const number of [deviceId, merchantId, credentialId, boot, sequence, kind])
      if (!Number.isSafeInteger(number)) throw new TypeError('a member of an uplink is not a whole number');
  }
}

/** Whether the database refused a value, so that the statement certainly stored nothing. */
export function isRefusedValue(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  // SQLSTATE's class of data exceptions.
  return typeof code === 'string' && /^22/.test(code);
}

/** Whether a failed statement certainly stored nothing: the database answered with an error, and goes on. */
export function isDefinite(error: unknown): boolean {
  if (error instanceof Fenced) return true;
  const { code, severity } = error as { code?: unknown; severity?: unknown };
  // A SQLSTATE has five characters. So has EPIPE, but errors of the system have no severity.
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && severity === 'ERROR';
}
