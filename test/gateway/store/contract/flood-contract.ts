// The part of the store contract (how every database engine must behave) about limits. Each engine’s test calls it.
import t from 'tap';
import { type Incoming, MAX_LOCK_EVENTS_PER_LOCK } from '../../../../gateway/store/contract/log/commit.js';
import { testMac } from '../../../helpers/gateway/test-gateway.js';
import { commit, HASH, type OpenStore, withLock } from './contract-store.js';

/** Tests that one lock can't fill the disk. With 105,000 entries it is slow, so it runs once for each engine. */
export function floodContract(engine: string, open: OpenStore): void {
  t.test(`${engine}: a lock that connects in a loop neither fills the disk nor affects another lock`, async (t) => {
    const { store } = await withLock(t, open);
    await store.addDevice({ mac: testMac(2), merchant: 'Amber', simulated: true, secretHash: HASH, nowMs: 6 });
    const connect = (deviceId: number, atMs: number): Incoming => {
      return { type: 'lock-event', deviceId, atMs, event: { event: 'connect' } };
    };
    const flood = Array.from({ length: MAX_LOCK_EVENTS_PER_LOCK + 5000 }, (_, at) => connect(1, at));
    await store.append(commit(connect(2, 7), ...flood));
    let [retainedCount, oldestMs] = [0, Number.POSITIVE_INFINITY];
    for await (const chunk of store.readLog(1, 10_000)) {
      for (const entry of chunk) {
        retainedCount += 1;
        if (entry.type === 'lock-event') oldestMs = Math.min(oldestMs, entry.atMs);
      }
    }
    // Old events are deleted in batches, so that there may be more than the limit.
    t.ok(
      retainedCount >= MAX_LOCK_EVENTS_PER_LOCK && retainedCount < MAX_LOCK_EVENTS_PER_LOCK + 4000,
      `${retainedCount} are retained`,
    );
    t.equal(oldestMs, MAX_LOCK_EVENTS_PER_LOCK + 5000 - retainedCount, 'the newest events are retained');
    let otherLocksEvents = 0;
    for await (const chunk of store.readLog(2, 10)) otherLocksEvents += chunk.length;
    t.equal(otherLocksEvents, 1);
  });
}
