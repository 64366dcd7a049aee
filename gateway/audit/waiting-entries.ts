/**
 * Entries of the audit log that are not written yet. Their number is limited; further ones are left out, and counted.
 * Entries of merchants' users and keys are limited separately, so that no merchant takes the places of other entries.
 */
import type { AuditResult, AuditStart } from '../store/contract/operators/audit-store.js';

/**
 * Maximum number of waiting entries of all merchants together, and the same number of all others; and of one merchant.
 */
const MAX_WAITING = 1_000;
const MAX_WAITING_OF_ONE_MERCHANT = 300;

export type FinishedEntry = AuditStart & AuditResult;

export class WaitingEntries {
  #entries: FinishedEntry[] = [];
  #leftOut = 0;
  /** The number of waiting entries of each merchant, by id; id 0 has those that are not a merchant's. */
  readonly #counts = new Map<number, number>();

  /** The number of waiting entries. */
  get count(): number {
    return this.#entries.length;
  }

  /** Adds an entry, unless too many wait. */
  add(entry: FinishedEntry): void {
    const owner = entry.merchant?.id ?? 0;
    const count = this.#counts.get(owner) ?? 0;
    const othersCount = this.#counts.get(0) ?? 0;
    const isFull =
      owner === 0
        ? count >= MAX_WAITING
        : count >= MAX_WAITING_OF_ONE_MERCHANT || this.#entries.length - othersCount >= MAX_WAITING;
    if (isFull) {
      this.#leftOut += 1;
      return;
    }
    this.#counts.set(owner, count + 1);
    this.#entries.push(entry);
  }

  /** The first entries, at most `limit`, oldest first. They stay. */
  first(limit: number): readonly FinishedEntry[] {
    return this.#entries.slice(0, limit);
  }

  /** Drops the first entries, which were written. */
  drop(count: number): void {
    for (const entry of this.#entries.slice(0, count)) {
      const owner = entry.merchant?.id ?? 0;
      const left = (this.#counts.get(owner) ?? 0) - 1;
      if (left > 0) this.#counts.set(owner, left);
      else this.#counts.delete(owner);
    }
    this.#entries = this.#entries.slice(count);
  }

  /** How many were left out since the last call. */
  takeLeftOut(): number {
    const count = this.#leftOut;
    this.#leftOut = 0;
    return count;
  }
}
