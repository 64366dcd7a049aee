/**
 * Connections to PostgreSQL that break without a sign: nothing comes and nothing goes, and nobody closes them, as when
 * a firewall forgets them. New connections work.
 */
import pg from 'pg';
import t from 'tap';
import { failureKind } from '../../../../gateway/store/contract/errors.js';
import { AnswerLimit } from '../../../../gateway/store/postgres/connections/answer-limit.js';
import { WatchedClient, withClient } from '../../../../gateway/store/postgres/connections/connections.js';
import { connectedSlots } from '../../../../gateway/store/postgres/node-claim.js';
import { openPostgresStore } from '../../../../gateway/store/postgres/open-postgres-store.js';
import { FaultProxy } from '../../../helpers/chaos/fault-proxy.js';
import { realDelay } from '../../../helpers/clocks/change-signal.js';
import { postgresMissing } from '../../../helpers/store/postgres/server.js';
import { TestDatabases } from '../../../helpers/store/postgres/test-database.js';
import { type Teardown, tempFolder } from '../../../helpers/store/temp-folder.js';

t.setTimeout(170_000);
const options = { skip: postgresMissing ?? false };
const databases = new TestDatabases(t);
/** Short, so that the test is too; far longer than the answer to `SELECT 1`. */
const SHORT_LIMIT_MS = 300;
/** How often the test looks for a beat, ms; a gateway beats each second. */
const LOOK_INTERVAL = 50;
/** After so many beats, a second apart, a gateway may end the epochs of others. */
const STEADY_BEATS = 7;

/** A new database, a proxy before it, and the URL at the proxy. */
async function behindProxy(test: Teardown): Promise<{ direct: URL; url: string; proxy: FaultProxy }> {
  const direct = new URL(await databases.urlOf(tempFolder(test)));
  const port = Number(direct.port);
  const proxy = await FaultProxy.start(test, () => port);
  const url = new URL(direct);
  url.port = String(proxy.port);
  return { direct, url: url.href, proxy };
}

/** What a query failed with; undefined if it did not. */
function failureOf(query: Promise<unknown>): Promise<unknown> {
  return query.then(
    () => undefined,
    (error: unknown) => error,
  );
}

t.test('a query without an answer fails, and the pool replaces its connection', options, async (t) => {
  const { url, proxy } = await behindProxy(t);
  const limit = new AnswerLimit(SHORT_LIMIT_MS, () => undefined);
  let checks = 0;
  const check = async (client: pg.ClientBase): Promise<void> => {
    checks += 1;
    await client.query('SELECT 1');
  };
  const onConnect = (client: pg.ClientBase): Promise<void> => limit.check(client, () => check(client));
  const pool = new pg.Pool({ connectionString: url, max: 1, connectionTimeoutMillis: SHORT_LIMIT_MS, onConnect });
  pool.on('error', () => undefined);
  limit.watch(pool);
  t.teardown(() => pool.end());
  const processId = async (): Promise<unknown> => (await pool.query('SELECT pg_backend_pid() AS id')).rows[0].id;
  const first = await processId();
  t.equal(await processId(), first);

  proxy.silence();
  t.equal(failureKind(await failureOf(pool.query('SELECT 1'))), 'away');
  t.not(await processId(), first, 'the next query has a new connection');
  t.equal(checks, 2);

  // The query of the check itself.
  proxy.cut();
  let isOver = false;
  const silentAtOnce = failureOf(pool.query('SELECT 1')).finally(() => {
    isOver = true;
  });
  for (; !isOver; await realDelay(1)) proxy.silence();
  t.equal(failureKind(await silentAtOnce), 'away');
  t.type(await processId(), 'number');
});

t.test('a connection that is idle may be silent, and one whose query lasts is not silent', options, async (t) => {
  const { url } = await behindProxy(t);
  const limit = new AnswerLimit(SHORT_LIMIT_MS, () => t.fail('nothing is silent'));
  const onConnect = (client: pg.ClientBase): Promise<void> => limit.check(client, async () => undefined);
  const [pool, other] = [url, url].map((connectionString) => new pg.Pool({ connectionString, max: 1, onConnect }));
  if (pool === undefined || other === undefined) throw new Error('two pools');
  limit.watch(pool);
  t.teardown(() => Promise.all([pool.end(), other.end()]));
  const processId = async (): Promise<unknown> => (await pool.query('SELECT pg_backend_pid() AS id')).rows[0].id;
  const first = await processId();
  // The database measures the time; `other` has no limit.
  await other.query('SELECT pg_sleep($1)', [(2 * SHORT_LIMIT_MS) / 1000]);
  t.equal(await processId(), first);
  // Rows come now and then, for longer than the limit in all.
  const { rows } = await pool.query(
    `SELECT pg_sleep(0.15), repeat('x', 100000) FROM generate_series(1, ${Math.ceil(SHORT_LIMIT_MS / 100)})`,
  );
  t.ok(rows.length > 2);
  t.equal(await processId(), first);
});

