/**
 * Events that a webhook URL reads just after their commit come from memory
 * (gateway/store/sqlite/log/recent-uplinks.ts), older ones from the file. Both must give the same: any part of the log,
 * of any merchant, pings and other events, phones and locks; and nothing that was erased.
 */
import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import { type Incoming, UPLINK_KINDS } from '../../../gateway/store/contract/log/commit.js';
import { LOG_START, positionAfter } from '../../../gateway/store/contract/log/log-position.js';
import type { Store } from '../../../gateway/store/contract/store.js';
import { EVENT_TYPES, MERCHANT_EVENT_KINDS } from '../../../gateway/store/contract/webhooks/merchant-event.js';
import { NO_FILTER } from '../../../gateway/store/contract/webhooks/webhook-filter.js';
import { packCommit, UPLINK_WORD, wordsOf } from '../../../gateway/store/log/packed-commit.js';
import { LogReader } from '../../../gateway/store/sqlite/log/log-reader.js';
import { RecentUplinks } from '../../../gateway/store/sqlite/log/recent-uplinks.js';
import { uplinkDigest } from '../../../gateway/webhooks/event-id.js';
import { testBytes, testMac } from '../../helpers/gateway/test-gateway.js';
import { chooseSeed, SeededChance } from '../../helpers/pair/seeded-chance.js';
import { openStore } from '../../helpers/store/new-store.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const MERCHANTS = ['Amber', 'Birch'];
const LOCKS_PER_MERCHANT = 3;
/** In a new store the locks have the credentials 1 to 6, so the phone that is added next has this one. */
const PHONE_CREDENTIAL = 2 * LOCKS_PER_MERCHANT + 1;
const COMMITS = 60;
/** Kind 0 is an acknowledgement. */
const PINGS = { minKind: 1, maxKind: 3 };

t.setTimeout(60_000);

function uplink(lock: number, sequence: number, kind: number, credentialId = lock): Incoming {
  const merchantId = lock <= LOCKS_PER_MERCHANT ? 1 : 2;
  const bytes = testBytes(sequence);
  const key = { deviceId: lock, merchantId, credentialId, boot: 1, sequence };
  const buffered = sequence % 3 === 0;
  return { type: 'uplink', ...key, digest: uplinkDigest(bytes), kind, bytes, receivedAtMs: sequence, buffered };
}

/**
 * A store in whose log both merchants have pings, acknowledgements and repeats; the first one also has pings of a
 * phone, and other events.
 */
async function filledStore(folder: string, random: SeededChance, logThread: boolean): Promise<Store> {
  const store = await openStore(folder, { logThread });
  for (const [index, name] of MERCHANTS.entries()) {
    await store.addMerchant(name, 1);
    const account = { merchant: name, simulated: index === 1, secretHash: Buffer.alloc(32), nowMs: 1 };
    for (let number = 1; number <= LOCKS_PER_MERCHANT; number++)
      await store.addDevice({ ...account, mac: testMac(index * LOCKS_PER_MERCHANT + number) });
  }
  const [amber = ''] = MERCHANTS;
  const secretHash = Buffer.alloc(32);
  await store.addPhone({ mac: testMac(1), name: 'phone', secretHash, expiresAtMs: null, nowMs: 1 });
  // Other events than pings are stored only for a URL that gets them.
  const filter = { ...NO_FILTER, events: EVENT_TYPES };
  const url = { merchant: amber, url: 'http://a/', headersSealed: {}, secretSealed: Buffer.from('s'), nowMs: 1 };
  await store.addWebhookUrl({ ...url, filter });
  let last = uplink(1, 1, 1);
  for (let commit = 0; commit < COMMITS; commit++) {
    const incoming = Array.from({ length: random.between(1, 9) }, (_, index) => {
      // Some uplinks come twice; the log has them once.
      if (random.next() < 0.1) return last;
      const lock = random.between(1, 2 * LOCKS_PER_MERCHANT + 1);
      const credentialId = lock === 1 && random.next() < 0.3 ? PHONE_CREDENTIAL : lock;
      last = uplink(lock, 10 * commit + index + 1, random.between(0, UPLINK_KINDS.length), credentialId);
      return last;
    });
    const event = { type: 'presence', content: { presence: 'late', lateSinceMs: 1 } } as const;
    const merchantEvents = random.next() < 0.3 ? [{ ...event, deviceId: 2, atMs: 10 * commit }] : [];
    await store.append({ incoming, judged: [], states: new Map(), merchantEvents });
  }
  return store;
}

