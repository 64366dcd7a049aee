/**
 * Reads the account of a lock that connects, with its credentials. Thousands connect at once after the end of a
 * gateway, so the reads that come while one is under way are made together: with a query for each, the last locks would
 * wait so long that they give up, try another gateway, and so never end the storm.
 */
import type { Mac } from '../../../../proto/wire/mac.js';
import type { Source } from '../../../../proto/wire/ping.js';
import { type LockAccount, MAX_CREDENTIALS_READ, type StoredCredential } from '../../contract/devices/device.js';
import type { Sql } from '../sql.js';

/** How many accounts one query reads. */
const MAX_READ_AT_ONCE = 500;

interface Waiting {
  readonly mac: Mac;
  readonly kind: Source;
  readonly resolve: (account: LockAccount | null) => void;
  readonly reject: (error: unknown) => void;
}

/** An account with one of its credentials; the latter's members are null if it has none. */
interface AccountRow {
  /** The place of the read in the query, from 1 on. */
  readonly place: number;
  readonly device_id: number;
  readonly merchant_id: number;
  readonly simulated: number;
  readonly closed_at_ms: number | null;
  readonly credential_id: number | null;
  readonly secret_hash: Buffer;
  readonly expires_at_ms: number | null;
  readonly revoked_at_ms: number | null;
}

/**
 * Credentials are looked for under the id 0 for an unknown MAC too, so that the response time does not show whether a
 * MAC exists.
 */
const READ = `SELECT k.place, d.id AS device_id, d.merchant_id, d.simulated, m.closed_at_ms,
    c.id AS credential_id, c.secret_hash, c.expires_at_ms, c.revoked_at_ms
  FROM unnest(@macs::text[], @kinds::text[]) WITH ORDINALITY AS k (mac, kind, place)
  LEFT JOIN device d ON d.mac = k.mac AND d.removed_at_ms IS NULL
  LEFT JOIN merchant m ON m.id = d.merchant_id
  LEFT JOIN LATERAL (
    SELECT * FROM credential WHERE device_id = coalesce(d.id, 0) AND kind = k.kind
    ORDER BY revoked_at_ms IS NOT NULL, id DESC LIMIT ${MAX_CREDENTIALS_READ}) c ON true
  WHERE d.id IS NOT NULL
  ORDER BY k.place, c.revoked_at_ms IS NOT NULL, c.id DESC`;

export class LockAccounts {
  readonly #sql: Sql;
  readonly #waiting: Waiting[] = [];
  #isRunning = false;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Returns a lock in service with its credentials, as they are at some time after the call; null if there is none. */
  find(mac: Mac, kind: Source): Promise<LockAccount | null> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ mac, kind, resolve, reject });
      void this.#run();
    });
  }

  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    // What the same turn of the event loop reads is read together.
    await Promise.resolve();
    while (this.#waiting.length > 0) await this.#readAll(this.#waiting.splice(0, MAX_READ_AT_ONCE));
    this.#isRunning = false;
  }

  async #readAll(reads: readonly Waiting[]): Promise<void> {
    try {
      const rows = await this.#sql.all<AccountRow>(READ, {
        macs: reads.map(({ mac }) => mac),
        kinds: reads.map(({ kind }) => kind),
      });
      const byPlace = new Map<number, AccountRow[]>();
      for (const row of rows) byPlace.set(row.place, [...(byPlace.get(row.place) ?? []), row]);
      for (const [index, { mac, resolve }] of reads.entries()) resolve(toAccount(mac, byPlace.get(index + 1) ?? []));
    } catch (error) {
      for (const { reject } of reads) reject(error);
    }
  }
}

function toAccount(mac: Mac, rows: readonly AccountRow[]): LockAccount | null {
  const [first] = rows;
  if (first === undefined) return null;
  const { device_id: deviceId, merchant_id: merchantId, simulated, closed_at_ms: closedAtMs } = first;
  const credentials = rows.flatMap((row): StoredCredential[] => {
    const { credential_id: id, secret_hash: secretHash, expires_at_ms: expiresAtMs, revoked_at_ms: revokedAtMs } = row;
    return id === null ? [] : [{ id, secretHash, expiresAtMs, isRevoked: revokedAtMs !== null }];
  });
  return { deviceId, merchantId, mac, simulated: simulated === 1, isMerchantClosed: closedAtMs !== null, credentials };
}
