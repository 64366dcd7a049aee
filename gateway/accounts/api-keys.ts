/**
 * Creates, checks and revokes merchants' API keys (interfaces.md §2). A key is shown once, stored hashed, and revoked
 * by its public id. An expired key is refused like an unknown one.
 *
 * A key is `lgk_<public id>_<secret>`. Lists show the public id, and keys are looked up by it. The secret is 32 random
 * bytes, so a fast keyed hash is enough. Hashes are compared in constant time; if there is no such key, the comparison
 * is with a hash that no key has.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { type Clock, type Milliseconds, Minutes } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { Keys } from '../data-folder/keys.js';
import { faultAt } from '../faults.js';
import type { ApiKey } from '../store/contract/merchants/access-store.js';
import { ALL_KEY_SCOPES, isKeyScope, type KeyScope, orderedScopes } from '../store/contract/merchants/key-scopes.js';
import type { Store } from '../store/contract/store.js';

const PREFIX = 'lgk_';
const PUBLIC_BYTES = 6;
const SECRET_BYTES = 32;
/** Twelve hex digits, then 32 bytes in base64url. */
const KEY_TEXT = /^lgk_([0-9a-f]{12})_[A-Za-z0-9_-]{43}$/;
const MAX_NAME_CHARS = 200;
/** How much of an unknown scope the error quotes. */
const MAX_QUOTED_CHARS = 80;
/** How old a key's stored last use may be: a write for each request would cost more than the request. */
const LAST_USE_WRITE_INTERVAL: Milliseconds = Minutes(1);
/** Keys whose last write is remembered, to skip the next one. At this size the map is cleared. */
const MAX_REMEMBERED_USES = 10_000;

/** The states of an API key. `closed`: its merchant is closed. */
export const API_KEY_STATES = ['active', 'expired', 'revoked', 'closed'] as const;

export type ApiKeyState = (typeof API_KEY_STATES)[number];

const UNMATCHED_HASH = Buffer.alloc(32);

export interface ApiKeyTerms {
  /** What the key may do; everything by default. */
  readonly scopes?: readonly string[] | undefined;
  /** When the key expires, ms since the epoch; never by default. */
  readonly expiresAtMs?: number | null | undefined;
}

export interface ApiKeysParts {
  readonly store: Store;
  /** The gateway's own keys, with which API keys are hashed. */
  readonly keys: Keys;
  /** Wall-clock time. */
  readonly clock: Clock;
}

export class ApiKeys {
  readonly #parts: ApiKeysParts;
  /** When each key's last use was written, ms since the epoch, by the key's row id. */
  readonly #lastUseWrittenAtMs = new Map<number, number>();

  constructor(parts: ApiKeysParts) {
    this.#parts = parts;
  }

  /**
   * Makes a key. `text`, the key itself, is returned here and never again.
   *
   * @param merchant the merchant's name
   * @throws LockgateError `input-name`, `input-scopes`, `input-expiry`, `no-such-merchant`, `too-many-keys`
   */
  async create(
    merchant: string,
    name: string,
    { scopes = ALL_KEY_SCOPES, expiresAtMs = null }: ApiKeyTerms = {},
  ): Promise<{ readonly key: ApiKey; readonly text: string }> {
    const trimmed = checkName(name);
    const wanted = checkScopes(scopes);
    const publicId = randomBytes(PUBLIC_BYTES).toString('hex');
    const text = `${PREFIX}${publicId}_${randomBytes(SECRET_BYTES).toString('base64url')}`;
    const { store, keys, clock } = this.#parts;
    const nowMs = clock.now();
    if (expiresAtMs !== null && expiresAtMs <= nowMs)
      throw faultAt('input-expiry', '/expires_at', 'a key must expire in the future, or never');
    const secretHash = keys.hashSecret(text);
    const row = { merchant, publicId, name: trimmed, secretHash, scopes: wanted, expiresAtMs, nowMs };
    return { key: await store.access.addKey(row), text };
  }

