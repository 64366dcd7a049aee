/**
 * Changes of all secrets at once in PostgreSQL: sealing (encrypting with the operator's key), sealing with a new key,
 * and forgetting. The table `fact` has the store's metadata; sealed header values are in base64.
 */
import type { Mac } from '../../../../proto/wire/mac.js';
import { OPERATOR_RECIPIENT } from '../../contract/notify/notification-store.js';
import {
  type ForgetRequest,
  type ForgottenSecrets,
  HASH_KEY_METADATA,
  KEY_ID_METADATA,
  type KeyMetadata,
  type SecretStore,
} from '../../contract/secret-store.js';
import type { Sql } from '../sql.js';
import type { Writes } from '../writes.js';
import { putMetadata } from './batched-writes.js';

interface HeadersRow {
  readonly id: number;
  readonly headers: string;
}

const TABLES_WITH_SECRETS = ['webhook_url', 'webhook_old_secret', 'notify_secret'] as const;

export class Secrets implements SecretStore {
  readonly #read: Sql;
  readonly #writes: Writes;

  constructor(read: Sql, writes: Writes) {
    this.#read = read;
    this.#writes = writes;
  }

  async readKeyMetadata(): Promise<KeyMetadata> {
    const readFact = async (name: string): Promise<string | null> =>
      (await this.#read.get<{ value: string }>('SELECT value FROM fact WHERE name = @name', { name }))?.value ?? null;
    const sample = await this.#read.get<{ sealed: Buffer }>(
      'SELECT secret_sealed AS sealed FROM webhook_url UNION ALL SELECT secret_sealed FROM notify_secret LIMIT 1',
    );
    const hashKey = await readFact(HASH_KEY_METADATA);
    return {
      keyId: await readFact(KEY_ID_METADATA),
      hashKeySealed: hashKey === null ? null : Buffer.from(hashKey, 'base64'),
      sample: sample?.sealed ?? null,
    };
  }

  async recordKeyId(keyId: string): Promise<void> {
    await this.#exclusive('record the key', async (sql) => {
      await putMetadata(sql, KEY_ID_METADATA, keyId);
      // Without this entry, the key that hashes credentials is derived from the key that is recorded here.
      await sql.run('DELETE FROM fact WHERE name = @name', { name: HASH_KEY_METADATA });
    });
  }

  sealPlaintextHeaders(seal: (value: string) => Buffer): Promise<number> {
    return this.#exclusive('seal headers', async (sql) => {
      const plaintextRows = await sql.all<HeadersRow>(
        'SELECT id, headers FROM webhook_url WHERE headers_sealed = 0 FOR UPDATE',
      );
      for (const { id, headers } of plaintextRows)
        await sql.run('UPDATE webhook_url SET headers = @headers, headers_sealed = 1 WHERE id = @id', {
          id,
          headers: mapValues(headers, (value) => seal(value).toString('base64')),
        });
      return plaintextRows.filter(({ headers }) => headers !== '{}').length;
    });
  }

  reseal(reseal: (sealed: Buffer) => Buffer, key: { keyId: string; hashKeySealed: Buffer }): Promise<number> {
    return this.#exclusive('seal secrets again', async (sql) => {
      let count = 0;
      for (const table of TABLES_WITH_SECRETS) {
        const rows = await sql.all<{ id: number; sealed: Buffer }>(`SELECT id, secret_sealed AS sealed FROM ${table}`);
        for (const { id, sealed } of rows) {
          await sql.run(`UPDATE ${table} SET secret_sealed = @sealed WHERE id = @id`, { id, sealed: reseal(sealed) });
          count += 1;
        }
      }
      // All headers are sealed by now: openSecrets seals unencrypted ones first.
      for (const { id, headers } of await sql.all<HeadersRow>('SELECT id, headers FROM webhook_url')) {
        const resealed = mapValues(headers, (value) => {
          count += 1;
          return reseal(Buffer.from(value, 'base64')).toString('base64');
        });
        await sql.run('UPDATE webhook_url SET headers = @headers WHERE id = @id', { id, headers: resealed });
      }
      await putMetadata(sql, KEY_ID_METADATA, key.keyId);
      await putMetadata(sql, HASH_KEY_METADATA, key.hashKeySealed.toString('base64'));
      return count;
    });
  }

  forget({ keyId, makeSealedSecret, disabledWhy, nowMs }: ForgetRequest): Promise<ForgottenSecrets> {
    return this.#exclusive('forget secrets', async (sql) => {
      const forgotten = await readForgotten(sql, nowMs);
      await sql.run('DELETE FROM webhook_old_secret');
      await sql.run('DELETE FROM notify_secret');
      await sql.run('DELETE FROM notification WHERE recipient_id > @id', { id: OPERATOR_RECIPIENT });
      await sql.run('DELETE FROM notify_recipient WHERE id > @id', { id: OPERATOR_RECIPIENT });
      for (const { id } of forgotten.urls)
        await sql.run(
          `UPDATE webhook_url SET secret_sealed = @secret, headers = '{}', headers_sealed = 1 WHERE id = @id`,
          { id, secret: makeSealedSecret() },
        );
      await sql.run(`UPDATE webhook_url SET state = 'disabled', disabled_why = @disabledWhy`, { disabledWhy });
      await sql.run('UPDATE credential SET revoked_at_ms = @nowMs WHERE revoked_at_ms IS NULL', { nowMs });
      await sql.run('UPDATE api_key SET revoked_at_ms = @nowMs WHERE revoked_at_ms IS NULL', { nowMs });
      for (const table of ['access_token', 'user_session', 'invitation']) await sql.run(`DELETE FROM ${table}`);
      await putMetadata(sql, KEY_ID_METADATA, keyId);
      await sql.run('DELETE FROM fact WHERE name = @name', { name: HASH_KEY_METADATA });
      return forgotten;
    });
  }

  #exclusive<T>(action: string, work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#writes.run(action, work, 'exclusive');
  }
}

