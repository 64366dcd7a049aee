/**
 * Claims in a database that several gateways share. A gateway writes in a slot of its own and, from its start to its
 * end, in one epoch. Before it serves a lock, serves a lock's phones (a claim of their own) or sends to a webhook URL,
 * it claims that, so that each has one owner at a time. So has each duty, which is work that one gateway does for all,
 * such as deleting old rows.
 */
import pg from 'pg';
import t from 'tap';
import type { Claim, Duty, GrantedClaim, LockPart } from '../../../../gateway/store/contract/slots/ownership.js';
import type { Store } from '../../../../gateway/store/contract/store.js';
import { STEPS } from '../../../../gateway/store/postgres/migrations.js';
import { openPostgresStore } from '../../../../gateway/store/postgres/open-postgres-store.js';
import { Minutes } from '../../../../proto/clock.js';
import { postgresMissing } from '../../../helpers/store/postgres/server.js';
import { TestDatabases } from '../../../helpers/store/postgres/test-database.js';
import { type Teardown, tempFolder } from '../../../helpers/store/temp-folder.js';
import { commit, HASH, MAC, uplink } from '../contract/contract-store.js';

t.setTimeout(170_000);
const options = { skip: postgresMissing ?? false };
const databases = new TestDatabases(t);
// What a gateway claims of the only lock: the lock itself, or its phones.
const LOCK: LockPart = { deviceId: 1, source: 'lock' };
const PHONES: LockPart = { deviceId: 1, source: 'phone' };
/** More than there are locks to adopt in any of these tests. */
const MAX_ADOPTED = 10;
const NO_GRACE = 0;
const LONG_GRACE = Minutes(1);
/** A granted claim. `unheardSinceMs` is when the former owner last ran, if it ended without giving the lock away. */
const GRANTED: GrantedClaim = { isGranted: true, unheardSinceMs: null };

/** Two gateways' stores on one new database with a lock. */
async function openTwo(test: Teardown): Promise<{ one: Store; other: Store; folder: string }> {
  const folder = tempFolder(test);
  const open = async (): Promise<Store> => {
    const store = await databases.open(folder, { isShared: true });
    test.teardown(() => store.close().catch(() => undefined));
    return store;
  };
  const [one, other] = [await open(), await open()];
  await one.addMerchant('Amber', 5);
  await one.addDevice({ mac: MAC, merchant: 'Amber', simulated: true, secretHash: HASH, nowMs: 6 });
  return { one, other, folder };
}

/** Gives parts away as soon as they are wished for. */
function giveAway({ ownership: { locks } }: Store): void {
  locks.onWish((part) => {
    if (locks.owns(part.deviceId, part.source)) void locks.release([part]);
  });
}

/**
 * The statements by which another gateway that found this one silent ends its epoch, and replaces it in the row of its
 * slot.
 */
function endOf({ ownership: { slot } }: Store): string {
  return `INSERT INTO ended_epoch SELECT epoch, slot, 77 FROM node WHERE slot = ${slot};
     UPDATE node SET epoch = 8, released = true WHERE slot = ${slot}`;
}

/** Has one gateway own the lock, and the other claim it for a client that leaves once the owner has been asked. */
async function claimAndLeave(one: Store, other: Store): Promise<{ readonly result: Promise<Claim> }> {
  await one.ownership.locks.claim(LOCK);
  let isWanted = true;
  const asked = new Promise<void>((resolve) => one.ownership.locks.onWish(() => resolve()));
  const result = other.ownership.locks.claim(LOCK, () => isWanted);
  await asked;
  isWanted = false;
  return { result };
}

/** Runs a statement in the database that a folder stands for. */
async function query(folder: string, statement: string): Promise<Record<string, unknown>[]> {
  const name = new URL(await databases.urlOf(folder)).pathname.slice(1);
  return await (await databases.server()).query(name, statement);
}

t.test('a lock has one owner, who gives it away when asked; its phones are owned apart', options, async (t) => {
  const { one, other } = await openTwo(t);
  t.notSame(one.ownership.slot, other.ownership.slot);
  t.same(await one.ownership.locks.claim(LOCK), GRANTED);
  t.same(await one.ownership.locks.claim(LOCK), GRANTED, 'again');
  t.same(await other.ownership.locks.claim(PHONES), GRANTED);
  t.same(await other.ownership.locks.claim(LOCK), { isGranted: false }, 'its owner does not answer');
  t.ok(one.ownership.locks.owns(1, 'lock') && !one.ownership.locks.owns(1, 'phone'));
  t.ok(other.ownership.locks.owns(1, 'phone') && !other.ownership.locks.owns(1, 'lock'));
  giveAway(one);
  t.same(await other.ownership.locks.claim(LOCK), GRANTED);
  t.ok(other.ownership.locks.owns(1, 'lock') && !one.ownership.locks.owns(1, 'lock'));
});

