/**
 * While the store writes one commit, ingest already checks arriving uplinks against the power model ("judges" them) for
 * the next commit (what the store writes in one transaction). Nothing is visible too early: no commit is sent before
 * the previous one is stored, nothing is reported or acknowledged before it is stored, and after a failed commit,
 * everything judged after it is discarded.
 */
import t from 'tap';
import { GatewayEvents } from '../../../gateway/events.js';
import { Ingest, type Sender } from '../../../gateway/ingest/ingest.js';
import { Locks } from '../../../gateway/locks/locks.js';
import { StoreFailure } from '../../../gateway/store/contract/errors.js';
import type { Commit } from '../../../gateway/store/contract/log/commit.js';
import { openStore, sqliteUrl } from '../../../gateway/store/open-store.js';
import { afterThisTurn, ManualClock, Seconds } from '../../../proto/clock.js';
import { NO_COMMANDS } from '../../helpers/commands/no-commands.js';
import { withOverrides } from '../../helpers/durability/sabotage.js';
import { MERCHANT, testBytes, testMac } from '../../helpers/gateway/test-gateway.js';
import { lockSender } from '../../helpers/mqtt/lock-sender.js';
import { RIDE_PING, RIDE_POWER } from '../../helpers/sim/ride-ping.js';
import { type Teardown, tempFolder } from '../../helpers/store/temp-folder.js';

const START_MS = Date.UTC(2025, 10, 20, 6);

/** A ping to which the judge has no objection, so that the gateway stores only the ping, and the lock's state later. */
function rideBytes(sequence: number): Buffer {
  return testBytes(sequence, { timeMs: START_MS, power: RIDE_POWER, body: RIDE_PING });
}

/** A commit that the blocked store has received and not written yet. */
interface PendingCommit {
  readonly commit: Commit;
  /** Completes the commit. */
  complete(): void;
  fail(): void;
}

/** An ingest with two locks, on a store whose commits wait until the test completes them. */
class OverlapSetup {
  readonly clock = new ManualClock(START_MS);
  readonly events = new GatewayEvents();
  readonly senders: Sender[] = [];
  /** Commits, acknowledgements, refusals and reports, in order. */
  readonly log: string[] = [];
  #pendingCommits: PendingCommit[] = [];
  #commits = 0;
  /** While true, a commit waits until the test completes it or lets it fail. */
  isStoreBlocked = true;
  locks!: Locks;
  ingest!: Ingest;
  /** The states of all locks, as text, that a gateway would have if it started now. */
  statesAfterRestart!: () => Promise<string>;
  /** The sequence number of a lock's latest ping as readers of the store see it. */
  shownSequence!: (lock: number) => Promise<number>;

  static async open(test: Teardown): Promise<OverlapSetup> {
    const setup = new OverlapSetup();
    const store = await openStore(sqliteUrl(tempFolder(test)));
    test.teardown(() => store.close());
    await store.addMerchant(MERCHANT, 1);
    for (const mac of [testMac(1), testMac(2)]) {
      await store.addDevice({ mac, merchant: MERCHANT, simulated: false, secretHash: Buffer.from(mac), nowMs: 1 });
      setup.senders.push(await lockSender(store, mac));
    }
    const blockedStore = withOverrides(store, {
      append: async (commit: Commit) => {
        setup.log.push(`commit ${++setup.#commits}`);
        if (setup.isStoreBlocked)
          await new Promise<void>((resolve, reject) => {
            const fail = (): void => reject(new StoreFailure('append', new Error('no room')));
            setup.#pendingCommits.push({ commit, complete: resolve, fail });
          });
        return await store.append(commit);
      },
    });
    const { clock, events } = setup;
    setup.locks = new Locks(blockedStore, clock, () => undefined);
    test.teardown(() => setup.locks.stop());
    const onStored = (): void => undefined;
    setup.ingest = new Ingest({
      commands: NO_COMMANDS,
      store: blockedStore,
      locks: setup.locks,
      clock,
      events,
      onStored,
    });
    setup.shownSequence = async (lock) => {
      const { deviceId } = setup.senders[lock] as Sender;
      const state = setup.locks.newerState(deviceId) ?? (await store.readDeviceState(deviceId)) ?? '';
      return JSON.parse(state).ping.sequence;
    };
    setup.statesAfterRestart = async () => {
      const locks = new Locks(store, clock, () => undefined);
      await locks.load();
      locks.stop();
      return statesOf(locks);
    };
    return setup;
  }

