// While the store writes one commit, arriving uplinks are judged into the next. Nothing is visible too early: no commit
// is sent before the previous one is stored, nothing is reported or acknowledged before it is stored, and after a
// failed commit, everything judged on top of it is discarded.
import t from 'tap';
import { GatewayEvents } from '../../../gateway/events.js';
import { Ingest, type Sender } from '../../../gateway/ingest/ingest.js';
import { Locks } from '../../../gateway/locks/locks.js';
import { StoreFailure } from '../../../gateway/store/contract/errors.js';
import type { Commit } from '../../../gateway/store/contract/store.js';
import { openStore, sqliteUrl } from '../../../gateway/store/open-store.js';
import { afterThisTurn, ManualClock, Seconds } from '../../../proto/clock.js';
import { NO_COMMANDS } from '../../helpers/commands/no-commands.js';
import { withOverrides } from '../../helpers/durability/sabotage.js';
import { MERCHANT, testBytes, testMac } from '../../helpers/gateway/test-gateway.js';
import { lockSender } from '../../helpers/mqtt/lock-sender.js';
import { RIDE_PING, RIDE_POWER } from '../../helpers/sim/ride-ping.js';
import { type Teardown, tempFolder } from '../../helpers/store/temp-folder.js';

const START_MS = 1_763_618_400_000;

/** A ping without findings, so that only the log has it. */
function rideBytes(sequence: number): Buffer {
  return testBytes(sequence, { timeMs: START_MS, power: RIDE_POWER, body: RIDE_PING });
}

/** A commit that the store is writing. */
interface Held {
  readonly commit: Commit;
  /** Completes the commit. */
  pass(): void;
  fail(): void;
}

class Site {
  readonly clock = new ManualClock(START_MS);
  readonly events = new GatewayEvents();
  readonly senders: Sender[] = [];
  /** Commits, acknowledgements, refusals and reports, in order. */
  readonly log: string[] = [];
  #held: Held[] = [];
  #commits = 0;
  isHolding = true;
  locks!: Locks;
  ingest!: Ingest;
  restarted!: () => Promise<string>;
  /** The sequence number of a lock's latest ping as readers of the store see it. */
  shown!: (lock: number) => Promise<number>;

  static async open(test: Teardown): Promise<Site> {
    const site = new Site();
    const store = await openStore(sqliteUrl(tempFolder(test)));
    test.teardown(() => store.close());
    await store.addMerchant(MERCHANT, 1);
    for (const mac of [testMac(1), testMac(2)]) {
      await store.addDevice({ mac, merchant: MERCHANT, simulated: false, secretHash: Buffer.from(mac), nowMs: 1 });
      site.senders.push(await lockSender(store, mac));
    }
    const held = withOverrides(store, {
      append: async (commit: Commit) => {
        site.log.push(`commit ${++site.#commits}`);
        if (site.isHolding)
          await new Promise<void>((resolve, reject) => {
            const fail = (): void => reject(new StoreFailure('append', new Error('no room')));
            site.#held.push({ commit, pass: resolve, fail });
          });
        await store.append(commit);
      },
    });
    const { clock, events } = site;
    site.locks = new Locks(held, clock, () => undefined);
    test.teardown(() => site.locks.stop());
    const onStored = (): void => undefined;
    site.ingest = new Ingest({ commands: NO_COMMANDS, store: held, locks: site.locks, clock, events, onStored });
    site.shown = async (lock) => {
      const { deviceId } = site.senders[lock] as Sender;
      const state = site.locks.newerState(deviceId) ?? (await store.readDeviceState(deviceId)) ?? '';
      return JSON.parse(state).ping.sequence;
    };
    site.restarted = async () => {
      const locks = new Locks(store, clock, () => undefined);
      await locks.load();
      locks.stop();
      return beliefs(locks);
    };
    return site;
  }

  take(lock: number, sequence: number, bytes = testBytes(sequence)): void {
    this.ingest.take(this.senders[lock] as Sender, bytes, (error) => {
      this.log.push(`${error === undefined ? 'ack' : 'refused'} ${lock}/${sequence}`);
    });
  }

  connect(lock: number): void {
    const { deviceId, mac } = this.senders[lock] as Sender;
    const event = { type: 'connect', source: 'lock', atMs: this.clock.now() } as const;
    this.ingest.recordEvent(deviceId, mac, event, () => this.log.push(`reported ${lock} connected`));
  }

