/** A lock's latest uplinks in the order of protocol.md §1, where reflash marks split them into lives. */
import { type StoredUplink, storedLife } from '../../contract/stored-uplink.js';

/**
 * The latest first, each once.
 *
 * @param credentialIds the credentials whose uplinks are meant
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
