/**
 * Authenticates a CONNECT: the connection is the identity (protocol.md §1). A lock has its MAC as client id and user
 * name, and its secret; a phone that acts for it has a client id of its own, the lock's MAC as user name, and a phone
 * credential.
 *
 * Every refusal looks the same to the client and costs the same work, so that neither the answer nor its timing reveals
 * whether a lock exists, or why a credential fails: one keyed hash of the given secret, and always the same number of
 * constant-time comparisons. Only operators see the reason.
 */
import { timingSafeEqual } from 'node:crypto';
import { type Mac, macFromWire } from '../../proto/wire/mac.js';
import type { Source } from '../../proto/wire/ping.js';
import type { Keys } from '../data-folder/keys.js';
import type { Sender } from '../ingest/ingest.js';
import { MAX_PHONES_PER_LOCK, type Store, type StoredCredential } from '../store/contract/store.js';
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
      /** When its credential expires, ms since the epoch, wall-clock time; null where it does not. */
      readonly expiresAtMs: number | null;
    }
  | { readonly ok: false; readonly cause: RefusalCause };

interface ClaimedSender {
  readonly mac: Mac;
  readonly source: Source;
}

const PHONE_CLIENT_ID = /^phone-([0-9A-F]{12})-[0-9A-Za-z]{1,32}$/;

/**
 * How many comparisons a CONNECT costs at least. A lock has at most two credentials in force (one is being replaced),
 * so with two more, revoked credentials are recognised as such.
 */
const COMPARISONS: Readonly<Record<Source, number>> = { lock: 4, phone: MAX_PHONES_PER_LOCK };

/** A dummy to compare with, so that the time is always the same. */
const DUMMY: StoredCredential = { id: 0, secretHash: Buffer.alloc(32), expiresAtMs: null, isRevoked: true };

/** Checks a claim against the store's credentials at `nowMs`, wall-clock time. Rejects where the store fails. */
export async function authenticate(
  { store, keys }: { readonly store: Pick<Store, 'findLock'>; readonly keys: Keys },
  { clientId, username, password, hasWill }: ConnectClaim,
  nowMs: number,
): Promise<Authentication> {
  // A will would be a message that nobody sent.
  if (hasWill) return refusal('will', 'the CONNECT carries a will');
  const speaker = readClientId(clientId);
  if (speaker === undefined || speaker.mac !== username)
    return refusal(
      'identity',
      'client id and user name are not the same MAC of 12 upper-case hex digits, nor a phone’s for it',
    );
  const { mac, source } = speaker;
  const account = await store.findLock(mac, source);
  const given = keys.hashSecret(password ?? Buffer.alloc(0));
  const credential = find(given, account?.credentials ?? [], COMPARISONS[source]);
  if (account === null) return refusal('unknown-lock', 'no such lock');
  if (credential === undefined)
    return refusal('wrong-secret', source === 'phone' ? 'wrong phone credential' : 'wrong secret');
  if (credential.isRevoked) return refusal('revoked', 'a revoked credential');
  if (credential.expiresAtMs !== null && credential.expiresAtMs <= nowMs)
    return refusal('expired', 'an expired credential');
  const { deviceId, merchantId, simulated } = account;
  const { id: credentialId, expiresAtMs } = credential;
  return { ok: true, sender: { deviceId, merchantId, credentialId, mac, simulated, source }, expiresAtMs };
}

/** Whom a client id names. */
function readClientId(clientId: string): ClaimedSender | undefined {
  const phone = PHONE_CLIENT_ID.exec(clientId)?.[1];
  const mac = macFromWire(phone ?? clientId);
  return mac === undefined ? undefined : { mac, source: phone === undefined ? 'lock' : 'phone' };
}

/** The credential with this hash. Compares with all of them, and makes at least `least` comparisons. */
function find(given: Buffer, known: readonly StoredCredential[], least: number): StoredCredential | undefined {
  let found: StoredCredential | undefined;
  for (let index = 0; index < Math.max(known.length, least); index += 1) {
    const each = known[index] ?? DUMMY;
    if (timingSafeEqual(each.secretHash, given) && each !== DUMMY) found ??= each;
  }
  return found;
}

function refusal(reason: RefusalReason, why: string): Authentication {
  return { ok: false, cause: { reason, why } };
}
