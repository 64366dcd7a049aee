/**
 * Refusals of a lock (its CONNECT, PUBLISH or SUBSCRIBE was refused) are stored for 14 days, so that operators can see
 * why the lock can't connect.
 */

import path from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t, { type Test } from 'tap';
import { GatewayEvents } from '../../../gateway/events.js';
import type { Refused } from '../../../gateway/lock-events.js';
import {
  MAX_WAITING_ROWS,
  MAX_WRITTEN_ROWS,
  RefusalRecorder,
  WRITE_INTERVAL,
} from '../../../gateway/mqtt/refusals/refusal-recorder.js';
import {
  MAX_REFUSALS_PER_LOCK,
  REFUSALS_RETAINED_FOR,
  type RefusalChange,
  type RefusalStore,
} from '../../../gateway/store/contract/devices/refusal-store.js';
import { StoreFailure } from '../../../gateway/store/contract/errors.js';
import { migrationProvider } from '../../../gateway/store/sqlite/migrations.js';
import { openSqliteStore } from '../../../gateway/store/sqlite/open-sqlite-store.js';
import { registerRowChecksum } from '../../../gateway/store/sqlite/row-checksum.js';
import { Kysely, Migrator, SqliteDialect } from '../../../gateway/store/tables/kysely.js';
import { afterThisTurn, Hours, ManualClock } from '../../../proto/clock.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { formatDate } from '../../../proto/wire/ping-json.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { LOCKGATE, Program, runLockgate } from '../../helpers/cli/program.js';
import { testBytes, testGateway, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { connectPacket, publishPacket, RawLock, subscribePacket } from '../../helpers/mqtt/raw-lock.js';
import { openStore } from '../../helpers/store/new-store.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

const MAC = testMac();
/** SUBACK of packet id 1: the subscription is refused. */
const SUBACK_REFUSED = '9003000180';

/** A refusal in the operators' interface. `count` refusals alike, of a lock and for a reason, are one row. */
interface RefusalJson {
  readonly what: string;
  readonly reason: string;
  readonly why: string;
  readonly count: number;
  readonly first_at: string;
  readonly last_at: string;
}

/** A gateway with a lock, and functions to provoke and to read the lock's refusals. */
async function setUpGateway(t: Test) {
  const gateway = await testGateway(t);
  const { secret } = await gateway.accounts.addDevice({ mac: MAC });
  const refusals = async (mac = MAC): Promise<RefusalJson[]> => {
    const { body } = await callOperator(gateway, 'GET', `/devices/${mac}`);
    return (body as { refusals: RefusalJson[] }).refusals;
  };
  /** Sends bytes as the first packet of a connection, and resolves when the connection is closed. */
  const sendFirstPacket = async (bytes: Buffer): Promise<void> => {
    const lock = await RawLock.open(t, gateway.mqttPort);
    lock.write(bytes);
    await lock.waitForClose();
  };
  const connectLock = (): Promise<RawLock> => RawLock.connect(t, gateway.mqttPort, { user: MAC, secret });
  return { gateway, secret, refusals, sendFirstPacket, connectLock };
}

t.test('refusals of a lock are stored with their reason, and repeats are counted in one row', async (t) => {
  const { gateway, secret, refusals, sendFirstPacket, connectLock } = await setUpGateway(t);
  t.same(await refusals(), []);
  for (let attempt = 0; attempt < 3; attempt++)
    await sendFirstPacket(connectPacket({ user: MAC, secret: 'lgs_guess' }));
  await sendFirstPacket(connectPacket({ user: MAC, clientId: 'ESP32', secret }));
  await sendFirstPacket(connectPacket({ user: MAC, clientId: formatMac(MAC).toLowerCase(), secret }));
  const lock = await connectLock();
  lock.write(subscribePacket('other'));
  await lock.waitForHex(SUBACK_REFUSED);
  lock.write(publishPacket('down', testBytes(1)));
  await lock.waitForClose();
  const storedRefusals = await refusals();
  t.match(storedRefusals, [
    { what: 'publish', reason: 'topic', why: /topic "down"/, source: 'lock', address: '127.0.0.1', count: 1 },
    { what: 'subscribe', reason: 'topic', why: 'topic "other"', count: 1 },
    { what: 'connect', reason: 'identity', count: 2 },
    { what: 'connect', reason: 'wrong-secret', why: 'wrong secret', count: 3 },
  ]);
  const { first_at: first, last_at: last } = storedRefusals[3] as RefusalJson;
  t.ok(first <= last && last <= formatDate(gateway.clock.now()), `${first} to ${last}`);
  t.notMatch(JSON.stringify(storedRefusals), /lgs_/, 'the rows contain no secret');
  const { body } = await callOperator(gateway, 'GET', `/why?id=${MAC}`);
  const steps = (body as { steps: { kind: string; sentence: string }[] }).steps;
  const sentences = steps.filter(({ kind }) => kind === 'refused').map(({ sentence }) => sentence);
  t.match(sentences, [
    /^The last PUBLISH that was refused came at \S+Z, from 127\.0\.0\.1: topic "down"/,
    /^The last SUBSCRIBE that was refused came at /,
    /^The last CONNECT was refused at \S+Z, from 127\.0\.0\.1, because client id and user name were not both /,
  ]);
});

t.test('refusals of unknown MACs are not stored', async (t) => {
  const { gateway, refusals, sendFirstPacket } = await setUpGateway(t);
  const other = testMac(2);
  await sendFirstPacket(connectPacket({ user: other, secret: 'x' }));
  await sendFirstPacket(connectPacket({ user: other, clientId: 'ESP32', secret: 'x' }));
  // A reading waits until the refusals so far are written.
  await refusals();
  await gateway.accounts.addDevice({ mac: other });
  t.same(await refusals(other), []);
});

t.test('events of refusals name the lock, so that tail --mac shows them', async (t) => {
  const { gateway, sendFirstPacket } = await setUpGateway(t);
  const reported = waitForEvents(gateway, 'refused', 1);
  await sendFirstPacket(connectPacket({ user: MAC, clientId: 'ESP32', secret: 'x' }));
  t.match(await reported, [{ mac: MAC, clientId: 'ESP32' }]);
});

t.test('refusals of an erased, removed or moved lock are treated like its history', async (t) => {
  const { gateway, refusals, sendFirstPacket } = await setUpGateway(t);
  await gateway.accounts.addMerchant('Other');
  const guess = (): Promise<void> => sendFirstPacket(connectPacket({ user: MAC, secret: 'lgs_guess' }));
  await guess();
  t.match(
    (await callOperator(gateway, 'POST', `/devices/${MAC}/erase`)).body,
    { refusals: 0 },
    'waiting refusals are not written',
  );
  t.same(await refusals(), []);
  await guess();
  t.equal((await refusals()).length, 1, 'later refusals are written again');
  t.match((await callOperator(gateway, 'POST', `/devices/${MAC}/erase`)).body, { refusals: 1 });
  t.same(await refusals(), []);

  await guess();
  await callOperator(gateway, 'PATCH', `/devices/${MAC}`, { merchant: 'Other' });
  t.same(await refusals(), [], 'the refusals stay with the previous merchant');
  await guess();
  t.match(await refusals(), [{ count: 1 }]);
  await callOperator(gateway, 'PATCH', `/devices/${MAC}`, { merchant: 'Amber' });
  t.match(await refusals(), [{ count: 1 }], 'and are there when the lock returns');

  await callOperator(gateway, 'DELETE', `/devices/${MAC}`);
  await gateway.accounts.addDevice({ mac: MAC, merchant: 'Amber' });
  t.match(await refusals(), [{ reason: 'wrong-secret' }], 'a removed lock’s refusals stay');
});

t.test('device show and tail --mac show refusals', async (t) => {
  const { gateway, sendFirstPacket } = await setUpGateway(t);
  const environment = {
    LOCKGATE_GATEWAY: `http://127.0.0.1:${gateway.operatorPort}`,
    LOCKGATE_TOKEN: gateway.operatorToken,
  };
  const run = (...words: string[]) => runLockgate([...words], environment);
  const tail = new Program(t, process.execPath, [LOCKGATE, 'tail', '--mac', MAC.toLowerCase()], environment);
  await tail.waitForLine(/Watching/, 'stderr');
  await sendFirstPacket(connectPacket({ user: testMac(2), secret: 'x' }));
  for (let attempt = 0; attempt < 2; attempt++)
    await sendFirstPacket(connectPacket({ user: MAC, secret: 'lgs_guess' }));
  t.match(await tail.waitForLine(/refused/), /A4:C1:38:00:00:01 no +connect refused: wrong secret \(A4C138000001, 127/);
  const shown = await run('device', 'show', MAC);
  t.equal(shown.exit?.code, 0);
  t.match(shown.stdout.join('\n'), /Refused\n20\S+Z {2}connect: wrong secret \(from 127\.0\.0\.1, 2 times since 20/);
  const why = (await run('why', MAC)).stdout.join(' ').replace(/\s+/g, ' ');
  t.match(why, /The last CONNECT was refused at \S+, from 127\.0\.0\.1, because the password was wrong \(2 times/);
});

/** A recorder of refusals, what it wrote, and whether its store fails. */
interface RecorderSetup {
  readonly clock: ManualClock;
  readonly events: GatewayEvents;
  readonly recorder: RefusalRecorder;
  readonly writes: (readonly RefusalChange[])[];
  failing: boolean;
}

/** A recorder of refusals whose store is a list, on a manual clock. */
function setUpRecorder(): RecorderSetup {
  const clock = new ManualClock(1000);
  const events = new GatewayEvents();
  const writes: (readonly RefusalChange[])[] = [];
  const store: RefusalStore = {
    write: async (changes) => {
      if (setup.failing) throw new StoreFailure('keep refusals', new Error('a bad day'));
      writes.push(changes);
    },
    read: async () => [],
  };
  const recorder = new RefusalRecorder({
    store,
    events,
    clock,
    now: () => clock.now(),
    isStoreFailing: () => false,
  });
  const setup: RecorderSetup = { clock, events, recorder, writes, failing: false };
  return setup;
}

/** A refusal of a lock's CONNECT at the time `number` (ms). */
function refused(number: number, members: Partial<Refused> = {}): Refused {
  const mac = testMac(number);
  const claim = { clientId: mac, mac, source: 'lock', isAuthenticated: false, address: '10.0.0.1' } as const;
  return { atMs: number, what: 'connect', reason: 'wrong-secret', why: 'wrong secret', ...claim, ...members };
}

/** Resolves when work that was started is done. */
const waitForWrites = (): Promise<void> => new Promise((resolve) => afterThisTurn(resolve));

t.test(
  'at most one small write per second, however many refusals there are, with authenticated locks first',
  async (t) => {
    const { clock, events, recorder, writes } = setUpRecorder();
    for (let number = 1; number <= 5000; number++) for (const _ of [1, 2, 3]) events.emit('refused', refused(number));
    events.emit('refused', refused(7, { what: 'publish', reason: 'topic', why: 'topic "a"', isAuthenticated: true }));
    t.equal(
      recorder.waiting,
      MAX_WAITING_ROWS + 1,
      'waiting rows are limited, and authenticated clients have their own limit',
    );
    t.same(writes, []);
    const seconds = Math.ceil((MAX_WAITING_ROWS + 1) / MAX_WRITTEN_ROWS);
    // Three more seconds, in which nothing is left to write.
    for (let second = 1; second <= seconds + 3; second++) {
      clock.advance(WRITE_INTERVAL);
      await waitForWrites();
    }
    t.equal(writes.length, seconds);
    t.ok(writes.every((changes) => changes.length <= MAX_WRITTEN_ROWS));
    t.match(writes[0], [
      { mac: testMac(7), what: 'publish' },
      { mac: testMac(1), count: 3, firstAtMs: 1, lastAtMs: 1 },
    ]);
    await recorder.stop();
  },
);

t.test('refusals that could not be written wait and are merged with later ones', async (t) => {
  const setup = setUpRecorder();
  const { clock, events, recorder, writes } = setup;
  setup.failing = true;
  events.emit('refused', refused(1));
  clock.advance(WRITE_INTERVAL);
  await waitForWrites();
  t.equal(recorder.waiting, 1);
  events.emit('refused', refused(1, { atMs: 9, address: '10.0.0.2' }));
  setup.failing = false;
  await recorder.stop();
  t.match(writes, [[{ count: 2, firstAtMs: 1, lastAtMs: 9, address: '10.0.0.2' }]]);
});

t.test('old refusals are deleted, also when nothing more is refused', async (t) => {
  const { clock, recorder, writes } = setUpRecorder();
  // Without refusals, the recorder writes once an hour.
  clock.advance(Hours(1));
  await waitForWrites();
  t.same(writes, [[]], 'each write deletes old rows, also one without changes');
  await recorder.stop();
});

t.test('the store keeps the latest refusals of each lock for 14 days', async (t) => {
  const store = await openStore(tempFolder(t));
  t.teardown(() => store.close());
  await store.addMerchant('Amber', 0);
  for (const number of [1, 2])
    await store.addDevice({
      mac: testMac(number),
      merchant: 'Amber',
      simulated: false,
      secretHash: Buffer.alloc(32),
      nowMs: 0,
    });
  const change = (number: number, why: string, atMs: number): RefusalChange => {
    const { mac, source, what, address } = refused(number);
    return { mac: mac ?? MAC, source, what, reason: 'topic', why, address, count: 1, firstAtMs: atMs, lastAtMs: atMs };
  };
  // The second argument is the present time.
  await store.refusals.write([change(2, 'old', 1)], 10);
  // 30 more than are stored. The row of `why 40` counts once more later.
  const many = Array.from({ length: MAX_REFUSALS_PER_LOCK + 30 }, (_, index) => change(1, `why ${index}`, 100 + index));
  await store.refusals.write(many, 300);
  await store.refusals.write([change(1, 'why 40', 400), change(9, 'of an unknown lock', 400)], 400);
  const storedRefusals = await store.refusals.read(1, 400);
  t.equal(storedRefusals.length, MAX_REFUSALS_PER_LOCK);
  t.match(storedRefusals[0], { why: 'why 40', count: 2, firstAtMs: 140, lastAtMs: 400 });
  t.match(storedRefusals.at(-1), { why: 'why 30' });
  t.match(await store.refusals.read(2, 400), [{ why: 'old' }]);
  await store.refusals.write([], 2 + REFUSALS_RETAINED_FOR);
  // Read as of a time at which it would not be too old.
  t.same(await store.refusals.read(2, 0), [], 'after 14 days it is deleted');
  t.equal((await store.refusals.read(1, 400)).length, MAX_REFUSALS_PER_LOCK);
});

t.test('a store that was made before refusals were stored gets their table', async (t) => {
  const folder = tempFolder(t);
  const db = new SqliteDatabase(path.join(folder, 'lockgate.sqlite'));
  registerRowChecksum(db);
  const tables = new Kysely<unknown>({ dialect: new SqliteDialect({ database: db }) });
  // The last migration before the table of refusals.
  const { error } = await new Migrator({ db: tables, provider: migrationProvider }).migrateTo('0013-seen-and-held');
  t.notOk(error);
  db.exec("INSERT INTO merchant (id, name, created_at_ms) VALUES (1, 'Amber', 1)");
  db.exec(`INSERT INTO device (id, mac, merchant_id, simulated, created_at_ms) VALUES (7, '${MAC}', 1, 0, 1)`);
  db.close();
  const store = await openSqliteStore(folder);
  t.teardown(() => store.close());
  t.same(await store.refusals.read(7, 0), []);
  const { source, what, why, address } = refused(1);
  const row = { source, what, why, address, reason: 'wrong-secret', count: 1, firstAtMs: 5, lastAtMs: 5 };
  await store.refusals.write([{ ...row, mac: MAC }], 5);
  t.match(await store.refusals.read(7, 5), [{ reason: 'wrong-secret', firstAtMs: 5 }]);
});