  /** Sends an uplink of the lock with this index, 0 or 1, and logs its answer as `ack 0/1` (lock, sequence). */
  send(lock: number, sequence: number, bytes = testBytes(sequence)): void {
    this.ingest.take(this.senders[lock] as Sender, bytes, (error) => {
      this.log.push(`${error === undefined ? 'ack' : 'refused'} ${lock}/${sequence}`);
    });
  }

  /** Connects the lock with this index, and logs when that is reported. */
  connect(lock: number): void {
    const { deviceId, mac } = this.senders[lock] as Sender;
    const event = { type: 'connect', source: 'lock', atMs: this.clock.now() } as const;
    this.ingest.recordEvent(deviceId, mac, event, () => this.log.push(`reported ${lock} connected`));
  }

  /** Runs some turns of the event loop: enough for everything that the store does not block. */
  async runLoopTurns(): Promise<void> {
    for (let turn = 0; turn < 10; turn++) await new Promise<void>((resolve) => afterThisTurn(resolve));
  }

  nextPendingCommit(): PendingCommit {
    const pendingCommit = this.#pendingCommits.shift();
    if (pendingCommit === undefined) throw new Error('the store has no commit');
    return pendingCommit;
  }

  get pendingCount(): number {
    return this.#pendingCommits.length;
  }

  /** The states of all locks in memory, as text. */
  currentStates(): string {
    return statesOf(this.locks);
  }