for (const logThread of [false, true]) {
  t.test(`memory and file have the same events, ${logThread ? 'with' : 'without'} the log thread`, async (t) => {
    const seed = chooseSeed();
    const random = new SeededChance(seed);
    const folder = tempFolder(t);
    const store = await filledStore(folder, random, logThread);
    t.teardown(() => store.close());
    const reader = new SqliteDatabase(path.join(folder, 'lockgate.sqlite'), { readonly: true });
    t.teardown(() => void reader.close());
    const file = new LogReader(reader);
    const all = file.readEvents(1, 0, 10_000, 'all');
    t.ok(all.length > COMMITS, `seed ${seed}: ${all.length} events`);
    t.ok(
      all.some(({ source }) => source === 'phone'),
      'of a phone too',
    );
    t.ok(
      all.some(({ kind }) => kind === MERCHANT_EVENT_KINDS.presence),
      'not only pings',
    );
    const compare = async (merchantId: number, afterId: number, limit: number): Promise<void> => {
      for (const kinds of ['pings', 'all'] as const) {
        const read = await store.readEvents(
          merchantId,
          afterId === 0 ? LOG_START : positionAfter(afterId),
          limit,
          kinds,
        );
        const text = `seed ${seed}: ${limit} ${kinds} of merchant ${merchantId} after ${afterId}`;
        t.strictSame(read, file.readEvents(merchantId, afterId, limit, kinds), text);
      }
    };
    await compare(1, 0, 10_000);
    await compare(2, 0, 10_000);
    for (let check = 0; check < 40; check++)
      await compare(random.between(1, 3), random.between(0, 300), random.between(1, 40));
  });
}

t.test('an erased lock’s events are not read from memory', async (t) => {
  const store = await filledStore(tempFolder(t), new SeededChance(1), true);
  t.teardown(() => store.close());
  const before = await store.readEvents(1, LOG_START, 10_000);
  t.ok(before.some(({ deviceId }) => deviceId === 2));
  await store.eraseDevice(2, null);
  const after = await store.readEvents(1, LOG_START, 10_000);
  t.strictSame(
    after,
    before.filter(({ deviceId }) => deviceId !== 2),
  );
});

/** A packed commit of these uplinks of one lock; each has its id as sequence. An id of 0 is a repeat's. */
function packed(ids: readonly number[]): Float64Array {
  const { uplinks } = packCommit({
    incoming: ids.map((id) => uplink(1, id, 1)),
    judged: [],
    states: new Map(),
  });
  const doubles = new Float64Array(uplinks);
  let start = 0;
  for (const id of ids) {
    doubles[start + UPLINK_WORD.id] = id;
    start += wordsOf(doubles[start + UPLINK_WORD.length] as number);
  }
  return doubles;
}

function selectIds(recent: RecentUplinks, afterId: number, limit = 100): number[] | undefined {
  return recent.select(1, afterId, limit, PINGS)?.map(({ id }) => id);
}

t.test('what may be in the file only is not taken from memory', (t) => {
  const recent = new RecentUplinks();
  t.equal(selectIds(recent, 0), undefined, 'nothing was committed yet');
  recent.add(packed([5, 6]));
  recent.add(packed([0, 7, 8]));
  recent.add(packed([0]));
  t.equal(selectIds(recent, 3), undefined, '4 is in the file only');
  t.strictSame(selectIds(recent, 4), [5, 6, 7, 8]);
  t.strictSame(selectIds(recent, 6), [7, 8]);
  t.strictSame(selectIds(recent, 5, 2), [6, 7]);
  t.strictSame(selectIds(recent, 8), []);
  recent.add(packed([11]));
  t.equal(selectIds(recent, 8), undefined, '9 and 10 are in the file only');
  t.strictSame(selectIds(recent, 10), [11]);
  recent.clear();
  t.equal(selectIds(recent, 11), undefined);
  t.end();
});

t.test('memory is limited: the oldest commits are forgotten first', (t) => {
  const commit = (id: number): Float64Array => packed([id]);
  const recent = new RecentUplinks(3 * commit(1).length);
  for (let id = 1; id <= 5; id++) recent.add(commit(id));
  t.equal(selectIds(recent, 1), undefined);
  t.strictSame(selectIds(recent, 2), [3, 4, 5]);
  recent.add(packed([6, 7, 8, 9]));
  t.equal(selectIds(recent, 4), undefined);
  t.strictSame(selectIds(recent, 5), [6, 7, 8, 9], 'a commit above the limit is held alone');
  t.end();
});
