/**
 * Who speaks: the connection is the identity (protocol.md §1). Client id = user name = MAC, and the lock's secret.
 *
 * Every refusal looks the same to the client and costs the same work, so that neither the answer nor its time tells
 * whether a lock exists. The reason is for operators alone.
 */
import { macFromWire } from '../../proto/mac.js';
import type { Sender } from '../ingest.js';
import type { Keys } from '../keys.js';
import type { Store } from '../store/store.js';

/** What a CONNECT says of itself. */
export interface ConnectClaim {
  readonly clientId: string;
  readonly username: string | undefined;
  readonly password: Buffer | undefined;
  readonly hasWill: boolean;
}

export type Authentication =
  | { readonly ok: true; readonly sender: Sender }
  | { readonly ok: false; readonly why: string };

/** Checks a claim against the store's credentials. Rejects where the store fails. */
export async function authenticate(
  { store, keys }: { readonly store: Pick<Store, 'findLock'>; readonly keys: Keys },
  { clientId, username, password, hasWill }: ConnectClaim,
): Promise<Authentication> {
  // A will would be a message that nobody sent.
  if (hasWill) return refusal('the CONNECT carries a will');
  const mac = macFromWire(clientId);
  if (mac === undefined || clientId !== username)
    return refusal('client id and user name are not the same MAC of 12 upper-case hex digits');
  const account = await store.findLock(mac);
  // An unknown lock costs the same hash as a known one, so that time tells nothing.
  const known = account?.credentials ?? [];
  const given = password ?? Buffer.alloc(0);
  const credential = known.find(({ secretHash }) => keys.matches(given, secretHash));
  if (known.length === 0) keys.hashSecret(given);
  if (account === null) return refusal('no such lock');
  if (credential === undefined) return refusal('wrong secret');
  const { deviceId, merchantId, simulated } = account;
  return { ok: true, sender: { deviceId, merchantId, credentialId: credential.id, mac, simulated, source: 'lock' } };
}

function refusal(why: string): Authentication {
  return { ok: false, why };
}
