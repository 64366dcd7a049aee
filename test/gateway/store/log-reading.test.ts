/**
 * A lock's log (its stored uplinks and events) that is read while the log thread writes to it is a prefix of the log
 * that is read later: a commit becomes visible completely, and only when it is answered. These tests read between the
 * moment at which the log thread has written a commit and the moment at which this thread receives the answer.
 */
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t, { type Test } from 'tap';
import { Locks } from '../../../gateway/locks/locks.js';
import type { Commit, Incoming } from '../../../gateway/store/contract/log/commit.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { uplinkDigest } from '../../../gateway/webhooks/event-id.js';
import { Days, Hours, ManualClock } from '../../../proto/clock.js';
import { presence } from '../../../proto/power/judge/presence.js';
import { POWER_MODEL } from '../../../proto/power/model.js';
import type { Ping } from '../../../proto/wire/ping.js';
import { testBytes, testMac, testUplink } from '../../helpers/gateway/test-gateway.js';
import { chooseSeed, SeededChance } from '../../helpers/pair/seeded-chance.js';
import { openStore } from '../../helpers/store/new-store.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const LOCKS = 3;
/** So few uplinks that the log's indexes are written often. */
const SMALL_RUN_SIZE = { minUplinks: 20, uplinksPerCredential: 2, maxUplinks: 40 };
/** Maximum rounds of waiting for the thread, a millisecond each. */
const MAX_WAIT_ROUNDS = 20_000;

t.setTimeout(60_000);

/** A ping of a lock, as the gateway stores it. */
function uplink(lock: number, sequence: number, bytes = testBytes(sequence)): Incoming {
  const key = { deviceId: lock, merchantId: 1, credentialId: lock, boot: 1, sequence };
  return {
    type: 'uplink',
    ...key,
    digest: uplinkDigest(bytes),
    kind: 1,
    bytes,
    receivedAtMs: sequence,
    buffered: false,
  };
}

/** A new store with some locks. @param logThread whether another thread writes the log */
async function openWithLocks(folder: string, logThread: boolean): Promise<Store> {
  const store = await openStore(folder, { logThread, runSize: SMALL_RUN_SIZE });
  await store.addMerchant('Amber', 1);
  const account = { merchant: 'Amber', simulated: false, secretHash: Buffer.alloc(32), nowMs: 1 };
  for (let lock = 1; lock <= LOCKS; lock++) await store.addDevice({ ...account, mac: testMac(lock) });
  return store;
}

/** Returns the log of a lock as a list of entries. `betweenChunks` is awaited after each chunk. */
async function logOf(
  store: Store,
  lock: number,
  limit: number,
  betweenChunks?: () => Promise<unknown>,
): Promise<string[]> {
  const entries: string[] = [];
  for await (const chunk of store.readLog(lock, limit)) {
    for (const entry of chunk)
      entries.push(entry.type === 'uplink' ? `uplink ${entry.uplink.sequence}` : `event at ${entry.atMs}`);
    await betweenChunks?.();
  }
  return entries;
}

/** Makes a commit of uplinks and connection events, mixed. */
function nextCommit(random: SeededChance, sent: number[], atMs: () => number): Commit {
  const incoming = Array.from({ length: random.between(1, 12) }, (): Incoming => {
    const lock = random.between(1, LOCKS + 1);
    const event = { event: 'connect' } as const;
    if (random.next() < 0.3) return { type: 'lock-event', deviceId: lock, atMs: atMs(), event };
    sent[lock] = (sent[lock] ?? 0) + 1;
    return uplink(lock, sent[lock] as number);
  });
  return { incoming, judged: [], states: new Map() };
}

/** Blocks this thread, without a turn of its event loop, until another thread's commit is in the file. */
function blockUntilRows(count: () => number, rows: number): void {
  const clock = new Int32Array(new SharedArrayBuffer(4));
  for (let round = 0; round < MAX_WAIT_ROUNDS && count() < rows; round++) Atomics.wait(clock, 0, 0, 1);
}

