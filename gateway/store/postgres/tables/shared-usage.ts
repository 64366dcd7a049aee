/** Usage in a database that several gateways may share: months are closed when all of them have added their counts. */
import { Usage, type UsageParts } from '../../tables/usage.js';
import type { SharedOwnership } from '../owners/shared-ownership.js';
import type { Sql } from '../sql.js';
import type { UsageAdds } from './usage-adds.js';

export interface SharedUsageParts extends UsageParts {
  readonly sql: Sql;
  readonly adds: Pick<UsageAdds, 'isInDoubt'>;
  /** Undefined for a gateway that has the database to itself. */
  readonly shared: Pick<SharedOwnership, 'slot' | 'countedThroughMs'> | undefined;
}

export class SharedUsage extends Usage {
  readonly #sql: Sql;
  readonly #adds: SharedUsageParts['adds'];
  readonly #shared: SharedUsageParts['shared'];

  constructor(parts: SharedUsageParts) {
    super(parts);
    this.#sql = parts.sql;
    this.#adds = parts.adds;
    this.#shared = parts.shared;
  }

  override noteCounted(throughMs: number): void {
    // What is in doubt may not be stored yet.
    if (this.#adds.isInDoubt) return;
    super.noteCounted(throughMs);
    // The next beat tells the other gateways.
    if (this.#shared !== undefined) this.#shared.countedThroughMs = throughMs;
  }

  override async readCountedThrough(): Promise<number> {
    const own = await super.readCountedThrough();
    if (this.#shared === undefined) return own;
    // Counts of a gateway whose epoch has ended are stored by now, or lost with its process.
    const row = await this.#sql.get<{ through: number | null }>(
      `SELECT min(coalesce(b.counted_to_ms, 0)) AS through
       FROM node n LEFT JOIN node_beat b ON b.slot = n.slot AND b.epoch = n.epoch
       WHERE NOT n.released AND n.slot <> @slot`,
      { slot: this.#shared.slot },
    );
    return Math.min(own, row?.through ?? own);
  }
}
