/**
 * Sorts a lock's latest uplinks in the order of protocol.md §1 if reflash marks split them into lives (mark-store.ts).
 */
import { type StoredUplink, storedLife } from '../../contract/stored-uplink.js';

/**
 * Returns the uplinks of the given credentials, latest first, without duplicates.
 */
export function latestByLife(
  uplinks: readonly StoredUplink[],
  credentialIds: readonly number[],
  marks: readonly number[],
): StoredUplink[] {
  const ofLock = uplinks.filter(({ credentialId }) => credentialIds.includes(credentialId));
  const lives = new Map(ofLock.map((uplink) => [uplink.id, { uplink, life: storedLife(uplink, marks) }]));
  const latest = [...lives.values()].sort(
    (one, other) =>
      other.uplink.credentialId - one.uplink.credentialId ||
      other.life - one.life ||
      other.uplink.boot - one.uplink.boot ||
      other.uplink.sequence - one.uplink.sequence,
  );
  return latest.map(({ uplink }) => uplink);
}