  /** All keys, or one merchant's. */
  async list(merchant?: string): Promise<ApiKey[]> {
    return await this.#parts.store.access.listKeys(merchant);
  }

  /** Gives a key another name. @throws LockgateError `input-name`, `no-such-key` */
  async rename(publicId: string, name: string): Promise<ApiKey> {
    return await this.#parts.store.access.renameKey(publicId, checkName(name));
  }

  /** Revokes a key and its tokens, at once. @throws LockgateError `no-such-key` */
  async revoke(publicId: string): Promise<ApiKey> {
    return await this.#parts.store.access.revokeKey(publicId, this.#parts.clock.now());
  }

  /** The state of a key now. */
  stateOf({ revokedAtMs, expiresAtMs, isMerchantClosed }: ApiKey): ApiKeyState {
    if (revokedAtMs !== null) return 'revoked';
    if (expiresAtMs !== null && expiresAtMs <= this.#parts.clock.now()) return 'expired';
    return isMerchantClosed ? 'closed' : 'active';
  }

  /** The key with this text; undefined if there is none, it is revoked or expired, or its merchant is closed. */
  async check(text: string): Promise<ApiKey | undefined> {
    const { store, keys, clock } = this.#parts;
    const publicId = KEY_TEXT.exec(text)?.[1];
    const stored = publicId === undefined ? null : await store.access.findKey(publicId);
    const fits = timingSafeEqual(keys.hashSecret(text), stored?.secretHash ?? UNMATCHED_HASH);
    if (stored === null || !fits || this.stateOf(stored) !== 'active') return undefined;
    this.#noteUse(stored, clock.now());
    return stored;
  }

  /** Whether a key that was valid before still is. */
  async isStillActive({ publicId }: ApiKey): Promise<boolean> {
    const stored = await this.#parts.store.access.findKey(publicId);
    return stored !== null && this.stateOf(stored) === 'active';
  }

  /** Writes the key's last use. The request does not wait for the write, and succeeds even if the write fails. */
  #noteUse({ id, lastUsedAtMs }: ApiKey, nowMs: number): void {
    const writtenAtMs = this.#lastUseWrittenAtMs.get(id) ?? lastUsedAtMs;
    // After the clock was set back, the stored use is in the future, and is written again.
    if (writtenAtMs !== null && nowMs - writtenAtMs < LAST_USE_WRITE_INTERVAL && nowMs >= writtenAtMs) return;
    if (this.#lastUseWrittenAtMs.size >= MAX_REMEMBERED_USES) this.#lastUseWrittenAtMs.clear();
    this.#lastUseWrittenAtMs.set(id, nowMs);
    // After a failure, the next use is written.
    this.#parts.store.access.recordKeyUse(id, nowMs).catch(() => this.#lastUseWrittenAtMs.delete(id));
  }
}

/** The name without blanks around it. @throws LockgateError `input-name` */
function checkName(name: string): string {
  const trimmed = name.trim();
  if (trimmed === '' || trimmed.length > MAX_NAME_CHARS)
    throw new LockgateError('input-name', `a key's name has 1 to ${MAX_NAME_CHARS} characters`);
  return trimmed;
}

/** The scopes with these names, in their usual order. @throws LockgateError `input-scopes` */
function checkScopes(names: readonly string[]): readonly KeyScope[] {
  const expected = `expected any of ${ALL_KEY_SCOPES.join(', ')}`;
  const unknown = names.find((name) => !isKeyScope(name));
  if (unknown !== undefined)
    throw new LockgateError(
      'input-scopes',
      `there is no scope ${JSON.stringify(unknown.slice(0, MAX_QUOTED_CHARS))}: ${expected}`,
    );
  if (names.length === 0) throw new LockgateError('input-scopes', `a key needs a scope: ${expected}`);
  return orderedScopes(names);
}
