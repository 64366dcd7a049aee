/**
 * Who speaks: the connection is the identity (protocol.md §1). A lock has its MAC as client id and user name, and its
 * secret; a phone that acts for it has a client id of its own, the lock's MAC as user name, and a phone credential.
 *
 * Every refusal looks the same to the client and costs the same work, so that neither the answer nor its time tells
 * whether a lock exists, or what became of a credential: one keyed hash of what was given, and as many comparisons in
 * constant time whatever there is to compare with. The reason is for operators alone.
 */
import { timingSafeEqual } from 'node:crypto';
import { type Mac, macFromWire } from '../../proto/wire/mac.js';
import type { Source } from '../../proto/wire/ping.js';
import type { Keys } from '../data-folder/keys.js';
import type { Sender } from '../ingest/ingest.js';
import { PHONES_PER_LOCK, type Store, type StoredCredential } from '../store/contract/store.js';
import type { RefusalCause, RefusalReason } from './refusals/refusal-reason.js';

/** What a CONNECT says of itself. */
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
      /** When its credential ends, ms since the epoch by the wall's clock; null where it does not. */
      readonly expiresAtMs: number | null;
    }
  | { readonly ok: false; readonly cause: RefusalCause };

interface Speaker {
  readonly mac: Mac;
  readonly source: Source;
}

const PHONE_CLIENT_ID = /^phone-([0-9A-F]{12})-[0-9A-Za-z]{1,32}$/;

/**
 * How many comparisons a CONNECT costs at the least. A lock of its own has two credentials in force at the most (one is
 * being replaced), so two revoked ones are told from a wrong secret beside them.
 */
const COMPARISONS: Readonly<Record<Source, number>> = { lock: 4, phone: PHONES_PER_LOCK };

/** Compared with where there is nothing else, for the time that it takes. */
const NOTHING: StoredCredential = { id: 0, secretHash: Buffer.alloc(32), expiresAtMs: null, isRevoked: true };

/** Checks a claim against the store's credentials at `nowMs`, by the wall's clock. Rejects where the store fails. */
export async function authenticate(
  { store, keys }: { readonly store: Pick<Store, 'findLock'>; readonly keys: Keys },
  { clientId, username, password, hasWill }: ConnectClaim,
  nowMs: number,
): Promise<Authentication> {
  // A will would be a message that nobody sent.
  if (hasWill) return refusal('will', 'the CONNECT carries a will');
  const speaker = readSpeaker(clientId);
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

/** Who a client id says that it is. */
function readSpeaker(clientId: string): Speaker | undefined {
  const phone = PHONE_CLIENT_ID.exec(clientId)?.[1];
  const mac = macFromWire(phone ?? clientId);
  return mac === undefined ? undefined : { mac, source: phone === undefined ? 'lock' : 'phone' };
}

/** The credential with this hash; looks at all of them, and at `least` in any case. */
function find(given: Buffer, known: readonly StoredCredential[], least: number): StoredCredential | undefined {
  let found: StoredCredential | undefined;
  for (let index = 0; index < Math.max(known.length, least); index += 1) {
    const each = known[index] ?? NOTHING;
    if (timingSafeEqual(each.secretHash, given) && each !== NOTHING) found ??= each;
  }
  return found;
}

function refusal(reason: RefusalReason, why: string): Authentication {
  return { ok: false, cause: { reason, why } };
}
