/** Finds the merchant that an operator's request names. */
import { merchantClosed, noSuchMerchant } from '../../store/contract/errors.js';
import type { Merchant } from '../../store/contract/merchants/merchant-store.js';
import type { OperatorParts } from './routes.js';

/**
 * The merchant of this name; the only merchant if none is named.
 *
 * @throws LockgateError `no-such-merchant`, `merchant-needed`
 */
export async function findMerchant(
  { accounts, store }: Pick<OperatorParts, 'accounts' | 'store'>,
  name: string | undefined,
): Promise<Merchant> {
  const wanted = await accounts.resolveMerchant(name);
  const merchant = (await store.listMerchants()).find((known) => known.name === wanted);
  if (merchant === undefined) throw noSuchMerchant(wanted);
  return merchant;
}

/** As {@link findMerchant}, for what a closed merchant can't have. @throws LockgateError also `merchant-closed` */
export async function findOpenMerchant(
  parts: Pick<OperatorParts, 'accounts' | 'store'>,
  name: string | undefined,
): Promise<Merchant> {
  const merchant = await findMerchant(parts, name);
  if (merchant.closedAtMs !== null) throw merchantClosed(merchant.name);
  return merchant;
}
