/**
 * Changes of all secrets of the SQLite store at once, in hand-written SQL: sealing (encrypting with the operator's
 * key), sealing with a new key, and forgetting. Every write holds the write mutex. The table `fact` has the store's
 * metadata.
 */
import type { Database } from 'better-sqlite3';
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
import { type GuardedWriter, writeExclusively } from '../exclusive-write.js';

export interface SqliteSecretsParts extends GuardedWriter {
  readonly reader: Database;
}

interface HeadersRow {
  readonly id: number;
  readonly headers: string;
}

export class SqliteSecrets implements SecretStore {
  readonly #parts: SqliteSecretsParts;

  constructor(parts: SqliteSecretsParts) {
    this.#parts = parts;
  }

  async readKeyMetadata(): Promise<KeyMetadata> {
    const { reader } = this.#parts;
    const metadata = reader.prepare('SELECT value FROM fact WHERE name = ?').pluck();
    const hashKey = metadata.get(HASH_KEY_METADATA) as string | undefined;
    const sample = reader
      .prepare('SELECT secret_sealed FROM webhook_url UNION ALL SELECT secret_sealed FROM notify_secret LIMIT 1')
      .pluck()
      .get();
    return {
      keyId: (metadata.get(KEY_ID_METADATA) as string | undefined) ?? null,
      hashKeySealed: hashKey === undefined ? null : Buffer.from(hashKey, 'base64'),
      sample: (sample as Buffer | undefined) ?? null,
    };
  }

  async recordKeyId(keyId: string): Promise<void> {
    await writeExclusively(this.#parts, 'record the key', (db) => {
      putMetadata(db, KEY_ID_METADATA, keyId);
      // Without this entry, the key that hashes credentials is derived from the key that is recorded here.
      db.prepare('DELETE FROM fact WHERE name = ?').run(HASH_KEY_METADATA);
    });
  }

  sealPlaintextHeaders(seal: (value: string) => Buffer): Promise<number> {
    return writeExclusively(this.#parts, 'seal headers', (db) => {
      const plaintextRows = db
        .prepare('SELECT id, headers FROM webhook_url WHERE headers_sealed = 0')
        .all() as HeadersRow[];
      const writeHeaders = db.prepare('UPDATE webhook_url SET headers = ?, headers_sealed = 1 WHERE id = ?');
      for (const { id, headers } of plaintextRows)
        writeHeaders.run(
          mapValues(headers, (value) => seal(value).toString('base64')),
          id,
        );
      return plaintextRows.filter(({ headers }) => headers !== '{}').length;
    });
  }

  reseal(resealOne: (sealed: Buffer) => Buffer, key: { keyId: string; hashKeySealed: Buffer }): Promise<number> {
    return writeExclusively(this.#parts, 'seal secrets again', (db) => {
      let count = 0;
      for (const table of ['webhook_url', 'webhook_old_secret', 'notify_secret']) {
        const rows = db.prepare(`SELECT id, secret_sealed FROM ${table}`).all();
        const writeSecret = db.prepare(`UPDATE ${table} SET secret_sealed = ? WHERE id = ?`);
        for (const { id, secret_sealed } of rows as { id: number; secret_sealed: Buffer }[]) {
          writeSecret.run(resealOne(secret_sealed), id);
          count += 1;
        }
      }
      // All headers are sealed by now: openSecrets seals unencrypted ones first.
      const writeHeaders = db.prepare('UPDATE webhook_url SET headers = ? WHERE id = ?');
      for (const { id, headers } of db.prepare('SELECT id, headers FROM webhook_url').all() as HeadersRow[])
        writeHeaders.run(
          mapValues(headers, (value) => {
            count += 1;
            return resealOne(Buffer.from(value, 'base64')).toString('base64');
          }),
          id,
        );
      putMetadata(db, KEY_ID_METADATA, key.keyId);
      putMetadata(db, HASH_KEY_METADATA, key.hashKeySealed.toString('base64'));
      return count;
    });
  }

  forget({ keyId, makeSealedSecret, disabledWhy, nowMs }: ForgetRequest): Promise<ForgottenSecrets> {
    return writeExclusively(this.#parts, 'forget secrets', (db) => {
      const forgotten = readForgotten(db, nowMs);
      // Merchants' recipients go (their ids are above the operators'): without a secret nothing can be signed for them.
      db.exec(`DELETE FROM webhook_old_secret; DELETE FROM notify_secret;
        DELETE FROM notification WHERE recipient_id > ${OPERATOR_RECIPIENT};
        DELETE FROM notify_recipient WHERE id > ${OPERATOR_RECIPIENT}`);
      const clearUrl = db.prepare(
        `UPDATE webhook_url SET secret_sealed = ?, headers = '{}', headers_sealed = 1 WHERE id = ?`,
      );
      for (const { id } of forgotten.urls) clearUrl.run(makeSealedSecret(), id);
      db.prepare(`UPDATE webhook_url SET state = 'disabled', disabled_why = ?`).run(disabledWhy);
      db.prepare('UPDATE credential SET revoked_at_ms = ? WHERE revoked_at_ms IS NULL').run(nowMs);
      db.prepare('UPDATE api_key SET revoked_at_ms = ? WHERE revoked_at_ms IS NULL').run(nowMs);
      db.exec('DELETE FROM access_token; DELETE FROM user_session; DELETE FROM invitation');
      putMetadata(db, KEY_ID_METADATA, keyId);
      db.prepare('DELETE FROM fact WHERE name = ?').run(HASH_KEY_METADATA);
      return forgotten;
    });
  }
}