  /** Resolves when everything is done that the store does not block. */
  async turns(): Promise<void> {
    for (let turn = 0; turn < 10; turn++) await new Promise<void>((resolve) => afterThisTurn(resolve));
  }

  held(): Held {
    const held = this.#held.shift();
    if (held === undefined) throw new Error('the store has no commit');
    return held;
  }

  get heldCount(): number {
    return this.#held.length;
  }

  believed(): string {
    return beliefs(this.locks);
  }

  /** Lets the store continue, and resolves when everything is stored. */
  async recover(): Promise<void> {
    this.isHolding = false;
    while (this.#held.length > 0) this.held().pass();
    await this.turns();
    this.clock.advance(Seconds(1));
    await this.ingest.idle();
  }
}

function beliefs(locks: Locks): string {
  const known = [...locks.all()].filter(({ state }) => state.receivedAtMs !== null);
  return JSON.stringify(known.map(({ mac, state }) => [mac, state]).sort());
}

t.test('the next commit is sent when the previous one is stored, before the previous one is answered', async (t) => {
  const site = await Site.open(t);
  site.take(0, 1);
  await site.turns();
  site.take(0, 2);
  await site.turns();
  site.take(1, 1);
  await site.turns();
  t.same(site.log, ['commit 1'], 'one commit at a time');
  t.equal(site.ingest.waiting, 2);
  site.held().pass();
  await site.turns();
  t.same(site.log, ['commit 1', 'commit 2', 'ack 0/1'], 'uplinks that arrived meanwhile share a commit');
  const { commit, pass } = site.held();
  t.equal(commit.incoming.length, 2);
  pass();
  await site.ingest.idle();
  t.same(site.log.slice(3), ['ack 0/2', 'ack 1/1'], 'in the order of arrival');
  t.equal(site.believed(), await site.restarted());
});

t.test(
  'when a commit fails while the next is judged, neither is acknowledged and both states are discarded',
  async (t) => {
    const site = await Site.open(t);
    site.isHolding = false;
    for (const lock of [0, 1]) {
      site.connect(lock);
      site.take(lock, 1);
    }
    await site.ingest.idle();
    const before = site.believed();
    site.isHolding = true;
    site.log.length = 0;
    site.take(0, 2);
    await site.turns();
    site.take(1, 2);
    site.take(0, 3);
    site.connect(1);
    await site.turns();
    t.not(site.believed(), before, 'the uplinks of the next commit were judged');
    site.held().fail();
    await site.turns();
    t.match(site.log[0], /^commit/);
    t.same(site.log.slice(1), ['refused 0/2', 'refused 1/2', 'refused 0/3'], 'all are refused at once, in order');
    t.equal(site.heldCount, 0, 'nothing of the next commit is sent to the store');
    site.isHolding = false;
    site.clock.advance(Seconds(1));
    await site.ingest.idle();
    t.equal(site.log.at(-1), 'reported 1 connected', 'events that are not repeated stay in the queue');
    t.equal(site.believed(), await site.restarted());
    t.equal(JSON.parse(site.believed())[0][1].ping.sequence, 1, 'as if the uplinks had never arrived');
    t.equal(JSON.parse(site.believed())[1][1].ping.sequence, 1);
    for (const [lock, sequence] of [
      [0, 2],
      [1, 2],
      [0, 3],
    ] as const)
      site.take(lock, sequence);
    await site.ingest.idle();
    t.same(site.log.slice(-3), ['ack 0/2', 'ack 1/2', 'ack 0/3'], 'the uplinks are accepted when sent again');
    t.equal(site.believed(), await site.restarted());
  },
);

t.test('when the next commit fails, the previous commit stays stored', async (t) => {
  const site = await Site.open(t);
  site.take(0, 1);
  await site.turns();
  site.take(0, 2);
  await site.turns();
  site.held().pass();
  await site.turns();
  site.take(0, 3);
  await site.turns();
  site.held().fail();
  await site.turns();
  t.same(site.log, ['commit 1', 'commit 2', 'ack 0/1', 'refused 0/2', 'refused 0/3']);
  await site.recover();
  t.equal(JSON.parse(site.believed())[0][1].ping.sequence, 1);
  t.equal(site.believed(), await site.restarted());
});

t.test('a lock’s state that is being written stays dirty if an uplink is judged meanwhile', async (t) => {
  const site = await Site.open(t);
  site.isHolding = false;
  site.connect(0);
  site.take(0, 1, rideBytes(1));
  await site.ingest.idle();
  site.isHolding = true;
  site.take(0, 2, rideBytes(2));
  await site.turns();
  site.take(0, 3, rideBytes(3));
  await site.turns();
  t.equal(await site.shown(0), 3, 'readers see the state in memory');
  const { commit, pass } = site.held();
  t.equal(commit.states.size, 1, 'the state is written');
  pass();
  await site.turns();
  t.equal(JSON.parse(await site.restarted())[0][1].ping.sequence, 2, 'as it was at that commit');
  t.equal(await site.shown(0), 3);
  site.held().pass();
  await site.ingest.idle();
  t.equal(await site.shown(0), 3, 'and the missing uplink follows it');
  t.equal(site.believed(), await site.restarted());
});

t.test('an uplink in both commits is stored once; a conflicting one is stored too', async (t) => {
  const site = await Site.open(t);
  const reported: string[] = [];
  site.events.on('uplink', ({ uplink, repeated }) => reported.push(`${uplink.sequence} ${repeated ? 'again' : 'new'}`));
  site.take(0, 1);
  site.take(0, 2);
  await site.turns();
  site.take(0, 1);
  site.take(0, 2, testBytes(2, { dropped: 3 }));
  await site.turns();
  site.held().pass();
  await site.turns();
  const { commit, pass } = site.held();
  t.equal(commit.incoming.length, 1, 'only the new uplinks');
  pass();
  await site.ingest.idle();
  t.same(reported, ['1 new', '2 new', '1 again', '2 new']);
  t.same(site.log.slice(-2), ['ack 0/1', 'ack 0/2']);
  t.equal(site.believed(), await site.restarted());
});

t.test('exclusive work runs while no commit is written and nothing is judged', async (t) => {
  const site = await Site.open(t);
  const { deviceId } = site.senders[0] as Sender;
  site.take(0, 1);
  await site.turns();
  site.take(1, 1);
  const done = site.ingest.runExclusive(deviceId, async () => {
    site.log.push('work begins');
    const before = site.believed();
    await site.turns();
    t.equal(site.believed(), before, 'nothing is judged meanwhile');
    t.equal(before, await site.restarted(), 'everything before the work is stored');
    site.log.push('work ends');
  });
  site.take(1, 2);
  site.take(0, 2);
  await site.turns();
  site.held().pass();
  await site.turns();
  t.same(site.log, ['commit 1', 'commit 2', 'ack 0/1']);
  site.held().pass();
  await done;
  await site.turns();
  t.same(site.log.slice(3), ['ack 1/1', 'work begins', 'work ends', 'refused 0/2', 'commit 3']);
  site.held().pass();
  await site.ingest.idle();
  t.equal(site.log.at(-1), 'ack 1/2');
});

t.test('a presence is reported when its commit is stored, whatever was judged since', async (t) => {
  const site = await Site.open(t);
  const { deviceId, mac } = site.senders[0] as Sender;
  site.events.on('presence', ({ presence }) => site.log.push(presence.presence));
  site.connect(0);
  site.take(0, 1);
  await site.turns();
  const event = { type: 'disconnect', source: 'lock', cause: 'closed', atMs: site.clock.now() } as const;
  site.ingest.recordEvent(deviceId, mac, event);
  site.take(0, 2);
  await site.turns();
  t.notOk(site.log.includes('online'));
  site.held().pass();
  await site.turns();
  t.same(site.log, ['commit 1', 'commit 2', 'ack 0/1', 'reported 0 connected', 'online']);
  site.held().fail();
  await site.turns();
  t.equal(site.log.at(-1), 'refused 0/2', 'a failed commit is not reported');
  await site.recover();
  t.equal(site.believed(), await site.restarted());
});

t.test('an uplink taken inside an answer callback is processed', async (t) => {
  const site = await Site.open(t);
  site.isHolding = false;
  const answered = await new Promise<string>((resolve) => {
    site.ingest.take(site.senders[0] as Sender, testBytes(1), () => {
      void Promise.resolve().then(() => {
        site.ingest.take(site.senders[0] as Sender, testBytes(2), () => resolve('both'));
      });
    });
  });
  t.equal(answered, 'both');
});
