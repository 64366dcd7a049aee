/**
 * Sorts a lock's latest uplinks in the order of protocol.md §1 if reflash marks, the times when the lock's flash was
 * wiped, split them into lives: in each life the lock counts its boots from the start again (mark-store.ts). Pure.
 */
import { type StoredUplink, storedLife } from '../../contract/log/stored-uplink.js';

/**
 * Returns the uplinks of the given credentials, latest first, without duplicates. A newer credential's uplinks come
 * before an older one's, and a later life's before an earlier one's.
 */
export function latestByLife(
  uplinks: readonly StoredUplink[],
  credentialIds: readonly number[],
  marks: readonly number[],
): StoredUplink[] {
  const ofLock = uplinks.filter(({ credentialId }) => credentialIds.includes(credentialId));
  const byId = new Map(ofLock.map((uplink) => [uplink.id, { uplink, life: storedLife(uplink, marks) }]));
  const latest = [...byId.values()].sort(
    (a, b) =>
      b.uplink.credentialId - a.uplink.credentialId ||
      b.life - a.life ||
      b.uplink.boot - a.uplink.boot ||
      b.uplink.sequence - a.uplink.sequence,
  );
  return latest.map(({ uplink }) => uplink);
}
