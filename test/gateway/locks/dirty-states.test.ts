// A lock's state is written only occasionally, since the log reproduces it. Whenever the gateway is killed, the next
// one has the same belief about every lock.
import t from 'tap';
import { DirtyStates, MAX_DIRTY_UPLINKS } from '../../../gateway/locks/dirty-states.js';
import { RandomHistory } from '../../helpers/pair/random-history.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const SEEDS = 6;
const STEPS = 40;

t.test('a gateway that is killed after any commit has the same beliefs after the restart', async (t) => {
  let [acked, written, overlapped] = [0, 0, 0];
  for (let seed = 1; seed <= SEEDS; seed++) {
    const history = await RandomHistory.begin(seed, tempFolder(t));
    for (let step = 1; step <= STEPS; step++) {
      await history.step();
      const believed = history.believed();
      const restarted = await history.restarted();
      if (!t.strictSame(restarted, believed, `seed ${seed}, step ${step}`)) break;
      if (step % 16 === 0) await history.kill();
    }
    await history.end();
    t.same(history.mismatches, [], `seed ${seed}: the same after a commit during which more was judged`);
    overlapped += history.overlapped;
    acked += history.acked;
    written += history.statesWritten;
  }
  t.comment(`${acked} acknowledged, ${written} states written`);
  t.ok(acked > SEEDS * STEPS, `${acked} uplinks were acknowledged`);
  t.ok(overlapped > SEEDS * 4, `more was judged during ${overlapped} commits`);
});

t.test('a stored state lacks only some of the newest uplinks, and no commit writes very many states', (t) => {
  const LOCKS = 1000;
  const BATCH = 500;
  const locks = Array.from({ length: LOCKS }, (_, deviceId) => ({ deviceId }));
  const dirty = new DirtyStates<{ readonly deviceId: number }>();
  const lackSince = new Map<{ readonly deviceId: number }, number>();
  let [stored, written, most, oldest] = [0, 0, 0, 0];
  for (let commit = 0; commit < 600; commit++) {
    for (let at = 0; at < BATCH; at++) {
      const lock = locks[(commit * BATCH + at) % LOCKS] as { readonly deviceId: number };
      dirty.add(lock);
      if (!lackSince.has(lock)) lackSince.set(lock, stored + at);
    }
    const batch = dirty.nextBatch(BATCH);
    stored += BATCH;
    dirty.flushed(BATCH);
    for (const lock of batch) {
      oldest = Math.max(oldest, stored - (lackSince.get(lock) as number));
      dirty.delete(lock);
      lackSince.delete(lock);
    }
    written += batch.length;
    most = Math.max(most, batch.length);
  }
  for (const since of lackSince.values()) oldest = Math.max(oldest, stored - since);
  t.ok(oldest <= MAX_DIRTY_UPLINKS, `the oldest lacked one ${oldest} uplinks back`);
  t.ok(written / stored <= 0.05, `${written} states for ${stored} uplinks`);
  t.ok(most <= BATCH / 5, `at most ${most} states with a commit of ${BATCH} uplinks`);
  t.end();
});