t.test('a lock is not claimed for a client that has left', options, async (t) => {
  const { one, other } = await openTwo(t);
  t.same(await one.ownership.locks.claim(LOCK, () => false), { isGranted: false });
  t.notOk(one.ownership.locks.owns(1, 'lock'));
  t.same(await other.ownership.locks.claim(LOCK, () => true), GRANTED, 'no other gateway needs to release it');
});

t.test('a lock that was asked for is claimed although the client has left', options, async (t) => {
  const { one, other } = await openTwo(t);
  await one.ownership.locks.claim(LOCK);
  let isWanted = true;
  one.ownership.locks.onWish((part) => {
    isWanted = false;
    void one.ownership.locks.release([part]);
  });
  t.same(await other.ownership.locks.claim(LOCK, () => isWanted), GRANTED, 'otherwise nobody would own it');
});

t.test('an owner that does not answer is asked about once a second', options, async (t) => {
  const { one, other, folder } = await openTwo(t);
  await one.ownership.locks.claim(LOCK);
  let isOver = false;
  const claiming = other.ownership.locks.claim(LOCK).finally(() => {
    isOver = true;
  });
  const asked = new Set<unknown>();
  while (!isOver) for (const { at } of await query(folder, 'SELECT at::text FROM release_wish')) asked.add(at);
  t.same(await claiming, { isGranted: false });
  // A claim waits for two seconds, and looks ten times a second whether the lock was released.
  t.ok(asked.size >= 1 && asked.size <= 3, `${asked.size} times`);
});

t.test('a lock that was asked for is not claimed once its owner has ended and the client left', options, async (t) => {
  const { one, other, folder } = await openTwo(t);
  const claiming = await claimAndLeave(one, other);
  await query(folder, endOf(one));
  t.same(await claiming.result, { isGranted: false }, 'nobody gives it away any more');
  t.notOk(other.ownership.locks.owns(1, 'lock'));
  const third = await databases.open(folder, { isShared: true });
  t.teardown(() => third.close().catch(() => undefined));
  t.match(await third.ownership.locks.claim(LOCK), { isGranted: true });
});

t.test('a lock whose client has left for a third gateway is not asked of that one', options, async (t) => {
  const { one, other, folder } = await openTwo(t);
  const third = await databases.open(folder, { isShared: true });
  t.teardown(() => third.close().catch(() => undefined));
  const claiming = await claimAndLeave(one, other);
  // As after a release by the one and a claim by the third.
  const thirdSlot = third.ownership.slot;
  await query(
    folder,
    `UPDATE device_owner o SET slot = n.slot, epoch = n.epoch FROM node n WHERE n.slot = ${thirdSlot}`,
  );
  t.same(await claiming.result, { isGranted: false });
  t.same(await query(folder, `SELECT 1 FROM release_wish WHERE asked_slot = ${thirdSlot}`), []);
});

t.test('what a lock’s stored state lacks is read, however many uplinks came since', options, async (t) => {
  const { one } = await openTwo(t);
  await one.ownership.locks.claim(LOCK);
  await one.append({ ...commit(uplink(1)), states: new Map([[LOCK.deviceId, '{"a":1}']]) });
  await one.append(commit(uplink(2), uplink(3)));
  const sequencesOf = async (deviceIds?: readonly number[]): Promise<number[]> => {
    const found: number[] = [];
    const newest = 1;
    for await (const chunk of one.readUplinksAfterStates(newest, 9, deviceIds))
      found.push(...chunk.map(({ sequence }) => sequence));
    return found;
  };
  t.same(await sequencesOf([LOCK.deviceId]), [2, 3]);
  t.same(await sequencesOf([]), []);
  t.same(await sequencesOf(), [3], 'of all locks, only the newest');
});

