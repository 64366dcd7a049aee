/**
 * Which uplinks the log has already. An uplink with a higher key than all others of its credential is new; any other is
 * looked up. Also the last uplink of each lock, since ids of a lock ascend. All of it is from memory where possible: no
 * other process stores for a lock that this one owns.
 */

import { uplinkDigest } from '../../../webhooks/event-id.js';
import type { IncomingUplink } from '../../contract/log/commit.js';
import type { Sql } from '../sql.js';

/** Maximum number of credentials, and of locks, in memory; beyond it, all are forgotten. */
const MAX_REMEMBERED = 500_000;

interface Key {
  readonly boot: number;
  readonly sequence: number;
}

function isHigher(one: Key, other: Key): boolean {
  return one.boot > other.boot || (one.boot === other.boot && one.sequence > other.sequence);
}

/** An uplink's key as text. */
function nameOf({ credentialId, boot, sequence }: IncomingUplink): string {
  return `${credentialId} ${boot} ${sequence}`;
}

const NO_KEY: Key = { boot: -1, sequence: -1 };

export class KnownKeys {
  readonly #sql: Sql;
  /** The highest key of each credential, by its id. After a failed commit it may be too high, which costs a lookup. */
  readonly #highest = new Map<number, Key>();
  /** The last uplink id of each lock, by the lock's id. */
  readonly #lastIds = new Map<number, number>();
  /** The credentials in `highest`, by their lock. */
  readonly #credentials = new Map<number, Set<number>>();

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** The last uplink id of a lock that was prepared. */
  lastIdOf(deviceId: number): number {
    return this.#lastIds.get(deviceId) ?? 0;
  }

  noteLastId(deviceId: number, id: number): void {
    this.#lastIds.set(deviceId, id);
  }

  /** Forgets what a failed commit noted about locks. */
  forget(deviceIds: Iterable<number>): void {
    for (const id of deviceIds) this.#lastIds.delete(id);
  }

  /** Forgets all about locks: another gateway may have stored for them since. */
  forgetLocks(deviceIds: Iterable<number>): void {
    for (const id of deviceIds) {
      this.#lastIds.delete(id);
      for (const credentialId of this.#credentials.get(id) ?? []) this.#highest.delete(credentialId);
      this.#credentials.delete(id);
    }
  }

  /**
   * Reads the last uplink ids of these locks where they are not in memory. The lock's state and its last event count
   * too: another gateway, whose ids were ahead, may have written them.
   */
  async prepareLocks(deviceIds: readonly number[]): Promise<void> {
    if (this.#lastIds.size > MAX_REMEMBERED) this.#lastIds.clear();
    const unknown = [...new Set(deviceIds)].filter((id) => !this.#lastIds.has(id));
    if (unknown.length === 0) return;
    const rows = await this.#sql.all<{ device_id: number; id: number | null }>(
      `SELECT d.id AS device_id, greatest(
         (SELECT u.id FROM uplink u WHERE u.device_id = d.id ORDER BY u.id DESC LIMIT 1),
         (SELECT s.through_uplink_id FROM device_state s WHERE s.device_id = d.id),
         (SELECT e.after_uplink_id FROM lock_event e WHERE e.device_id = d.id ORDER BY e.id DESC LIMIT 1)) AS id
       FROM unnest(@ids::bigint[]) AS d (id)`,
      { ids: unknown },
    );
    for (const { device_id: deviceId, id } of rows) this.#lastIds.set(deviceId, id ?? 0);
  }

  /** Returns those of the uplinks that the log does not have, without repeats among them, in their order. */
  async selectNew(uplinks: readonly IncomingUplink[]): Promise<Set<IncomingUplink>> {
    await this.#prepareCredentials(uplinks.map(({ credentialId }) => credentialId));
    for (const { deviceId, credentialId } of uplinks) {
      const ofLock = this.#credentials.get(deviceId);
      if (ofLock === undefined) this.#credentials.set(deviceId, new Set([credentialId]));
      else ofLock.add(credentialId);
    }
    const found = new Set<IncomingUplink>();
    const unsure: IncomingUplink[] = [];
    for (const uplink of uplinks) {
      if (isHigher(uplink, this.#highest.get(uplink.credentialId) ?? NO_KEY)) {
        this.#highest.set(uplink.credentialId, { boot: uplink.boot, sequence: uplink.sequence });
        found.add(uplink);
      } else unsure.push(uplink);
    }
    if (unsure.length === 0) return found;
    const stored = await this.#readDigests(unsure);
    for (const uplink of found) add(stored, nameOf(uplink), digestOf(uplink));
    for (const uplink of unsure) if (add(stored, nameOf(uplink), digestOf(uplink))) found.add(uplink);
    return found;
  }

  async #prepareCredentials(credentialIds: readonly number[]): Promise<void> {
    if (this.#highest.size > MAX_REMEMBERED) {
      this.#highest.clear();
      this.#credentials.clear();
    }
    const unknown = [...new Set(credentialIds)].filter((id) => !this.#highest.has(id));
    if (unknown.length === 0) return;
    const rows = await this.#sql.all<{ id: number; boot: number; sequence: number }>(
      `SELECT c.id, k.boot, k.sequence FROM unnest(@ids::bigint[]) AS c (id)
       CROSS JOIN LATERAL (SELECT u.boot, u.sequence FROM uplink u WHERE u.credential_id = c.id
         ORDER BY u.boot DESC, u.sequence DESC LIMIT 1) AS k`,
      { ids: unknown },
    );
    for (const id of unknown) this.#highest.set(id, NO_KEY);
    for (const { id, boot, sequence } of rows) this.#highest.set(id, { boot, sequence });
  }

  async #readDigests(uplinks: readonly IncomingUplink[]): Promise<Map<string, Set<string>>> {
    const rows = await this.#sql.all<{ name: string; digest: Buffer }>(
      `SELECT k.credential_id || ' ' || k.boot || ' ' || k.sequence AS name, u.digest
       FROM (SELECT DISTINCT * FROM unnest(@credentials::bigint[], @boots::bigint[], @sequences::bigint[])
         AS t (credential_id, boot, sequence)) k
       JOIN uplink u ON u.credential_id = k.credential_id AND u.boot = k.boot AND u.sequence = k.sequence`,
      {
        credentials: uplinks.map(({ credentialId }) => credentialId),
        boots: uplinks.map(({ boot }) => boot),
        sequences: uplinks.map(({ sequence }) => sequence),
      },
    );
    const digests = new Map<string, Set<string>>();
    for (const { name, digest } of rows) add(digests, name, digest.toString('hex'));
    return digests;
  }
}

function digestOf({ bytes }: IncomingUplink): string {
  return uplinkDigest(bytes).toString('hex');
}

/** Adds a digest to those of a key as text. Returns whether it is new. */
function add(digests: Map<string, Set<string>>, name: string, digest: string): boolean {
  const known = digests.get(name) ?? new Set();
  if (known.has(digest)) return false;
  digests.set(name, known.add(digest));
  return true;
}
