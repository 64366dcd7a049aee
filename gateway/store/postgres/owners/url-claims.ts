/**
 * Which webhook URLs this gateway delivers to. A URL's row names its owner; progress at a URL that another gateway
 * owns, or that was changed since its worker read it, is refused.
 */
import type { UrlOwnership } from '../../contract/slots/ownership.js';
import type { Claim as SlotClaim } from '../node-claim.js';
import { plannedOnce, type Sql } from '../sql.js';
import type { Writes } from '../writes.js';

/** A URL and its owner, as it was read; null without an owner. */
interface SeenUrl {
  readonly id: number;
  readonly owner_slot: number | null;
  readonly owner_epoch: number | null;
  /** Whether the owner's epoch is still a gateway's. */
  readonly live: boolean;
}

const LOCK_URL = plannedOnce(
  'SELECT owner_slot, owner_epoch, version FROM webhook_url WHERE id = @urlId FOR NO KEY UPDATE',
);

export class UrlClaims implements UrlOwnership {
  readonly #sql: Sql;
  readonly #writes: Pick<Writes, 'run'>;
  readonly #claim: Pick<SlotClaim, 'slot' | 'epoch'>;
  readonly #own = new Set<number>();
  /** The versions of URLs' rows when their workers read them. */
  readonly #versions = new Map<number, number>();

  constructor(sql: Sql, writes: Pick<Writes, 'run'>, claim: Pick<SlotClaim, 'slot' | 'epoch'>) {
    this.#sql = sql;
    this.#writes = writes;
    this.#claim = claim;
  }

  owns(urlId: number): boolean {
    return this.#own.has(urlId);
  }

  onWish(): void {
    // No gateway asks another for a URL: who has it keeps it until its epoch ends.
  }

  async claim(urlIds: readonly number[]): Promise<readonly number[]> {
    const seen = await this.#sql.all<SeenUrl>(
      `SELECT w.id, w.owner_slot, w.owner_epoch, n.slot IS NOT NULL AS live FROM webhook_url w
       LEFT JOIN node n ON n.slot = w.owner_slot AND n.epoch = w.owner_epoch WHERE w.id = ANY(@urlIds::bigint[])`,
      { urlIds },
    );
    const { slot, epoch } = this.#claim;
    const free = seen.filter(({ owner_epoch: owner, live }) => owner === null || !live || owner === epoch);
    if (free.length === 0) return [];
    const rows = await this.#writes.run('claim webhooks', (sql) =>
      sql.all<{ id: number }>(
        `UPDATE webhook_url w SET owner_slot = @slot, owner_epoch = @epoch
         FROM unnest(@ids::bigint[], @slots::bigint[], @epochs::bigint[]) AS t (id, slot, epoch)
         WHERE w.id = t.id AND w.owner_slot IS NOT DISTINCT FROM t.slot AND w.owner_epoch IS NOT DISTINCT FROM t.epoch
         RETURNING w.id`,
        {
          ids: free.map(({ id }) => id),
          slots: free.map(({ owner_slot: owner }) => owner),
          epochs: free.map(({ owner_epoch: owner }) => owner),
          slot,
          epoch,
        },
      ),
    );
    const claimed = rows.map(({ id }) => id);
    for (const id of claimed) this.#own.add(id);
    return claimed;
  }

  async release(urlIds: readonly number[]): Promise<void> {
    const { slot, epoch } = this.#claim;
    for (const id of urlIds) this.#own.delete(id);
    await this.#writes.run('release webhooks', (sql) =>
      sql.run(
        `UPDATE webhook_url SET owner_slot = NULL, owner_epoch = NULL
         WHERE id = ANY(@urlIds::bigint[]) AND owner_slot = @slot AND owner_epoch = @epoch`,
        { urlIds, slot, epoch },
      ),
    );
  }

  /** Notes the version of a URL's row that its next worker starts from. */
  noteVersion(urlId: number, version: number): void {
    this.#versions.set(urlId, version);
  }

  /**
   * Locks a URL's row in the caller's transaction. Returns whether its progress may be stored: this gateway owns it,
   * and nobody has changed it since its worker read it.
   */
  async mayRecord(sql: Sql, urlId: number): Promise<boolean> {
    const row = await sql.get<{ owner_slot: number | null; owner_epoch: number | null; version: number }>(LOCK_URL, {
      urlId,
    });
    const { slot, epoch } = this.#claim;
    // A URL that was removed: there is nothing to store, as with one gateway.
    if (row === undefined) return true;
    return row.owner_slot === slot && row.owner_epoch === epoch && row.version === this.#versions.get(urlId);
  }
}