t.test('a lock whose row names a gateway that does not know it is released when another asks', options, async (t) => {
  const { one, other, folder } = await openTwo(t);
  // As after a claim or a release whose answer was lost.
  await query(
    folder,
    `INSERT INTO device_owner SELECT 1, 'lock', slot, epoch, false FROM node WHERE slot = ${one.ownership.slot}`,
  );
  one.ownership.locks.onWish(() => t.fail('it does not own the lock'));
  t.same(await other.ownership.locks.claim(LOCK), GRANTED);
  t.ok(other.ownership.locks.owns(1, 'lock') && !one.ownership.locks.owns(1, 'lock'));
});

t.test('of two gateways that claim the same locks at the same time, one gets each', options, async (t) => {
  const { one, other, folder } = await openTwo(t);
  const parts = Array.from({ length: 60 }, (_, index): LockPart => ({ deviceId: index + 1, source: 'lock' }));
  // Of a third of them nobody was the owner, of a third somebody who is gone, and a third was released. The owner of
  // these rows had slot 63 and epoch 7, and last ran at 1234 ms.
  await query(
    folder,
    `INSERT INTO device_owner SELECT n, 'lock', 63, 7, n > 40 FROM generate_series(21, 60) AS n;
     INSERT INTO ended_epoch (epoch, slot, last_ran_ms) VALUES (7, 63, 1234)`,
  );
  const claimAll = ({ ownership: { locks } }: Store) => Promise.all(parts.map((part) => locks.claim(part)));
  const claims = await Promise.all([claimAll(one), claimAll(other)]);
  for (const [index, { deviceId }] of parts.entries()) {
    const owners = [one, other].filter((store) => store.ownership.locks.owns(deviceId, 'lock'));
    t.equal(owners.length, 1, `lock ${deviceId}`);
    const granted = claims.flatMap((each) => (each[index]?.isGranted ? [each[index] as GrantedClaim] : []));
    const unheardSinceMs = deviceId > 20 && deviceId <= 40 ? 1234 : null;
    t.same(granted, [{ isGranted: true, unheardSinceMs }]);
  }
});

t.test('who serves a lock again knows what the other stored for it, and continues its ids', options, async (t) => {
  const { one, other, folder } = await openTwo(t);
  for (const store of [one, other]) giveAway(store);
  const locks = ({ ownership }: Store) => ownership.locks;
  await locks(one).claim(LOCK);
  await one.append(commit(uplink(1)));
  await locks(other).claim(LOCK);
  await other.append({ ...commit(uplink(1), uplink(2)), states: new Map([[1, '{}']]) });
  await locks(one).claim(LOCK);
  t.match(await one.append(commit(uplink(2), uplink(3))), { repeatedUplinks: [0] });
  const rows = await query(folder, 'SELECT slot::int AS slot, sequence::int AS sequence FROM uplink ORDER BY id');
  t.same(
    rows.map(({ sequence }) => sequence),
    [1, 2, 3],
  );
  t.same(
    rows.map(({ slot }) => slot),
    [one, other, one].map(({ ownership }) => ownership.slot),
  );
});

t.test('what a gateway owned is adopted once its epoch has ended, and it stores nothing more', options, async (t) => {
  const { one, other, folder } = await openTwo(t);
  await one.ownership.locks.claim(LOCK);
  t.same(await other.ownership.locks.adopt(MAX_ADOPTED, NO_GRACE), [], 'the owner runs');
  await query(folder, endOf(one));
  t.same(await other.ownership.locks.adopt(MAX_ADOPTED, LONG_GRACE), [], 'its end has been known only since now');
  t.same(await other.ownership.locks.adopt(MAX_ADOPTED, NO_GRACE), [{ ...LOCK, unheardSinceMs: 77 }]);
  t.same(await other.ownership.locks.adopt(MAX_ADOPTED, NO_GRACE), []);
  const isFenced = { name: 'StoreFailure', kind: 'fenced' };
  await t.rejects(one.append(commit(uplink(1))), isFenced);
  await t.rejects(one.ownership.locks.claim(PHONES), isFenced);
});

