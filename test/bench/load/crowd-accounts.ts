/** The accounts of a crowd: a merchant and very many locks with secrets that every program of the bench can tell. */
import { openKeys } from '../../../gateway/data-folder/keys.js';
import { openStore, sqliteUrl } from '../../../gateway/store/open-store.js';
import { parseMac } from '../../../proto/wire/mac.js';
import { crowdMac, crowdSecret } from './lock-crowd.js';

export const MERCHANT = 'Bench';

/** A lock as it connects. */
export interface PlayedLock {
  readonly mac: string;
  readonly secret: string;
}

/** The first locks of the crowd. */
export function crowdLocks(count: number): PlayedLock[] {
  return Array.from({ length: count }, (_, number) => {
    const mac = crowdMac(number);
    return { mac, secret: crowdSecret(mac) };
  });
}

/** Makes a data folder whose gateway knows so many of them; no gateway may run on it. */
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
