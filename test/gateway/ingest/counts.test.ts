/**
 * The cost of ingesting a ping, in counts that are equal on every machine: states of locks written, events created,
 * hashes computed.
 */
import t from 'tap';
import { GatewayEvents } from '../../../gateway/events.js';
import { Ingest, type Sender } from '../../../gateway/ingest/ingest.js';
import { PendingUplink } from '../../../gateway/ingest/pending-uplink.js';
import { Locks } from '../../../gateway/locks/locks.js';
import type { Commit } from '../../../gateway/store/contract/log/commit.js';
import { ALL_STORED } from '../../../gateway/store/contract/log/commit-result.js';
import { ManualClock } from '../../../proto/clock.js';
import { NO_COMMANDS } from '../../helpers/commands/no-commands.js';
import { withOverrides } from '../../helpers/durability/sabotage.js';
import { MERCHANT, testBytes, testMac } from '../../helpers/gateway/test-gateway.js';
import { lockSender } from '../../helpers/mqtt/lock-sender.js';
import { RIDE_PING } from '../../helpers/sim/ride-ping.js';
import { openStore } from '../../helpers/store/new-store.js';
import { type Teardown, tempFolder } from '../../helpers/store/temp-folder.js';

const START_MS = Date.UTC(2025, 10, 20, 6);
const LOCKS = 50;
/** The number of pings that each lock sends. */
const ROUNDS = 100;

/** An ingest on a store that stores nothing and only counts. */
async function countingIngest(test: Teardown) {
  const store = await openStore(tempFolder(test));
  test.teardown(() => store.close());
  await store.addMerchant(MERCHANT, 1);
  const senders: Sender[] = [];
  for (let number = 1; number <= LOCKS; number++) {
    const mac = testMac(number);
    await store.addDevice({ mac, merchant: MERCHANT, simulated: false, secretHash: Buffer.from(mac), nowMs: 1 });
    senders.push(await lockSender(store, mac));
  }
  const counts = { uplinks: 0, states: 0, lookups: 0, announced: 0 };
  const counting = withOverrides(store, {
    append: async ({ incoming, states }: Commit) => {
      counts.uplinks += incoming.filter(({ type }) => type === 'uplink').length;
      counts.states += states.size;
      return ALL_STORED;
    },
    readDigests: async (...key: Parameters<typeof store.readDigests>) => {
      counts.lookups += 1;
      return await store.readDigests(...key);
    },
  });
  const clock = new ManualClock(START_MS);
  const locks = new Locks(counting, clock, () => undefined);
  test.teardown(() => locks.stop());
  const events = new GatewayEvents();
  const onStored = (_: ReadonlySet<number>, uplinks: number): void => {
    counts.announced += uplinks;
  };
  const parts = { store: counting, locks, clock, events, onStored, commands: NO_COMMANDS };
  return { ingest: new Ingest(parts), senders, counts, events };
}

/** Counts, until the test ends, how often any uplink is hashed (`digest`) or made into an event (`reported`). */
function countUses(test: Teardown): { digests: number; reported: number } {
  const uses = { digests: 0, reported: 0 };
  const { prototype } = PendingUplink;
  const reported = prototype.report;
  const digest = Object.getOwnPropertyDescriptor(prototype, 'digest') as PropertyDescriptor;
  prototype.report = function count(this: PendingUplink) {
    uses.reported += 1;
    return reported.call(this);
  };
  Object.defineProperty(prototype, 'digest', {
    ...digest,
    get(this: PendingUplink) {
      uses.digests += 1;
      return digest.get?.call(this);
    },
  });
  test.teardown(() => {
    prototype.report = reported;
    Object.defineProperty(prototype, 'digest', digest);
  });
  return uses;
}

t.test('a new ping computes no hash, creates no event without listeners, and rarely writes a state', async (t) => {
  const { ingest, senders, counts, events } = await countingIngest(t);
  const connect = { type: 'connect', source: 'lock', atMs: START_MS } as const;
  for (const { deviceId, mac } of senders) ingest.recordEvent(deviceId, mac, connect);
  await ingest.idle();
  t.equal(counts.states, LOCKS, 'a state that the log does not reproduce is written');
  const uses = countUses(t);
  const power = { mode: 'MID', rideTracking: true, airplane: false, recovery: false } as const;
  const sendFromAllLocks = async (sequence: number): Promise<void> => {
    for (const sender of senders)
      ingest.take(sender, testBytes(sequence, { power, body: RIDE_PING }), (error) => error && t.fail(error.message));
    await ingest.idle();
  };
  counts.states = 0;
  for (let sequence = 1; sequence <= ROUNDS; sequence++) await sendFromAllLocks(sequence);
  t.equal(counts.uplinks, LOCKS * ROUNDS);
  t.ok(counts.states <= counts.uplinks / 20, `${counts.states} states for ${counts.uplinks} pings`);
  t.same({ ...uses, lookups: counts.lookups }, { digests: 0, reported: 0, lookups: 0 });

  events.on('uplink', () => undefined);
  await sendFromAllLocks(ROUNDS + 1);
  t.same(uses, { digests: LOCKS, reported: LOCKS }, 'with a listener, one event per ping');
});

t.test('connections in a commit do not count as uplinks for webhooks, which many uplinks slow down', async (t) => {
  const { ingest, senders, counts } = await countingIngest(t);
  const connect = { type: 'connect', source: 'lock', atMs: START_MS } as const;
  for (const { deviceId, mac } of senders) ingest.recordEvent(deviceId, mac, connect);
  for (const sender of senders) ingest.take(sender, testBytes(1), (error) => error && t.fail(error.message));
  await ingest.idle();
  t.equal(counts.announced, LOCKS);
});
