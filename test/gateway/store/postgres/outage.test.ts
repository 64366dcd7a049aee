/** A gateway whose database goes away: it says so, acknowledges nothing, and goes on by itself once it is back. */
import pg from 'pg';
import t from 'tap';
import type { Gateway } from '../../../../gateway/gateway.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import { ChangeSignal } from '../../../helpers/clocks/change-signal.js';
import { DiaryLock } from '../../../helpers/durability/diary-lock.js';
import { MERCHANT, testGateway, testMac, waitForEvents } from '../../../helpers/gateway/test-gateway.js';
import { SeededChance } from '../../../helpers/pair/seeded-chance.js';
import { readLogFaults } from '../../../helpers/store/postgres/log-faults.js';
import { postgresMissing } from '../../../helpers/store/postgres/server.js';
import { TestDatabases } from '../../../helpers/store/postgres/test-database.js';
import { type Teardown, tempFolder } from '../../../helpers/store/temp-folder.js';

t.setTimeout(170_000);
const databases = new TestDatabases(t);
/** The longest time that a phase of a test may take; the test fails after it. */
const PHASE_SECONDS = 60;
/** How long the database stays away, in connections that the gateway's locks try meanwhile. */
const TRIES_WHILE_AWAY = 20;

/** Makes the next commit wait for a row, and returns once it waits: it is on its way when the connections are cut. */
async function holdCommit(test: Teardown, url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  test.teardown(() => client.end().catch(() => undefined));
  await client.query('BEGIN');
  await client.query('SELECT 1 FROM node FOR UPDATE');
  for (let isWaiting = false; !isWaiting; ) {
    const { rows } = await client.query(
      `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'WITH f AS%uplink%'`,
    );
    isWaiting = rows.length > 0;
  }
}

/** Locks that send as fast as they are acknowledged, and how often they tried to connect again. */
async function connectLocks(test: Teardown, gateway: Gateway, signal: ChangeSignal) {
  const locks: DiaryLock[] = [];
  let tries = 0;
  for (let number = 1; number <= 5; number += 1) {
    const mac = testMac(number);
    const { secret } = await gateway.accounts.addDevice({ mac, merchant: MERCHANT });
    const options = { maxUnacked: 3, mayCreateUplinks: () => true, onLine: () => signal.notify() };
    const port = (): number => {
      tries += 1;
      signal.notify();
      return gateway.mqttPort;
    };
    const chance = new SeededChance(number);
    locks.push(new DiaryLock({ ...options, mac: formatMac(mac).replaceAll(':', ''), secret, port, chance }));
  }
  test.teardown(() => {
    for (const lock of locks) lock.cut();
  });
  for (const lock of locks) lock.allowConnections();
  return { locks, tries: () => tries };
}

t.test('an outage of the database loses no acknowledged uplink', { skip: postgresMissing ?? false }, async (t) => {
  const url = await databases.urlOf(tempFolder(t));
  const name = new URL(url).pathname.slice(1);
  const server = await databases.server();
  const gateway = await testGateway(t, {}, { store: url });
  const signal = new ChangeSignal();
  const { locks, tries } = await connectLocks(t, gateway, signal);
  const acked = (): number => locks.reduce((sum, lock) => sum + lock.acked.length, 0);
  const waitForAcks = (count: number): Promise<void> =>
    signal.waitUntil(
      () => acked() >= count,
      PHASE_SECONDS,
      () => `${count} acknowledged, ${acked()} are`,
    );
  await waitForAcks(50);

  const degraded = waitForEvents(gateway, 'degraded', 1, ({ reason }) => reason === 'store');
  const recovered = waitForEvents(gateway, 'recovered', 1, ({ reason }) => reason === 'store');
  await holdCommit(t, url);
  await server.query('postgres', `ALTER DATABASE ${name} ALLOW_CONNECTIONS false`);
  // The gateway's connections first, so that the commit that waits is not stored after all.
  for (const which of ["application_name = 'lockgate'", 'true'])
    await server.query(
      'postgres',
      `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1 AND ${which}`,
      [name],
    );
  t.match(await degraded, [{ reason: 'store' }]);
  const ackedBefore = acked();
  for (const lock of locks) {
    lock.cut();
    lock.allowConnections();
  }
  const triesBefore = tries();
  await signal.waitUntil(
    () => tries() - triesBefore >= TRIES_WHILE_AWAY,
    PHASE_SECONDS,
    () => 'connections while the database is away',
  );
  t.equal(acked(), ackedBefore, 'nothing is acknowledged while the database is away');
  await server.query('postgres', `ALTER DATABASE ${name} ALLOW_CONNECTIONS true`);
  t.match(await recovered, [{ reason: 'store' }]);
  await waitForAcks(ackedBefore + 100);
  for (const lock of locks) lock.stopCreating();
  await signal.waitUntil(
    () => locks.every((lock) => lock.unackedCount === 0),
    PHASE_SECONDS,
    () => 'an acknowledgement of every uplink',
  );
  t.same(await readLogFaults(server, name), [], 'each uplink is in the database’s log once, in order');
  // An event that is no lock's uplink has the credential 0.
  const [row] = await server.query(name, 'SELECT count(*)::int AS count FROM uplink WHERE credential_id > 0');
  t.equal(row?.count, acked(), 'all that was acknowledged, and nothing else');
});
