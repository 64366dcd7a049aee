/**
 * A lock's state (the gateway's belief: what it knows of the lock) is written only occasionally, since it can be
 * rebuilt from the stored uplinks. A state that is not written yet is dirty. Whenever the gateway is killed, the next
 * one has the same belief about every lock.
 */
import t from 'tap';
import { DirtyStates, MAX_DIRTY_UPLINKS } from '../../../gateway/locks/dirty-states.js';
import { RandomHistory } from '../../helpers/pair/random-history.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const SEEDS = 6;
const STEPS = 40;
const STEPS_BETWEEN_KILLS = 16;

t.test('a gateway that is killed after any commit has the same beliefs after the restart', async (t) => {
  let [acked, written, overlapped] = [0, 0, 0];
  for (let seed = 1; seed <= SEEDS; seed++) {
    const history = await RandomHistory.begin(seed, tempFolder(t));
    for (let step = 1; step <= STEPS; step++) {
      await history.step();
      const beliefs = history.believed();
      const beliefsAfterRestart = await history.restarted();
      if (!t.strictSame(beliefsAfterRestart, beliefs, `seed ${seed}, step ${step}`)) break;
      if (step % STEPS_BETWEEN_KILLS === 0) await history.kill();
    }
    await history.end();
    // Within a step, the history compares after each commit too: with the beliefs of when that commit was made.
    t.same(history.mismatches, [], `seed ${seed}: the same after a kill between two commits of a step`);
    // Commits during which further uplinks were judged: the beliefs had changed when such a commit was stored.
    overlapped += history.overlapped;
    acked += history.acked;
    written += history.statesWritten;
  }
  t.comment(`${acked} acknowledged, ${written} states written`);
  t.ok(acked > SEEDS * STEPS, `${acked} uplinks were acknowledged`);
  t.ok(overlapped > SEEDS * 4, `during ${overlapped} commits further uplinks were judged: several for each seed`);
});

t.test('small commits write as many states as their uplinks are worth, and most of them none', (t) => {
  const LOCKS = 1000;
  const dirty = new DirtyStates<{ readonly deviceId: number }>();
  const locks = Array.from({ length: LOCKS }, (_, deviceId) => ({ deviceId }));
  for (const lock of locks) dirty.add(lock);
  const writtenOf: number[] = [];
  const COMMITS = 1000;
  for (let commit = 0; commit < COMMITS; commit++) {
    const batch = dirty.nextBatch(16);
    writtenOf.push(batch.length);
    dirty.flushStarted(batch);
    dirty.flushed(16);
    // Each lock sends again at once.
    for (const lock of batch) dirty.add(lock);
  }
  const written = writtenOf.reduce((sum, count) => sum + count, 0);
  // A thousand dirty states in 32,768 uplinks, half of the limit, of which these commits have 16,000.
  t.equal(written, Math.floor((LOCKS * 16 * COMMITS) / (MAX_DIRTY_UPLINKS / 2)));
  t.equal(Math.max(...writtenOf), 1, 'none writes two');
  t.end();
});

t.test('a gateway that is killed again and again, soon after each start, writes each state in time', (t) => {
  interface Lock {
    /** How many uplinks had been stored when the stored state began to lack some; undefined if it lacks none. */
    lacksFrom: number | undefined;
  }
  const locks: Lock[] = Array.from({ length: 1000 }, () => ({ lacksFrom: undefined }));
  let [stored, maxLacked] = [0, 0];
  for (let start = 0; start < 12; start++) {
    const dirty = new DirtyStates<Lock>();
    const lacking = new Map<Lock, number>();
    for (const lock of locks) if (lock.lacksFrom !== undefined) lacking.set(lock, stored - lock.lacksFrom);
    dirty.addLoaded(lacking);
    // Too few uplinks that a run would write every state: that takes some 33,000.
    for (let commit = 0; commit < 800; commit++) {
      for (let at = 0; at < 20; at++) {
        const lock = locks[(stored + at) % locks.length] as Lock;
        dirty.add(lock);
        lock.lacksFrom ??= stored + at;
      }
      const batch = dirty.nextBatch(20);
      dirty.flushStarted(batch);
      dirty.flushed(20);
      stored += 20;
      for (const lock of batch) lock.lacksFrom = undefined;
      for (const { lacksFrom = stored } of locks) maxLacked = Math.max(maxLacked, stored - lacksFrom);
    }
  }
  t.ok(stored > 2 * MAX_DIRTY_UPLINKS, `${stored} uplinks`);
  t.ok(maxLacked <= MAX_DIRTY_UPLINKS, `a stored state lacked up to ${maxLacked} uplinks`);
  t.end();
});

t.test('a stored state lacks only some of the newest uplinks, and no commit writes very many states', (t) => {
  const LOCKS = 1000;
  const UPLINKS_PER_COMMIT = 500;
  const locks = Array.from({ length: LOCKS }, (_, deviceId) => ({ deviceId }));
  const dirty = new DirtyStates<{ readonly deviceId: number }>();
  /** How many uplinks had arrived when each lock's state became dirty. */
  const dirtySince = new Map<{ readonly deviceId: number }, number>();
  let [stored, written, maxStatesPerCommit, maxMissingUplinks] = [0, 0, 0, 0];
  for (let commit = 0; commit < 600; commit++) {
    for (let at = 0; at < UPLINKS_PER_COMMIT; at++) {
      const lock = locks[(commit * UPLINKS_PER_COMMIT + at) % LOCKS] as { readonly deviceId: number };
      dirty.add(lock);
      if (!dirtySince.has(lock)) dirtySince.set(lock, stored + at);
    }
    const writtenLocks = dirty.nextBatch(UPLINKS_PER_COMMIT);
    stored += UPLINKS_PER_COMMIT;
    dirty.flushed(UPLINKS_PER_COMMIT);
    for (const lock of writtenLocks) {
      maxMissingUplinks = Math.max(maxMissingUplinks, stored - (dirtySince.get(lock) as number));
      dirty.delete(lock);
      dirtySince.delete(lock);
    }
    written += writtenLocks.length;
    maxStatesPerCommit = Math.max(maxStatesPerCommit, writtenLocks.length);
  }
  for (const since of dirtySince.values()) maxMissingUplinks = Math.max(maxMissingUplinks, stored - since);
  t.ok(maxMissingUplinks <= MAX_DIRTY_UPLINKS, `the stalest state lacked ${maxMissingUplinks} uplinks`);
  t.ok(written / stored <= 0.05, `at most a state for 20 uplinks: ${written} states for ${stored} uplinks`);
  t.ok(
    maxStatesPerCommit <= UPLINKS_PER_COMMIT / 5,
    `at most ${maxStatesPerCommit} states with a commit of ${UPLINKS_PER_COMMIT} uplinks`,
  );
  t.end();
});