t.test('a lock that was released for nobody is taken back after a while', options, async (t) => {
  const { one, other } = await openTwo(t);
  await one.ownership.locks.claim(LOCK);
  await one.ownership.locks.claim(PHONES);
  await one.ownership.locks.release([LOCK, PHONES]);
  t.same(await one.ownership.locks.adopt(MAX_ADOPTED, LONG_GRACE), [], 'whoever asked for it may still take it');
  t.same(await other.ownership.locks.adopt(MAX_ADOPTED, NO_GRACE), [], 'this is for the gateway that released it');
  t.same(await other.ownership.locks.claim(PHONES), GRANTED);
  t.same(await one.ownership.locks.adopt(MAX_ADOPTED, NO_GRACE), [{ ...LOCK, unheardSinceMs: null }]);
  t.ok(one.ownership.locks.owns(1, 'lock') && !one.ownership.locks.owns(1, 'phone'));
  await one.ownership.locks.release([LOCK]);
  t.same(await one.ownership.locks.adopt(MAX_ADOPTED, NO_GRACE), [{ ...LOCK, unheardSinceMs: null }], 'each time');
});

t.test('what a gateway released before its end is adopted from it', options, async (t) => {
  const { one, other, folder } = await openTwo(t);
  await one.ownership.locks.claim(LOCK);
  await one.ownership.locks.release([LOCK]);
  await query(folder, endOf(one));
  t.match(await other.ownership.locks.adopt(MAX_ADOPTED, NO_GRACE), [LOCK]);
});

t.test('a URL has one owner, whose progress is refused once somebody changed the URL', options, async (t) => {
  const { one, other } = await openTwo(t);
  await one.ownership.locks.claim(LOCK);
  await one.append(commit(uplink(1)));
  const secretSealed = Buffer.from('s');
  const url = { merchant: 'Amber', url: 'http://a/', headersSealed: {}, secretSealed, nowMs: 7 };
  const { id: urlId } = await other.addWebhookUrl(url);
  t.same(await one.ownership.urls.claim([urlId]), [urlId]);
  t.same(await other.ownership.urls.claim([urlId]), []);
  const progress = [{ urlId, attempts: [] }];
  t.same(await one.recordProgress(progress), { refusedUrlIds: [urlId] }, 'its worker must read it first');
  await one.webhooks.find(urlId);
  t.same(await one.recordProgress(progress), { refusedUrlIds: [] });
  await other.webhooks.find(urlId);
  t.same(await other.recordProgress(progress), { refusedUrlIds: [urlId] }, 'another gateway has it');
  await other.webhooks.change(urlId, { ordered: true });
  t.same(await one.recordProgress(progress), { refusedUrlIds: [urlId] }, 'it was changed');
  await one.webhooks.find(urlId);
  t.same(await one.recordProgress(progress), { refusedUrlIds: [] });
  await one.ownership.urls.release([urlId]);
  t.same(await other.ownership.urls.claim([urlId]), [urlId]);
});

t.test('what an ended gateway left open is ended, and nothing of one that runs', options, async (t) => {
  const { one, other } = await openTwo(t);
  const who = { actor: 'operator', address: null, agent: null, osUser: null, token: null } as const;
  await one.audit.begin({ ...who, atMs: 1, action: 'device.set', object: 'x', before: null });
  const times = { firstAtMs: 1, lastAtMs: 1, resolvedAtMs: null };
  await one.notices.write([{ kind: 'degraded', subject: 'store (gateway 1)', text: 'x', count: 1, ...times }]);
  await other.audit.abandon();
  t.match(await other.audit.list({ limit: 9 }), [{ outcome: 'begun' }]);
  t.same(await other.notices.readLeftOpen(), []);
  // Another gateway's reading changes nothing; what it notes again is its own.
  await other.notices.markRead('all', 2);
  t.same(await one.notices.readLeftOpen(), []);
  await one.close();
  await other.audit.abandon();
  t.match(await other.audit.list({ limit: 9 }), [{ outcome: 'unknown' }]);
  t.same(await other.notices.readLeftOpen(), [{ kind: 'degraded', subject: 'store (gateway 1)' }]);
});

t.test('a connection that holds the row of a gateway that is gone is ended', options, async (t) => {
  const { one, folder } = await openTwo(t);
  // Another gateway, in slot 40, whose beat stays the same, and whose machine vanished in the middle of a commit.
  await query(
    folder,
    `INSERT INTO node (slot, epoch, session, version, released) VALUES (40, 7, 8, '1', false);
     INSERT INTO node_beat (slot, epoch, at) VALUES (40, 7, now());
     INSERT INTO device_owner (device_id, source, slot, epoch, released) VALUES (1, 'lock', 40, 7, false)`,
  );
  const client = new pg.Client({ connectionString: await databases.urlOf(folder) });
  client.on('error', () => undefined);
  await client.connect();
  const ended = new Promise<void>((resolve) => client.once('end', () => resolve()));
  await client.query('BEGIN');
  await client.query('SELECT 1 FROM node WHERE slot = 40 FOR NO KEY UPDATE');
  await ended;
  let adopted: readonly unknown[] = [];
  while (adopted.length === 0) adopted = await one.ownership.locks.adopt(MAX_ADOPTED, NO_GRACE);
  t.match(adopted, [LOCK]);
});