t.test('a gateway whose connections go silent goes on under its epoch', options, async (t) => {
  const { direct, url, proxy } = await behindProxy(t);
  const one = await openPostgresStore(url, { isShared: true });
  const other = await openPostgresStore(direct.href, { isShared: true });
  t.teardown(async () => await Promise.all([one.close(), other.close()]));
  const name = direct.pathname.slice(1);
  const server = await databases.server();
  const readBeat = async (): Promise<Record<string, unknown> | undefined> =>
    (
      await server.query(
        name,
        `SELECT n.epoch, n.released, b.at::text FROM node n JOIN node_beat b ON b.slot = n.slot WHERE n.slot = $1`,
        [one.ownership.slot],
      )
    )[0];
  const before = await readBeat();

  // Leaves an idle connection to the pool: the next read must not open a new one, which would work.
  await one.listMerchants();
  proxy.silence();
  // Both connections of its own are silent, and those for reads: it finds each out by itself.
  const read = failureOf(one.listMerchants());
  let beat = await readBeat();
  const changes = new Set<unknown>();
  // A beat may have been on its way.
  while (changes.size < 3 && beat?.epoch === before?.epoch) {
    changes.add(beat?.at);
    await realDelay(LOOK_INTERVAL);
    beat = await readBeat();
  }
  t.match(beat, { epoch: before?.epoch, released: false }, 'the other gateway has not ended its epoch');
  t.equal(failureKind(await read), 'away');
  t.same(await one.listMerchants(), []);
  await one.addMerchant('Amber', 5);
  t.match(await other.listMerchants(), [{ name: 'Amber' }]);
});

t.test('a gateway that the server has lost is ended before one that only says nothing', options, async (t) => {
  const { direct, url, proxy } = await behindProxy(t);
  const silentProxy = await FaultProxy.start(t, () => Number(direct.port));
  const silentUrl = new URL(url);
  silentUrl.port = String(silentProxy.port);
  const lost = await openPostgresStore(url, { isShared: true });
  const silent = await openPostgresStore(silentUrl.href, { isShared: true });
  const other = await openPostgresStore(direct.href, { isShared: true });
  t.teardown(async () => await Promise.all([lost.close(), silent.close(), other.close()]));
  const server = await databases.server();
  const query = (text: string): Promise<Record<string, unknown>[]> => server.query(direct.pathname.slice(1), text);
  const readReleased = async (): Promise<number[]> =>
    (await query('SELECT slot FROM node WHERE released AND slot > 0 ORDER BY slot')).map(({ slot }) => Number(slot));

  // The other judges nobody before its own beats have come for five seconds.
  const beats = new Set<unknown>();
  for (; beats.size <= STEADY_BEATS; await realDelay(LOOK_INTERVAL)) {
    const [beat] = await query(`SELECT at::text FROM node_beat WHERE slot = ${other.ownership.slot}`);
    beats.add(beat?.at);
  }
  for (const each of [proxy, silentProxy]) each.isRefusing = true;
  silentProxy.silence();
  proxy.cut();
  let released = await readReleased();
  for (; released.length === 0; released = await readReleased()) await realDelay(LOOK_INTERVAL);
  t.same(released, [lost.ownership.slot]);
  for (; released.length === 1; released = await readReleased()) await realDelay(LOOK_INTERVAL);
  t.same(released, [lost.ownership.slot, silent.ownership.slot], 'also the other one, which the server still has');
});

t.test(
  'a gateway that starts does not hide from others that the former one of its slot is lost',
  options,
  async (t) => {
    const { direct, url, proxy } = await behindProxy(t);
    const lost = await openPostgresStore(url, { isShared: true });
    t.teardown(() => lost.close());
    const server = await databases.server();
    const readBeat = async (): Promise<unknown> =>
      (
        await server.query(direct.pathname.slice(1), 'SELECT at::text FROM node_beat WHERE slot = $1', [
          lost.ownership.slot,
        ])
      )[0]?.at;
    proxy.isRefusing = true;
    proxy.cut();
    const lastBeat = await readBeat();
    let isOpen = false;
    const opening = openPostgresStore(direct.href, { isShared: true }).finally(() => {
      isOpen = true;
    });
    const looks: boolean[] = [];
    await withClient(direct.href, async (client) => {
      for (; !isOpen && (await readBeat()) === lastBeat; await realDelay(LOOK_INTERVAL))
        looks.push((await connectedSlots(new WatchedClient(client))).has(lost.ownership.slot));
    });
    const store = await opening;
    t.teardown(() => store.close());
    t.equal(store.ownership.slot, lost.ownership.slot);
    t.ok(looks.length > 10);
    // It holds the slot's lock for a moment before and after it examines the slot.
    t.ok(looks.filter((isConnected) => isConnected).length <= 2, `${looks}`);
  },
);
