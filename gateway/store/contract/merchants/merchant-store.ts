/**
 * Changes of merchants by operators: another name, closing and reopening (docs/operator.md, "Merchants"). As in
 * store.ts, a method that writes resolves after the write is on the disk, and a rejected call has changed nothing.
 * Times are ms since the epoch, wall-clock time.
 *
 * While a merchant is *closed*, its API keys, tokens and sessions are invalid and its locks can't connect, but nothing
 * of it is deleted. Its name stays taken.
 */

export interface Merchant {
  readonly id: number;
  readonly name: string;
  readonly createdAtMs: number;
  /** Null while it is open. */
  readonly closedAtMs: number | null;
  /** When it was last opened again; null if never. */
  readonly reopenedAtMs: number | null;
}

/**
 * The stored reason of a webhook URL that is disabled because its merchant was closed. It must not change: stores
 * contain this text.
 */
export const MERCHANT_CLOSED = 'the merchant is closed';

/** A closed or reopened merchant, and the webhook URLs that were disabled or enabled with it. */
export interface MerchantClosing {
  readonly merchant: Merchant;
  readonly urlIds: readonly number[];
}

export interface MerchantStore {
  /** @throws LockgateError `no-such-merchant`, `merchant-exists` */
  rename(name: string, newName: string): Promise<Merchant>;
  /** Closes a merchant and disables its active URLs. @throws LockgateError `no-such-merchant`, `merchant-closed` */
  close(name: string, nowMs: number): Promise<MerchantClosing>;
  /**
   * Opens a closed merchant again, and enables the URLs that its closing disabled, for events from now on.
   *
   * @throws LockgateError `no-such-merchant`, `merchant-open`
   */
  reopen(name: string, nowMs: number): Promise<MerchantClosing>;
}
