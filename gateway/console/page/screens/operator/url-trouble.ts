/** Which webhook URLs are in trouble. Pure. */
import type { UrlStatus } from '../../api/url-status.js';

/** A URL whose oldest undelivered event is older than this is in trouble. */
const TROUBLE_AGE_SECONDS = 60;

/**
 * The URLs in trouble, without those of closed merchants, which are disabled on purpose. A URL whose merchant is not
 * known (yet) is shown: trouble must not stay hidden because an answer is missing.
 *
 * @param addresses the merchant of each URL; undefined until loaded
 * @param openMerchants the merchants that are not closed; undefined until loaded
 */
export function troubledUrls(
  urls: readonly UrlStatus[],
  addresses: readonly { readonly id: number; readonly merchant: string }[] | undefined,
  openMerchants: readonly { readonly name: string }[] | undefined,
): UrlStatus[] {
  const isOfClosedMerchant = (urlId: number): boolean => {
    const merchant = addresses?.find(({ id }) => id === urlId)?.merchant;
    if (merchant === undefined || openMerchants === undefined) return false;
    return !openMerchants.some(({ name }) => name === merchant);
  };
  return urls.filter((url) => isInTrouble(url) && !isOfClosedMerchant(url.id));
}

function isInTrouble({ state, circuit, backlog }: UrlStatus): boolean {
  const isOld = (backlog.oldest_seconds ?? 0) > TROUBLE_AGE_SECONDS;
  return state !== 'active' || circuit === 'open' || isOld || backlog.dead + backlog.damaged > 0;
}
