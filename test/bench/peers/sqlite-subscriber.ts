/**
 * A typical alternative to a gateway, together with Mosquitto: a subscriber that decodes each ping and writes it to
 * SQLite (WAL, synchronous FULL) with one prepared statement, in one transaction per 10 ms or 1,000 rows. The table has
 * the columns of lockgate's log and a unique index on the key. The subscriber does not judge, and the broker
 * acknowledges a ping before it is stored.
 *
 * The program takes one argument, a {@link SubscriberRequest} as JSON, and prints `{}` when it is subscribed. Each line
 * of stdin is a number N: the program answers `{"stored":n}` once N more pings are stored, or when none came for 10 s.
 */
import { createHash } from 'node:crypto';
import { createInterface } from 'node:readline';
import SqliteDatabase, { type Statement, type Transaction } from 'better-sqlite3';
import { connectAsync } from 'mqtt';
import { Seconds, systemClock, type Timer } from '../../../proto/clock.js';
import { decodeUplink } from '../../../proto/wire/codec.js';

/** The program's argument: the broker's port, and the file of the database. */
export interface SubscriberRequest {
  readonly port: number;
  readonly file: string;
  /** The locks, in the order of their ids, which start at 1. */
  readonly macs: readonly string[];
}

/** The topic of a lock's pings. It contains the MAC, since a broker does not tell the subscriber who published. */
export function topicOf(mac: string): string {
  return `up/${mac}`;
}

const COMMIT_AFTER_MS = 10;
const MAX_ROWS_PER_COMMIT = 1000;
const MAX_WAIT_MS = Seconds(10);
/** The kinds of uplinks by their numbers in lockgate's log. */
const KINDS = ['ack', 'cellular', 'gps', 'close_connection'];
const DIGEST_BYTES = 8;

const CREATE_TABLE = `CREATE TABLE uplink (id INTEGER PRIMARY KEY AUTOINCREMENT, device_id INTEGER NOT NULL,
  merchant_id INTEGER NOT NULL, credential_id INTEGER NOT NULL, boot INTEGER NOT NULL, sequence INTEGER NOT NULL,
  digest BLOB NOT NULL, kind INTEGER NOT NULL, bytes BLOB NOT NULL, received_at_ms INTEGER NOT NULL,
  buffered INTEGER NOT NULL);
  CREATE UNIQUE INDEX uplink_by_name ON uplink (credential_id, boot, sequence, digest)`;
const INSERT = `INSERT INTO uplink (device_id, merchant_id, credential_id, boot, sequence, digest, kind, bytes,
  received_at_ms, buffered) VALUES (?, 1, ?, ?, ?, ?, ?, ?, ?, 0) ON CONFLICT DO NOTHING`;

/** The values of a row, in the order of the statement's parameters. */
type UplinkValues = [number, number, number, number, Buffer, number, Buffer, number];

class Subscriber {
  readonly #ids: ReadonlyMap<string, number>;
  readonly #insert: Statement<UplinkValues>;
  readonly #write: Transaction<(rows: readonly UplinkValues[]) => void>;
  #rows: UplinkValues[] = [];
  #commitTimer: Timer | undefined;
  #stored = 0;
  #awaited = Number.POSITIVE_INFINITY;
  #onStored: () => void = () => undefined;

  constructor({ file, macs }: SubscriberRequest) {
    const db = new SqliteDatabase(file);
    db.pragma('journal_mode = WAL');
    db.pragma('synchronous = FULL');
    db.exec(CREATE_TABLE);
    this.#ids = new Map(macs.map((mac, index) => [topicOf(mac), index + 1]));
    this.#insert = db.prepare(INSERT);
    this.#write = db.transaction((rows) => {
      for (const row of rows) this.#insert.run(...row);
    });
  }

  /** Takes a published ping; it is written with the next transaction. */
  take(topic: string, bytes: Buffer): void {
    const id = this.#ids.get(topic);
    const decoded = decodeUplink(bytes);
    if (id === undefined || !decoded.ok) throw new Error(`not a ping of the bench's locks: ${topic}`);
    const { boot, sequence, body } = decoded.value;
    const digest = createHash('sha256').update(bytes).digest().subarray(0, DIGEST_BYTES);
    // A lock's only credential has the lock's id.
    this.#rows.push([id, id, boot, sequence, digest, KINDS.indexOf(body.kind), bytes, systemClock.now()]);
    if (this.#rows.length >= MAX_ROWS_PER_COMMIT) this.#commit();
    else this.#commitTimer ??= systemClock.after(COMMIT_AFTER_MS, () => this.#commit());
  }

  #commit(): void {
    this.#commitTimer?.cancel();
    this.#commitTimer = undefined;
    const rows = this.#rows;
    this.#rows = [];
    this.#write.immediate(rows);
    this.#stored += rows.length;
    if (this.#stored >= this.#awaited) this.#onStored();
  }

  /** Waits until `count` pings are stored since the last call, or no more arrive. Returns the stored number. */
  async waitForStored(count: number): Promise<number> {
    for (let before = -1; this.#stored < count && this.#stored !== before; ) {
      before = this.#stored;
      await new Promise<void>((resolve) => {
        const timeout = systemClock.after(MAX_WAIT_MS, resolve);
        this.#awaited = count;
        this.#onStored = () => {
          timeout.cancel();
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
    console.log(JSON.stringify({ stored: await subscriber.waitForStored(Number(line)) }));
  process.exit(0);
}

if (process.argv[1] === import.meta.filename) await main(process.argv[2] ?? '');