/** Reads the logs of all locks while commits are written and not answered; compares them with the logs at the end. */
async function readUnanswered(t: Test, seed: number): Promise<void> {
  const folder = tempFolder(t);
  const store = await openWithLocks(folder, true);
  const reader = new SqliteDatabase(path.join(folder, 'lockgate.sqlite'), { readonly: true });
  const counted = reader.prepare('SELECT (SELECT count(*) FROM uplink) + (SELECT count(*) FROM lock_event)').pluck();
  const [random, sent] = [new SeededChance(seed), [] as number[]];
  let [rows, ms] = [0, 0];
  const logs = new Map<number, string[][]>();
  for (let round = 0; round < 40; round++) {
    const commit = nextCommit(random, sent, () => ++ms);
    rows += commit.incoming.length;
    const answered = store.append(commit);
    // The commit is sent to the thread in a microtask; its answer needs a turn of the event loop.
    for (let turn = 0; turn < 20; turn++) await undefined;
    blockUntilRows(() => counted.get() as number, rows);
    for (let lock = 1; lock <= LOCKS; lock++) {
      const readings = logs.get(lock) ?? [];
      readings.push(await logOf(store, lock, 100));
      logs.set(lock, readings);
    }
    // Reads once more, with the answer arriving between two chunks.
    const lock = random.between(1, LOCKS + 1);
    logs.get(lock)?.push(await logOf(store, lock, 3, () => answered));
    await answered;
  }
  for (const [lock, readings] of logs) {
    const completeLog = await logOf(store, lock, 50);
    const wrong = readings.filter((entries) => entries.some((entry, at) => entry !== completeLog[at]));
    t.same(wrong.slice(0, 1), [], `seed ${seed}: each reading of lock ${lock} is a prefix of its log`);
  }
  t.equal(counted.get(), rows);
  reader.close();
  await store.close();
}

t.test('a log that is read during a commit is a prefix of the log after it', async (t) => {
  const seed = chooseSeed();
  await readUnanswered(t, seed);
});

t.test('a lock that was late and pinged just before a crash is not late after the restart', async (t) => {
  const store = await openWithLocks(tempFolder(t), false);
  t.teardown(() => store.close());
  const startMs = Date.UTC(2026, 10, 20);
  const clock = new ManualClock(startMs);
  const before = new Locks(store, clock, () => undefined);
  const lock = before.known(1, testMac(1));
  before.judge(lock, { type: 'gateway', state: 'start', atMs: clock.now() });
  before.judge(lock, { type: 'connect', source: 'lock', atMs: clock.now() });
  before.judge(lock, { type: 'disconnect', source: 'lock', cause: 'closed', atMs: clock.now() });
  clock.advance(Days(2));
  // A tick makes the judge notice the time that has passed. Its belief is what it concludes about the lock.
  before.judge(lock, { type: 'tick', atMs: clock.now() });
  t.equal(presence(POWER_MODEL, lock.state.belief, clock.now()).presence, 'late');
  await store.append({ incoming: [], judged: [], states: new Map([[1, JSON.stringify(lock.state)]]) });
  // The ping is in the log, but the lock's state is not written with it.
  const { body } = testUplink(1);
  const daily = { ...body, reason: 'REASON_PERIOD_TRACKING' } as Ping;
  const bytes = testBytes(1, { timeMs: clock.now(), body: daily });
  const ping = { ...uplink(1, 1, bytes), receivedAtMs: clock.now() } as Incoming;
  await store.append({ incoming: [ping], judged: [], states: new Map() });
  clock.advance(Hours(1));
  const after = new Locks(store, clock, () => undefined);
  await after.load();
  const found = after.find(1);
  t.equal(found?.presence.presence, 'asleep');
  t.same(found?.presence, found && presence(POWER_MODEL, found.state.belief, clock.now()));
});

t.test('scrub truncates the WAL also directly after the thread has copied it', async (t) => {
  const store = await openWithLocks(tempFolder(t), true);
  const [random, sent] = [new SeededChance(5), [] as number[]];
  // Large enough that the thread checkpoints after each commit.
  const large = (): Commit => {
    const bytes = Buffer.alloc(9_000_000, random.between(0, 255));
    const incoming: Incoming[] = [
      { type: 'quarantine', deviceId: 1, credentialId: 1, receivedAtMs: 1, code: 'test', message: 'a test', bytes },
    ];
    return { incoming, judged: [], states: new Map() };
  };
  for (let round = 0; round < 3; round++) {
    await store.append(nextCommit(random, sent, () => round));
    await store.append(large());
    await t.resolves(store.scrub(), `round ${round}`);
  }
  await store.close();
});