  /** Lets the store continue, and resolves when everything is stored. */
  async recover(): Promise<void> {
    this.isStoreBlocked = false;
    while (this.#pendingCommits.length > 0) this.nextPendingCommit().complete();
    await this.runLoopTurns();
    this.clock.advance(Seconds(1));
    await this.ingest.idle();
  }
}

function statesOf(locks: Locks): string {
  const locksWithPings = [...locks.all()].filter(({ state }) => state.receivedAtMs !== null);
  return JSON.stringify(locksWithPings.map(({ mac, state }) => [mac, state]).sort());
}

t.test('the next commit is sent when the previous one is stored, before the previous one is answered', async (t) => {
  const setup = await OverlapSetup.open(t);
  setup.send(0, 1);
  await setup.runLoopTurns();
  setup.send(0, 2);
  await setup.runLoopTurns();
  setup.send(1, 1);
  await setup.runLoopTurns();
  t.same(setup.log, ['commit 1'], 'one commit at a time');
  t.equal(setup.ingest.waiting, 2);
  setup.nextPendingCommit().complete();
  await setup.runLoopTurns();
  t.same(setup.log, ['commit 1', 'commit 2', 'ack 0/1'], 'uplinks that arrived meanwhile share a commit');
  const { commit, complete } = setup.nextPendingCommit();
  t.equal(commit.incoming.length, 2, 'both uplinks');
  complete();
  await setup.ingest.idle();
  t.same(setup.log.slice(3), ['ack 0/2', 'ack 1/1'], 'in the order of arrival');
  t.equal(setup.currentStates(), await setup.statesAfterRestart());
});

t.test(
  'when a commit fails while the next is judged, neither is acknowledged and both states are discarded',
  async (t) => {
    const setup = await OverlapSetup.open(t);
    setup.isStoreBlocked = false;
    for (const lock of [0, 1]) {
      setup.connect(lock);
      setup.send(lock, 1);
    }
    await setup.ingest.idle();
    const before = setup.currentStates();
    setup.isStoreBlocked = true;
    setup.log.length = 0;
    setup.send(0, 2);
    await setup.runLoopTurns();
    setup.send(1, 2);
    setup.send(0, 3);
    setup.connect(1);
    await setup.runLoopTurns();
    t.not(setup.currentStates(), before, 'the uplinks of the next commit were judged');
    setup.nextPendingCommit().fail();
    await setup.runLoopTurns();
    t.match(setup.log[0], /^commit/);
    t.same(setup.log.slice(1), ['refused 0/2', 'refused 1/2', 'refused 0/3'], 'all are refused at once, in order');
    t.equal(setup.pendingCount, 0, 'nothing of the next commit is sent to the store');
    setup.isStoreBlocked = false;
    setup.clock.advance(Seconds(1));
    await setup.ingest.idle();
    t.equal(setup.log.at(-1), 'reported 1 connected', 'a connect, which no lock sends again, stays in the queue');
    t.equal(setup.currentStates(), await setup.statesAfterRestart());
    t.equal(JSON.parse(setup.currentStates())[0][1].ping.sequence, 1, 'as if the uplinks had never arrived');
    t.equal(JSON.parse(setup.currentStates())[1][1].ping.sequence, 1);
    for (const [lock, sequence] of [
      [0, 2],
      [1, 2],
      [0, 3],
    ] as const)
      setup.send(lock, sequence);
    await setup.ingest.idle();
    t.same(setup.log.slice(-3), ['ack 0/2', 'ack 1/2', 'ack 0/3'], 'the uplinks are accepted when sent again');
    t.equal(setup.currentStates(), await setup.statesAfterRestart());
  },
);

t.test('when the next commit fails, the previous commit stays stored', async (t) => {
  const setup = await OverlapSetup.open(t);
  setup.send(0, 1);
  await setup.runLoopTurns();
  setup.send(0, 2);
  await setup.runLoopTurns();
  setup.nextPendingCommit().complete();
  await setup.runLoopTurns();
  setup.send(0, 3);
  await setup.runLoopTurns();
  setup.nextPendingCommit().fail();
  await setup.runLoopTurns();
  t.same(setup.log, ['commit 1', 'commit 2', 'ack 0/1', 'refused 0/2', 'refused 0/3']);
  await setup.recover();
  t.equal(JSON.parse(setup.currentStates())[0][1].ping.sequence, 1);
  t.equal(setup.currentStates(), await setup.statesAfterRestart());
});

t.test('when a commit fails, what its locks sent after it is refused too, even behind exclusive work', async (t) => {
  const setup = await OverlapSetup.open(t);
  setup.send(0, 1);
  await setup.runLoopTurns();
  const { deviceId } = setup.senders[1] as Sender;
  const done = setup.ingest.runExclusive(deviceId, async () => void setup.log.push('work'), false);
  setup.send(0, 2);
  setup.send(1, 1);
  await setup.runLoopTurns();
  setup.nextPendingCommit().fail();
  await setup.runLoopTurns();
  await setup.recover();
  await done;
  t.same(setup.log, ['commit 1', 'refused 0/1', 'refused 0/2', 'work', 'commit 2', 'ack 1/1'], 'order is kept');
});

t.test('a lock’s state that is being written is written again if an uplink is judged meanwhile', async (t) => {
  const setup = await OverlapSetup.open(t);
  setup.isStoreBlocked = false;
  setup.connect(0);
  setup.send(0, 1, rideBytes(1));
  await setup.ingest.idle();
  setup.isStoreBlocked = true;
  // A replay of the log would not reproduce the connection, so its commit writes the state.
  setup.connect(0);
  setup.send(0, 2, rideBytes(2));
  await setup.runLoopTurns();
  setup.send(0, 3, rideBytes(3));
  await setup.runLoopTurns();
  t.equal(await setup.shownSequence(0), 3, 'readers see the state in memory');
  const { commit, complete } = setup.nextPendingCommit();
  t.equal(commit.states.size, 1, 'the state is written');
  complete();
  await setup.runLoopTurns();
  t.equal(JSON.parse(await setup.statesAfterRestart())[0][1].ping.sequence, 2, 'the stored state is of that commit');
  t.equal(await setup.shownSequence(0), 3);
  setup.nextPendingCommit().complete();
  await setup.ingest.idle();
  t.equal(await setup.shownSequence(0), 3, 'the missing uplink is added');
  t.equal(setup.currentStates(), await setup.statesAfterRestart());
});

t.test(
  'an uplink is stored once, also if it arrives again while it is written; other content under its key is stored too',
  async (t) => {
    const setup = await OverlapSetup.open(t);
    const reported: string[] = [];
    setup.events.on('uplink', ({ uplink, repeated }) =>
      reported.push(`${uplink.sequence} ${repeated ? 'again' : 'new'}`),
    );
    setup.send(0, 1);
    setup.send(0, 2);
    await setup.runLoopTurns();
    setup.send(0, 1);
    // The same key as before with other content.
    setup.send(0, 2, testBytes(2, { dropped: 3 }));
    await setup.runLoopTurns();
    setup.nextPendingCommit().complete();
    await setup.runLoopTurns();
    const { commit, complete } = setup.nextPendingCommit();
    t.equal(commit.incoming.length, 1, 'only the new uplinks');
    complete();
    await setup.ingest.idle();
    t.same(reported, ['1 new', '2 new', '1 again', '2 new']);
    t.same(setup.log.slice(-2), ['ack 0/1', 'ack 0/2']);
    t.equal(setup.currentStates(), await setup.statesAfterRestart());
  },
);

t.test('exclusive work runs while no commit is written and nothing is judged', async (t) => {
  const setup = await OverlapSetup.open(t);
  const { deviceId } = setup.senders[0] as Sender;
  setup.send(0, 1);
  await setup.runLoopTurns();
  setup.send(1, 1);
  const done = setup.ingest.runExclusive(deviceId, async () => {
    setup.log.push('work begins');
    const before = setup.currentStates();
    await setup.runLoopTurns();
    t.equal(setup.currentStates(), before, 'nothing is judged meanwhile');
    t.equal(before, await setup.statesAfterRestart(), 'everything before the work is stored');
    setup.log.push('work ends');
  });
  setup.send(1, 2);
  setup.send(0, 2);
  await setup.runLoopTurns();
  setup.nextPendingCommit().complete();
  await setup.runLoopTurns();
  t.same(setup.log, ['commit 1', 'commit 2', 'ack 0/1']);
  setup.nextPendingCommit().complete();
  await done;
  await setup.runLoopTurns();
  // The work may change the lock's account, so the uplink of the lock that arrived before its end is refused.
  t.same(setup.log.slice(3), ['ack 1/1', 'work begins', 'work ends', 'refused 0/2', 'commit 3']);
  setup.nextPendingCommit().complete();
  await setup.ingest.idle();
  t.equal(setup.log.at(-1), 'ack 1/2');
});

t.test('a presence is reported when its commit is stored, whatever was judged since', async (t) => {
  const setup = await OverlapSetup.open(t);
  const { deviceId, mac } = setup.senders[0] as Sender;
  setup.events.on('presence', ({ presence }) => setup.log.push(presence.presence));
  setup.connect(0);
  setup.send(0, 1);
  await setup.runLoopTurns();
  const event = { type: 'disconnect', source: 'lock', cause: 'closed', atMs: setup.clock.now() } as const;
  setup.ingest.recordEvent(deviceId, mac, event);
  setup.send(0, 2);
  await setup.runLoopTurns();
  t.notOk(setup.log.includes('online'));
  setup.nextPendingCommit().complete();
  await setup.runLoopTurns();
  t.same(setup.log, ['commit 1', 'commit 2', 'ack 0/1', 'reported 0 connected', 'online']);
  setup.nextPendingCommit().fail();
  await setup.runLoopTurns();
  t.equal(setup.log.at(-1), 'refused 0/2', 'a failed commit is not reported');
  await setup.recover();
  t.equal(setup.currentStates(), await setup.statesAfterRestart());
});

t.test('an uplink taken inside an answer callback is processed', async (t) => {
  const setup = await OverlapSetup.open(t);
  setup.isStoreBlocked = false;
  const answered = await new Promise<string>((resolve) => {
    setup.ingest.take(setup.senders[0] as Sender, testBytes(1), () => {
      void Promise.resolve().then(() => {
        setup.ingest.take(setup.senders[0] as Sender, testBytes(2), () => resolve('both'));
      });
    });
  });
  t.equal(answered, 'both');
});
