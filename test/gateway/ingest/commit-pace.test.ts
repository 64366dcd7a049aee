/**
 * The pace of commits (gateway/ingest/commit-pace.ts): after a burst, small commits follow one another at a fixed rate,
 * so that pings which arrive one by one share commits; a commit that many pings share is not held back. An
 * acknowledgement never waits for the commit after its own.
 */
import t from 'tap';
import { GatewayEvents } from '../../../gateway/events.js';
import { CommitPace, MAX_BURST_COMMITS } from '../../../gateway/ingest/commit-pace.js';
import { Ingest } from '../../../gateway/ingest/ingest.js';
import { Locks } from '../../../gateway/locks/locks.js';
import { afterThisTurn, ManualClock } from '../../../proto/clock.js';
import { NO_COMMANDS } from '../../helpers/commands/no-commands.js';
import { withOverrides } from '../../helpers/durability/sabotage.js';
import { MERCHANT, testBytes, testMac } from '../../helpers/gateway/test-gateway.js';
import { lockSender } from '../../helpers/mqtt/lock-sender.js';
import { openStore } from '../../helpers/store/new-store.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

/** The time by the run's clock, which does not matter here. */
const START_MS = Date.UTC(2025, 10, 20, 6);
/** That of SQLite. */
const SPACING = { commitsPerSecond: 250, minSharingItems: 32 };
/** The time between two commits at the pace. */
const INTERVAL_MS = 1000 / SPACING.commitsPerSecond;

t.test('a burst of commits is sent at once; after it, one commit is sent in each interval', async (t) => {
  const pace = new CommitPace(SPACING);
  for (let commit = 0; commit < MAX_BURST_COMMITS; commit += 1) {
    t.equal(pace.waitAt(0, 1), 0);
    pace.sent(0);
  }
  t.equal(pace.waitAt(0, 1), INTERVAL_MS);
  t.equal(pace.waitAt(1, 1), INTERVAL_MS - 1);
  t.equal(pace.waitAt(INTERVAL_MS, 1), 0);
  pace.sent(INTERVAL_MS);
  t.equal(pace.waitAt(INTERVAL_MS, 1), INTERVAL_MS, 'one commit in each interval');
});

t.test('after a pause a burst is allowed again, but not a longer one', async (t) => {
  const pace = new CommitPace(SPACING);
  for (let commit = 0; commit < MAX_BURST_COMMITS; commit += 1) pace.sent(0);
  const laterMs = 1_000_000;
  for (let commit = 0; commit < MAX_BURST_COMMITS; commit += 1) {
    t.equal(pace.waitAt(laterMs, 1), 0);
    pace.sent(laterMs);
  }
  t.equal(pace.waitAt(laterMs, 1), INTERVAL_MS);
});

t.test('a commit that many pings share does not wait, and does not make a later one wait longer', async (t) => {
  const pace = new CommitPace(SPACING);
  for (let commit = 0; commit < 10 * MAX_BURST_COMMITS; commit += 1) {
    t.equal(pace.waitAt(0, SPACING.minSharingItems), 0);
    pace.sent(0);
  }
  t.equal(pace.waitAt(0, SPACING.minSharingItems - 1), INTERVAL_MS, 'one with fewer pings waits for one interval');
});

t.test(
  'pings that arrive after a burst share a commit; each is acknowledged when its own commit is stored',
  async (t) => {
    const store = await openStore(tempFolder(t));
    t.teardown(() => store.close());
    await store.addMerchant(MERCHANT, 1);
    await store.addDevice({
      mac: testMac(1),
      merchant: MERCHANT,
      simulated: false,
      secretHash: Buffer.alloc(1),
      nowMs: 1,
    });
    const sender = await lockSender(store, testMac(1));
    const commits: number[] = [];
    const wrapped = withOverrides(store, {
      append: async (commit) => {
        commits.push(commit.incoming.length);
        return await store.append(commit);
      },
    });
    const clock = new ManualClock(START_MS);
    const locks = new Locks(wrapped, clock, () => undefined);
    t.teardown(() => locks.stop());
    /** The time by which the pace is measured; the test moves it. */
    let nowMs = 0;
    const parts = { commands: NO_COMMANDS, events: new GatewayEvents(), onStored: () => undefined };
    const ingest = new Ingest({ ...parts, store: wrapped, locks, clock, monotonic: () => nowMs });
    let sequence = 0;
    /** Resolves when the ping is acknowledged. */
    const send = (): Promise<void> =>
      new Promise((resolve, reject) => {
        sequence += 1;
        ingest.take(sender, testBytes(sequence), (error) => (error === undefined ? resolve() : reject(error)));
      });
    // The time stands still, so these are a burst, although each is sent after the acknowledgement of the one before.
    for (let ping = 0; ping < MAX_BURST_COMMITS; ping += 1) await send();
    t.same(commits, Array(MAX_BURST_COMMITS).fill(1));

    const acknowledged: Promise<void>[] = [];
    for (let ping = 0; ping < 5; ping += 1) {
      acknowledged.push(send());
      await new Promise<void>((resolve) => afterThisTurn(resolve));
    }
    t.equal(commits.length, MAX_BURST_COMMITS, 'further pings wait for the pace');
    nowMs = INTERVAL_MS;
    await Promise.all(acknowledged);
    t.same(commits.slice(MAX_BURST_COMMITS), [5]);

    const sharing: Promise<void>[] = [];
    for (let ping = 1; ping < SPACING.minSharingItems; ping += 1) {
      sharing.push(send());
      await new Promise<void>((resolve) => afterThisTurn(resolve));
    }
    t.same(commits.slice(MAX_BURST_COMMITS), [5], 'a few pings wait for the pace');
    sharing.push(send());
    await Promise.all(sharing);
    t.same(commits.slice(MAX_BURST_COMMITS), [5, SPACING.minSharingItems], 'many pings do not');

    const last = send();
    await ingest.stop();
    await last;
    t.same(commits.slice(MAX_BURST_COMMITS), [5, SPACING.minSharingItems, 1], 'a stop does not wait for the pace');
  },
);
