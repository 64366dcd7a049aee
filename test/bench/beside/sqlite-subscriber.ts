/**
 * What people build instead of a gateway, beside Mosquitto: a subscriber that decodes each ping and writes it to SQLite
 * (WAL, synchronous FULL), in one transaction for what came within 10 ms or for 1,000 rows, by one prepared statement,
 * into the columns and under the unique name that our own log has. It judges nothing, and its broker has acknowledged
 * before it stores.
 *
 * It takes one argument, a {@link SubscriberRequest} as JSON, prints `{}` when it is subscribed, and at each line N of
 * stdin answers `{"stored":n}` once N more pings are stored, or when none came for 10 s.
 */
import { createHash } from 'node:crypto';
import { createInterface } from 'node:readline';
import SqliteDatabase, { type Statement, type Transaction } from 'better-sqlite3';
import { connectAsync } from 'mqtt';
import { Seconds, systemClock, type Timer } from '../../../proto/clock.js';
import { decodeUplink } from '../../../proto/wire/codec.js';

export interface SubscriberRequest {
  readonly port: number;
  readonly file: string;
  /** In the order of their ids, from 1 on. */
  readonly macs: readonly string[];
}

/** The topic of a lock's pings: unlike a gateway, a broker does not tell who published. */
export function topicOf(mac: string): string {
  return `up/${mac}`;
}

const COMMIT_AFTER_MS = 10;
const COMMIT_ROWS = 1000;
const LOST_AFTER = Seconds(10);
const KINDS = ['ack', 'cellular', 'gps', 'close_connection'];
const DIGEST_BYTES = 8;

const TABLE = `CREATE TABLE uplink (id INTEGER PRIMARY KEY AUTOINCREMENT, device_id INTEGER NOT NULL,
  merchant_id INTEGER NOT NULL, credential_id INTEGER NOT NULL, boot INTEGER NOT NULL, sequence INTEGER NOT NULL,
  digest BLOB NOT NULL, kind INTEGER NOT NULL, bytes BLOB NOT NULL, received_at_ms INTEGER NOT NULL,
  buffered INTEGER NOT NULL);
  CREATE UNIQUE INDEX uplink_by_name ON uplink (credential_id, boot, sequence, digest)`;
const INSERT = `INSERT INTO uplink (device_id, merchant_id, credential_id, boot, sequence, digest, kind, bytes,
  received_at_ms, buffered) VALUES (?, 1, ?, ?, ?, ?, ?, ?, ?, 0) ON CONFLICT DO NOTHING`;

type UplinkValues = [number, number, number, number, Buffer, number, Buffer, number];

class Subscriber {
  readonly #ids: ReadonlyMap<string, number>;
  readonly #insert: Statement<UplinkValues>;
  readonly #write: Transaction<(rows: readonly UplinkValues[]) => void>;
  #rows: UplinkValues[] = [];
  #soon: Timer | undefined;
  #stored = 0;
  #awaited = Number.POSITIVE_INFINITY;
  #told: () => void = () => undefined;

  constructor({ file, macs }: SubscriberRequest) {
    const db = new SqliteDatabase(file);
    db.pragma('journal_mode = WAL');
    db.pragma('synchronous = FULL');
    db.exec(TABLE);
    this.#ids = new Map(macs.map((mac, index) => [topicOf(mac), index + 1]));
    this.#insert = db.prepare(INSERT);
    this.#write = db.transaction((rows) => {
      for (const row of rows) this.#insert.run(...row);
    });
  }

  take(topic: string, bytes: Buffer): void {
    const id = this.#ids.get(topic);
    const decoded = decodeUplink(bytes);
    if (id === undefined || !decoded.ok) throw new Error(`not a ping of ours: ${topic}`);
    const { boot, sequence, body } = decoded.value;
    const digest = createHash('sha256').update(bytes).digest().subarray(0, DIGEST_BYTES);
    this.#rows.push([id, id, boot, sequence, digest, KINDS.indexOf(body.kind), bytes, systemClock.now()]);
    if (this.#rows.length >= COMMIT_ROWS) this.#commit();
    else this.#soon ??= systemClock.after(COMMIT_AFTER_MS, () => this.#commit());
  }

  #commit(): void {
    this.#soon?.cancel();
    this.#soon = undefined;
    const rows = this.#rows;
    this.#rows = [];
    this.#write.immediate(rows);
    this.#stored += rows.length;
    if (this.#stored >= this.#awaited) this.#told();
  }

  /** Resolves with how many were stored since the last time, once it is so many or no more come. */
  async stored(count: number): Promise<number> {
    for (let before = -1; this.#stored < count && this.#stored !== before; ) {
      before = this.#stored;
      await new Promise<void>((resolve) => {
        const late = systemClock.after(LOST_AFTER, resolve);
        this.#awaited = count;
        this.#told = () => {
          late.cancel();
          resolve();
        };
      });
    }
    this.#awaited = Number.POSITIVE_INFINITY;
    const stored = this.#stored;
    this.#stored = 0;
    return stored;
  }
}

async function main(argument: string): Promise<void> {
  const request = JSON.parse(argument) as SubscriberRequest;
  const subscriber = new Subscriber(request);
  const client = await connectAsync(`mqtt://127.0.0.1:${request.port}`, { clientId: 'subscriber' });
  client.on('message', (topic, bytes) => subscriber.take(topic, bytes));
  await client.subscribeAsync(topicOf('+'), { qos: 1 });
  console.log('{}');
  for await (const line of createInterface({ input: process.stdin }))
    console.log(JSON.stringify({ stored: await subscriber.stored(Number(line)) }));
  process.exit(0);
}

if (process.argv[1] === import.meta.filename) await main(process.argv[2] ?? '');
