/** Reflash marks, the times when a lock's flash was wiped (mark-store.ts), through Kysely. */

import type { MarkStore, NewMark } from '../../contract/devices/mark-store.js';
import type { TableParts } from '../table-parts.js';
import { putState } from './devices.js';

export class Marks implements MarkStore {
  readonly #parts: TableParts;

  constructor(parts: TableParts) {
    this.#parts = parts;
  }

  async readAll(deviceIds?: readonly number[]): Promise<ReadonlyMap<number, readonly number[]>> {
    const marks = new Map<number, number[]>();
    if (deviceIds?.length === 0) return marks;
    const rows = deviceIds === undefined ? this.#rows() : this.#rows().where('device_id', 'in', deviceIds);
    for (const { device_id: deviceId, mark_ms: markMs } of await rows.execute()) {
      const marksOfLock = marks.get(deviceId);
      if (marksOfLock === undefined) marks.set(deviceId, [markMs]);
      else marksOfLock.push(markMs);
    }
    return marks;
  }

  async read(deviceId: number): Promise<readonly number[]> {
    return (await this.#rows().where('device_id', '=', deviceId).execute()).map(({ mark_ms: markMs }) => markMs);
  }

  add({ deviceId, markMs, state }: NewMark): Promise<void> {
    const { mutex, tables, dialect } = this.#parts;
    return mutex.runExclusive(() =>
      tables.transaction().execute(async (db) => {
        const row = { device_id: deviceId, mark_ms: markMs };
        await db
          .insertInto('reflash_mark')
          .values(row)
          .onConflict((conflict) => conflict.columns(['device_id', 'mark_ms']).doNothing())
          .execute();
        await putState(db, dialect, deviceId, state);
      }),
    );
  }

  #rows() {
    return this.#parts.readTables.selectFrom('reflash_mark').selectAll().orderBy('device_id').orderBy('mark_ms');
  }
}
