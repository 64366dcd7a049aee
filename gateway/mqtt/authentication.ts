/**
 * Authenticates a CONNECT. It determines the sender of everything on the connection (protocol.md §1). A lock gives its
 * MAC as client id and user name, and its secret as password. A phone that acts for a lock gives a phone client id, the
 * lock's MAC as user name, and a phone credential as password.
 *
 * Every refusal looks the same to the client. A claim that may be a lock's always costs the same work: one keyed hash
 * of the given secret, and at least a fixed number of constant-time comparisons. So neither the answer nor its timing
 * reveals whether a lock exists or why a credential fails. A will or a malformed identity is refused before that, for
 * any lock or none. Only operators see the reason.
 */
import { timingSafeEqual } from 'node:crypto';
import { type Mac, macFromWire } from '../../proto/wire/mac.js';
import type { Source } from '../../proto/wire/ping.js';
import type { Keys } from '../data-folder/keys.js';
import type { Sender } from '../ingest/ingest.js';
import { MAX_PHONES_PER_LOCK, type StoredCredential } from '../store/contract/devices/device.js';
import type { Store } from '../store/contract/store.js';
import type { RefusalCause, RefusalReason } from './refusals/refusal-reason.js';

/** What a CONNECT claims. */
export interface ConnectClaim {
  readonly clientId: string;
  readonly username: string | undefined;
  readonly password: Buffer | undefined;
  readonly hasWill: boolean;
}

export type Authentication =
  | {
      readonly ok: true;
      readonly sender: Sender;
      /** When the credential expires, ms since the epoch, wall-clock time; null if it does not expire. */
      readonly expiresAtMs: number | null;
    }
  | { readonly ok: false; readonly cause: RefusalCause };

interface ClaimedSender {
  readonly mac: Mac;
  readonly source: Source;
}

const PHONE_CLIENT_ID = /^phone-([0-9A-F]{12})-[0-9A-Za-z]{1,32}$/;

/**
 * The least number of comparisons per CONNECT. A lock has at most two valid credentials (during a replacement); the
 * other two comparisons recognise revoked ones. A lock with more revoked ones gets more comparisons (up to
 * `MAX_CREDENTIALS_READ`), each of a fraction of a microsecond, which a network hides.
 */
const MIN_COMPARISONS: Readonly<Record<Source, number>> = { lock: 4, phone: MAX_PHONES_PER_LOCK };

/** Compared when a lock has fewer credentials than the minimum, so that a check always takes the same time. */
const DUMMY_CREDENTIAL: StoredCredential = { id: 0, secretHash: Buffer.alloc(32), expiresAtMs: null, isRevoked: true };

/** Checks a claim against the store's credentials at `nowMs`, wall-clock time. Rejects if the store fails. */
export async function authenticate(
  { store, keys }: { readonly store: Pick<Store, 'findLock'>; readonly keys: Keys },
  { clientId, username, password, hasWill }: ConnectClaim,
  nowMs: number,
): Promise<Authentication> {
  // The broker would publish a will in the lock's name, but uplinks must come from the lock itself.
  if (hasWill) return refusal('will', 'the CONNECT carries a will');
  const claimed = readClientId(clientId);
  if (claimed === undefined || claimed.mac !== username)
    return refusal(
      'identity',
      'the user name is no MAC of 12 upper-case hex digits, or the client id is neither that MAC nor, for a phone, ' +
        'phone-, that MAC, - and 1 to 32 letters or digits',
    );
  const { mac, source } = claimed;
  const account = await store.findLock(mac, source);
  const givenHash = keys.hashSecret(password ?? Buffer.alloc(0));
  const credential = findByHash(givenHash, account?.credentials ?? [], MIN_COMPARISONS[source]);
  if (account === null) return refusal('unknown-lock', 'no such lock');
  if (credential === undefined)
    return refusal('wrong-secret', source === 'phone' ? 'wrong phone credential' : 'wrong secret');
  if (credential.isRevoked) return refusal('revoked', 'a revoked credential');
  if (credential.expiresAtMs !== null && credential.expiresAtMs <= nowMs)
    return refusal('expired', 'an expired credential');
  const { deviceId, merchantId, simulated, isMerchantClosed } = account;
  if (isMerchantClosed) return refusal('merchant-closed', 'the lock’s merchant is closed');
  const { id: credentialId, expiresAtMs } = credential;
  return { ok: true, sender: { deviceId, merchantId, credentialId, mac, simulated, source }, expiresAtMs };
}

/** The sender that a client id names; undefined if it is malformed. */
function readClientId(clientId: string): ClaimedSender | undefined {
  const phone = PHONE_CLIENT_ID.exec(clientId)?.[1];
  const mac = macFromWire(phone ?? clientId);
  return mac === undefined ? undefined : { mac, source: phone === undefined ? 'lock' : 'phone' };
}

/** The credential with this hash. Compares with all credentials, and makes at least `minComparisons` comparisons. */
function findByHash(
  hash: Buffer,
  credentials: readonly StoredCredential[],
  minComparisons: number,
): StoredCredential | undefined {
  let found: StoredCredential | undefined;
  for (let index = 0; index < Math.max(credentials.length, minComparisons); index += 1) {
    const credential = credentials[index] ?? DUMMY_CREDENTIAL;
    if (timingSafeEqual(credential.secretHash, hash) && credential !== DUMMY_CREDENTIAL) found ??= credential;
  }
  return found;
}

function refusal(reason: RefusalReason, why: string): Authentication {
  return { ok: false, cause: { reason, why } };
}