/** Converts each value of a JSON object of strings. */
function mapValues(json: string, convert: (value: string) => string): string {
  const entries = Object.entries(JSON.parse(json) as Record<string, string>);
  return JSON.stringify(Object.fromEntries(entries.map(([name, value]) => [name, convert(value)])));
}

/** Returns what forgetting the secrets invalidates. */
async function readForgotten(sql: Sql, nowMs: number): Promise<ForgottenSecrets> {
  const urls = await sql.all<{ id: number; merchant: string; url: string; headers: string }>(
    `SELECT w.id, m.name AS merchant, w.url, w.headers FROM webhook_url w JOIN merchant m ON m.id = w.merchant_id
     ORDER BY w.id`,
  );
  const credentials = await sql.all<{ mac: Mac; kind: 'lock' | 'phone'; name: string | null }>(
    `SELECT DISTINCT d.mac, c.kind, c.name FROM credential c JOIN device d ON d.id = c.device_id
     WHERE c.revoked_at_ms IS NULL AND (c.expires_at_ms IS NULL OR c.expires_at_ms > @nowMs)
     ORDER BY d.mac, c.name`,
    { nowMs },
  );
  const apiKeys = await sql.all<ForgottenSecrets['apiKeys'][number]>(
    `SELECT k.public_id AS id, m.name AS merchant, k.name FROM api_key k JOIN merchant m ON m.id = k.merchant_id
     WHERE k.revoked_at_ms IS NULL ORDER BY k.id`,
  );
  // A recipient's id is its merchant's id; the operators' recipient has no merchant.
  const notified = await sql.all<{ merchant: string | null }>(
    `SELECT r.id, m.name AS merchant FROM notify_recipient r LEFT JOIN merchant m ON m.id = r.id
     WHERE r.url IS NOT NULL ORDER BY r.id`,
  );
  return {
    notified: notified.map(({ merchant }) => merchant),
    apiKeys,
    urls: urls.map(({ headers, ...url }) => ({ ...url, headers: Object.keys(JSON.parse(headers)) })),
    locks: [...new Set(credentials.filter(({ kind }) => kind === 'lock').map(({ mac }) => mac))],
    phones: credentials.filter(({ kind }) => kind === 'phone').map(({ mac, name }) => ({ mac, name: name ?? '' })),
  };
}
