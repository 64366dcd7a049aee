/**
 * Reads a lock's power states and connections of a span of time from its log, in slices between which pings are taken.
 * The store leaves out most uplinks, which repeat the state of the one before.
 */
import { LockHistory } from './lock-history.js';
import type { PastReader, Span } from './ping-read.js';

/** Maximum number of uplinks that one call reads, and the same for connection events. */
const MAX_ENTRIES = 10_000;

/**
 * Returns the history as JSON, complete or from the oldest entry that was read.
 *
 * @param span by the time of receipt
 * @param nowMs the present time of the run's clock: nothing later is read
 */
export async function readLockHistory(reader: PastReader, deviceId: number, span: Span, nowMs: number) {
  const { store, turns, signal, chargeRows } = reader;
  // What was received in this very millisecond is included.
  const toMs = Math.min(span.toMs, nowMs + 1);
  const toUplinkId = (await store.webhooks.findFirstUplinkFrom(toMs)) - 1;
  const start = await store.why.findLogStart(deviceId, toUplinkId, toMs, MAX_ENTRIES);
  const history = new LockHistory({ fromMs: span.fromMs, toMs });
  let examined = 0;
  try {
    reading: for await (const slice of store.why.readStateChangesFrom(deviceId, start, toUplinkId)) {
      examined += slice.examined;
      for (const entry of slice.entries) {
        if (!history.take(entry)) break reading;
      }
      await turns.next(signal);
    }
  } finally {
    chargeRows(examined);
  }
  return history.json(start.isCut);
}
