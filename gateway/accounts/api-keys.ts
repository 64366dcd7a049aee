/**
 * API keys: made for a merchant, shown once, stored hashed, revoked by their public id (interfaces.md §2).
 *
 * A key is `lgk_<public id>_<secret>`. The public id is what lists show and what a key is looked up by; the secret is
 * 32 random bytes, so that a fast keyed hash is enough, and it is compared in constant time, with a hash that nothing
 * fits where there is no such key.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { type Clock, type Milliseconds, Minutes } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { Keys } from '../data-folder/keys.js';
import type { ApiKey } from '../store/contract/merchants/access-store.js';
import type { Store } from '../store/contract/store.js';

const PREFIX = 'lgk_';
const PUBLIC_BYTES = 6;
const SECRET_BYTES = 32;
/** Twelve hex digits, then 32 bytes in base64url. */
const KEY_TEXT = /^lgk_([0-9a-f]{12})_[A-Za-z0-9_-]{43}$/;
/** The longest name of a key, in characters. */
const MAX_NAME = 200;
/** How far the last use that is stored may lag behind: a write for each request would cost more than the request. */
const USE_NOTED_EVERY: Milliseconds = Minutes(1);
/** Keys whose last use is remembered, so that it is not written again; of more, all are forgotten. */
const USES_REMEMBERED = 10_000;

const NOTHING_FITS = Buffer.alloc(32);

export interface ApiKeysParts {
  readonly store: Store;
  readonly keys: Keys;
  /** The wall's. */
  readonly clock: Clock;
}

export class ApiKeys {
  readonly #parts: ApiKeysParts;
  /** When each key's use was last written, by its row's id. */
  readonly #noted = new Map<number, number>();

  constructor(parts: ApiKeysParts) {
    this.#parts = parts;
  }

  /**
   * Makes a key. The text is answered here and never again.
   *
   * @param merchant the merchant's name
   * @throws LockgateError `input-name`, `no-such-merchant`, `too-many-keys`
   */
  async create(merchant: string, name: string): Promise<{ readonly key: ApiKey; readonly text: string }> {
    const trimmed = name.trim();
    if (trimmed === '' || trimmed.length > MAX_NAME)
      throw new LockgateError('input-name', `a key's name has 1 to ${MAX_NAME} characters`);
    const publicId = randomBytes(PUBLIC_BYTES).toString('hex');
    const text = `${PREFIX}${publicId}_${randomBytes(SECRET_BYTES).toString('base64url')}`;
    const { store, keys, clock } = this.#parts;
    const secretHash = keys.hashSecret(text);
    const key = await store.access.addKey({ merchant, publicId, name: trimmed, secretHash, nowMs: clock.now() });
    return { key, text };
  }

  /** All of them, or a merchant's. */
  async list(merchant?: string): Promise<ApiKey[]> {
    return await this.#parts.store.access.listKeys(merchant);
  }

  /** Ends a key and its tokens, at once. @throws LockgateError `no-such-key` */
  async revoke(publicId: string): Promise<ApiKey> {
    return await this.#parts.store.access.revokeKey(publicId, this.#parts.clock.now());
  }

  /** The key that this text is, where it is in force. */
  async check(text: string): Promise<ApiKey | undefined> {
    const { store, keys, clock } = this.#parts;
    const publicId = KEY_TEXT.exec(text)?.[1];
    const stored = publicId === undefined ? null : await store.access.findKey(publicId);
    const fits = timingSafeEqual(keys.hashSecret(text), stored?.secretHash ?? NOTHING_FITS);
    if (stored === null || !fits || stored.revokedAtMs !== null) return undefined;
    this.#noteUse(stored, clock.now());
    return stored;
  }

  /** Nobody waits for it, and it may fail: whoever calls has a key either way. */
  #noteUse({ id, lastUsedAtMs }: ApiKey, nowMs: number): void {
    const before = this.#noted.get(id) ?? lastUsedAtMs;
    if (before !== null && nowMs - before < USE_NOTED_EVERY && nowMs >= before) return;
    if (this.#noted.size >= USES_REMEMBERED) this.#noted.clear();
    this.#noted.set(id, nowMs);
    this.#parts.store.access.noteKeyUse(id, nowMs).catch(() => this.#noted.delete(id));
  }
}