function putMetadata(db: Database, name: string, value: string): void {
  db.prepare(
    'INSERT INTO fact (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
  ).run(name, value);
}

/** Converts each value of a JSON object of strings. */
function mapValues(json: string, convert: (value: string) => string): string {
  const entries = Object.entries(JSON.parse(json) as Record<string, string>);
  return JSON.stringify(Object.fromEntries(entries.map(([name, value]) => [name, convert(value)])));
}

/**
 * Returns what forgetting the secrets invalidates: API keys, webhook URLs, and the locks and phones with credentials.
 */
function readForgotten(db: Database, nowMs: number): ForgottenSecrets {
  const urls = db
    .prepare(
      `SELECT w.id, m.name AS merchant, w.url, w.headers FROM webhook_url w JOIN merchant m ON m.id = w.merchant_id
       ORDER BY w.id`,
    )
    .all() as { id: number; merchant: string; url: string; headers: string }[];
  const credentials = db
    .prepare(
      `SELECT DISTINCT d.mac, c.kind, c.name FROM credential c JOIN device d ON d.id = c.device_id
       WHERE c.revoked_at_ms IS NULL AND (c.expires_at_ms IS NULL OR c.expires_at_ms > ?) ORDER BY d.mac, c.name`,
    )
    .all(nowMs) as { mac: Mac; kind: 'lock' | 'phone'; name: string | null }[];
  const apiKeys = db
    .prepare(
      `SELECT k.public_id AS id, m.name AS merchant, k.name FROM api_key k JOIN merchant m ON m.id = k.merchant_id
       WHERE k.revoked_at_ms IS NULL ORDER BY k.id`,
    )
    .all() as ForgottenSecrets['apiKeys'][number][];
  const notified = db
    .prepare(
      `SELECT r.id, m.name AS merchant FROM notify_recipient r LEFT JOIN merchant m ON m.id = r.id
       WHERE r.url IS NOT NULL ORDER BY r.id`,
    )
    .all() as { id: number; merchant: string | null }[];
  return {
    notified: notified.map(({ merchant }) => merchant),
    apiKeys,
    urls: urls.map(({ headers, ...url }) => ({ ...url, headers: Object.keys(JSON.parse(headers)) })),
    locks: [...new Set(credentials.filter(({ kind }) => kind === 'lock').map(({ mac }) => mac))],
    phones: credentials.filter(({ kind }) => kind === 'phone').map(({ mac, name }) => ({ mac, name: name ?? '' })),
  };
}
