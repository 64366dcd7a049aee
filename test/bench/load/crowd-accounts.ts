/**
 * The accounts of the bench: a merchant and many locks, whose MACs and secrets every program of the bench can compute.
 */
import { openKeys } from '../../../gateway/data-folder/keys.js';
import { openStore, sqliteUrl } from '../../../gateway/store/open-store.js';
import { parseMac } from '../../../proto/wire/mac.js';
import { crowdMac, crowdSecret } from './lock-crowd.js';

export const MERCHANT = 'Bench';

/** What a lock connects with; `mac` is written as in its CONNECT. */
export interface LockLogin {
  readonly mac: string;
  readonly secret: string;
}

/** The first `count` locks. */
export function crowdLocks(count: number): LockLogin[] {
  return Array.from({ length: count }, (_, number) => {
    const mac = crowdMac(number);
    return { mac, secret: crowdSecret(mac) };
  });
}

/** Registers the merchant and the first `count` locks in the data folder `data`. No gateway may run on the folder. */
export async function provisionCrowd(data: string, count: number): Promise<void> {
  const store = await openStore(sqliteUrl(data));
  await store.addMerchant(MERCHANT, 0);
  const keys = openKeys(data, false);
  const devices = crowdLocks(count).map(({ mac: text, secret }) => {
    const mac = parseMac(text);
    if (!mac.ok) throw new Error(mac.error.message);
    return {
      mac: mac.value,
      merchant: MERCHANT,
      simulated: true,
      secretHash: keys.hashSecret(secret),
      nowMs: 0,
    };
  });
  await store.addDevices(devices);
  await store.close();
}
