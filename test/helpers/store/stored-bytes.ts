/** Changes stored pings as bit rot does: without the gateway, and without a new checksum. */
import SqliteDatabase from 'better-sqlite3';
import type { Gateway } from '../../../gateway/gateway.js';

/** Returns the path of the store's file. The store describes itself as `SQLite, PATH`. */
export function storeFileOf({ store }: Gateway): string {
  return store.description.replace(/^SQLite, /, '');
}

/** Writes the bytes of the uplinks with this sequence number, also while the gateway runs. */
export function writeStored(gateway: Gateway, sequence: number, bytes: Buffer): void {
  const db = new SqliteDatabase(storeFileOf(gateway));
  db.prepare('UPDATE uplink SET bytes = ? WHERE sequence = ?').run(bytes, sequence);
  db.close();
}
