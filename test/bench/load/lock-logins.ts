/**
 * The bench's merchant and its locks. The MAC and secret of a lock are computed from its number, so that each program
 * of the bench can log in without receiving a list.
 */
import { openKeys } from '../../../gateway/data-folder/keys.js';
import { openStore, sqliteUrl } from '../../../gateway/store/open-store.js';
import { parseMac } from '../../../proto/wire/mac.js';
import { lockMac, lockSecret } from './many-locks.js';

export const BENCH_MERCHANT = 'Bench';
/** When the merchant and the locks are added, ms since the epoch. Any time would do. */
const ADDED_AT_MS = 0;

/** What a lock logs in with; `mac` is written as in its CONNECT. */
export interface LockLogin {
  readonly mac: string;
  readonly secret: string;
}

/** The logins of the first `count` locks. */
export function lockLogins(count: number): LockLogin[] {
  return Array.from({ length: count }, (_, number) => {
    const mac = lockMac(number);
    return { mac, secret: lockSecret(mac) };
  });
}

/** What {@link registerLocks} does other than usual. */
interface RegisterOptions {
  readonly url?: string;
  readonly nameOf?: (number: number) => string | null;
}

/**
 * Registers the merchant and the first `count` locks in the new store of the data folder `data`, which gets its key. No
 * gateway may run on the folder.
 *
 * @param url the store's URL; by default the SQLite store in the folder
 * @param nameOf returns a lock's name by its number; by default locks have none
 */
export async function registerLocks(
  data: string,
  count: number,
  { url = sqliteUrl(data), nameOf = () => null }: RegisterOptions = {},
): Promise<void> {
  const store = await openStore(url);
  await store.addMerchant(BENCH_MERCHANT, ADDED_AT_MS);
  // The store is new and has no secrets yet, so a missing key may be made.
  const isKeyInUse = false;
  const keys = openKeys(data, isKeyInUse);
  const devices = lockLogins(count).map(({ mac: text, secret }, number) => {
    const mac = parseMac(text);
    if (!mac.ok) throw new Error(mac.error.message);
    return {
      mac: mac.value,
      merchant: BENCH_MERCHANT,
      simulated: true,
      secretHash: keys.hashSecret(secret),
      nowMs: ADDED_AT_MS,
      name: nameOf(number),
    };
  });
  await store.addDevices(devices);
  await store.close();
}