t.test('signals reach the other gateways, in parts if they are long', options, async (t) => {
  const { one, other } = await openTwo(t);
  // Ids of 16 digits: together more than the 8,000 bytes that a notification of PostgreSQL may have.
  const deviceIds = Array.from({ length: 1_000 }, (_, index) => 9_007_199_254_000_000 + index);
  const received: number[] = [];
  one.ownership.signals.onSignal(() => t.fail('the sender gets no signal of its own'));
  const all = new Promise<void>((resolve) => {
    other.ownership.signals.onSignal((signal) => {
      if (signal.type === 'commands') received.push(...signal.deviceIds);
      if (signal.type === 'events') t.same(signal.merchantIds, [1, 2], 'merchants are gathered');
      if (received.length === deviceIds.length) resolve();
    });
  });
  one.ownership.signals.send({ type: 'events', merchantIds: [1] });
  one.ownership.signals.send({ type: 'events', merchantIds: [2, 1] });
  one.ownership.signals.send({ type: 'commands', deviceIds });
  await all;
  t.same(received, deviceIds);
});

t.test('a gateway whose link for signals broke is told that it may have missed some', options, async (t) => {
  const { one, folder } = await openTwo(t);
  const missed = new Promise<void>((resolve) => {
    one.ownership.signals.onSignal(({ type }) => {
      if (type === 'missed') resolve();
    });
  });
  await query(
    folder,
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND query LIKE 'LISTEN%'`,
  );
  await missed;
  t.pass('the listener was called, so that it reads everything again');
});

t.test('duties pass on when their gateway stops', options, async (t) => {
  const { one, other } = await openTwo(t);
  t.ok(one.ownership.duties.holds('retention') && !other.ownership.duties.holds('retention'));
  const gained = new Promise<Duty>((resolve) => other.ownership.duties.onGain(resolve));
  await one.close();
  t.ok(other.ownership.duties.holds(await gained), 'what it gains, it holds');
});

t.test('a gateway that has the database to itself excludes others, and they exclude it', options, async (t) => {
  const { one, other, folder } = await openTwo(t);
  const url = await databases.urlOf(folder);
  await t.rejects(openPostgresStore(url), { code: 'data-in-use' });
  await one.close();
  await t.rejects(openPostgresStore(url), { code: 'data-in-use' });
  await other.close();
  const alone = await openPostgresStore(url);
  await t.rejects(openPostgresStore(url, { isShared: true }), { code: 'data-in-use' });
  await alone.close();
});

t.test('a database of the first schema is brought to this one, with its data', options, async (t) => {
  const url = await (await databases.server()).createDatabase();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query('CREATE TABLE lockgate_migration (name text PRIMARY KEY, applied_at timestamptz DEFAULT now())');
  await client.query(STEPS[0]?.sql ?? '');
  await client.query(`INSERT INTO lockgate_migration (name) VALUES ('${STEPS[0]?.name}')`);
  await client.query(`INSERT INTO merchant (name, created_at_ms) VALUES ('Amber', 5)`);
  await client.query(
    `INSERT INTO audit (at_ms, actor, action, "object", outcome) VALUES (5, 'operator', 'a', '', 'begun')`,
  );
  await client.query(
    `INSERT INTO notice (kind, subject, text, count, first_at_ms, last_at_ms)
     VALUES ('degraded', 'store', 'x', 1, 5, 5)`,
  );
  await client.end();
  const store = await openPostgresStore(url, { isShared: true });
  t.teardown(() => store.close());
  t.match(await store.listMerchants(), [{ name: 'Amber' }]);
  // Its gateway has ended: what it left open is known as such.
  await store.audit.abandon();
  t.match(await store.audit.list({ limit: 9 }), [{ outcome: 'unknown' }]);
  t.same(await store.notices.readLeftOpen(), [{ kind: 'degraded', subject: 'store' }]);
  t.same(await store.ownership.locks.claim(LOCK), GRANTED);
});
