/**
 * What makes commits to PostgreSQL safe: no part of the statement writes if the gateway's claim to its slot (the number
 * under which it writes) has ended, which the statement's fence checks by epoch and session; whether a commit in doubt
 * was stored is found out; connections that would not be durable are refused.
 */
import t from 'tap';
import { Connections, findServer } from '../../../../gateway/store/postgres/connections/connections.js';
import { CommitBatch } from '../../../../gateway/store/postgres/log/commit-batch.js';
import { commitParts, statementOf } from '../../../../gateway/store/postgres/log/commit-statement.js';
import { openPostgresStore } from '../../../../gateway/store/postgres/open-postgres-store.js';
import { numbered } from '../../../../gateway/store/postgres/sql.js';
import type { Finding } from '../../../../proto/power/judge/event.js';
import { STATEMENT_CHANGES } from '../../../helpers/durability/sql-sabotage.js';
import { testMac } from '../../../helpers/gateway/test-gateway.js';
import { postgresMissing } from '../../../helpers/store/postgres/server.js';
import { TestDatabases } from '../../../helpers/store/postgres/test-database.js';
import { tempFolder } from '../../../helpers/store/temp-folder.js';
import { commit, uplink } from '../contract/contract-store.js';

t.setTimeout(170_000);
const options = { skip: postgresMissing ?? false };
const databases = new TestDatabases(t);

/** A batch with something for each part of the statement. Kinds, codes and texts in it are arbitrary. */
function fullBatch(): CommitBatch {
  const batch = new CommitBatch();
  const about = { credential: 1, boot: 1, sequence: 1 };
  const mac = 'A4:C1:38:00:00:01';
  const finding: Finding = { rule: 'clock-ahead', severity: 'warning', message: 'm', mac, about, atMs: 7 };
  // Ids as a gateway's clock gives them, and the next id of the same slot.
  batch.addUplink(2 ** 50, uplink(1));
  batch.addEvent(2 ** 50 + 64, { deviceId: 1, merchantId: 1, kind: 5, atMs: 7, content: '{}', stagedId: 1 });
  batch.states.set(1, { state: '{}', throughId: 1 });
  batch.lockEvents.push({
    item: { type: 'lock-event', deviceId: 1, atMs: 1, event: { event: 'connect' } },
    afterId: 0,
  });
  batch.quarantined.push({
    ...{ type: 'quarantine', deviceId: 1, credentialId: 1, receivedAtMs: 1, code: 'c', message: 'm' },
    bytes: Buffer.from('x'),
  });
  batch.addJudged({
    ...commit(),
    judged: [{ deviceId: 1, withdrawn: [{ rule: finding.rule, mac, about }], findings: [] }],
  });
  batch.findings.push({ deviceId: 1, finding: { ...finding, rule: 'period-overdue' } });
  batch.addCommand({ type: 'sent', id: 1, atMs: 9 });
  return batch;
}

t.test('each sabotage of statements still changes a commit', async (t) => {
  // One that no longer fits the text would leave the gateway as it is, and the tests that use it would show nothing.
  const { text } = numbered(statementOf(commitParts(fullBatch(), 1)));
  for (const [name, change] of Object.entries(STATEMENT_CHANGES)) t.not(change(text), text, name);
});

/** Columns with the number of rows of each table that a commit writes. */
const COUNTS = ['commit_mark', 'uplink', 'staged_event', 'device_state', 'lock_event', 'quarantine', 'finding']
  .map((table) => `(SELECT count(*) FROM ${table}) AS ${table}`)
  .join(', ');

t.test('each part of a commit, alone and in the whole, writes nothing under an ended epoch', options, async (t) => {
  const folder = tempFolder(t);
  const store = await databases.open(folder);
  t.teardown(() => store.close());
  await store.addMerchant('Amber', 5);
  await store.addDevice({ mac: testMac(), merchant: 'Amber', simulated: true, secretHash: Buffer.alloc(32), nowMs: 6 });
  const times = { createdAtMs: 10, notBeforeMs: null, expiresAtMs: 99, askedBy: 'ann' };
  await store.commands.add([{ deviceId: 1, merchantId: 1, command: { type: 'reset' }, ...times }]);
  const about = { credential: 1, boot: 1, sequence: 1 };
  const finding = { rule: 'clock-ahead', severity: 'warning', message: 'm', mac: testMac(), about, atMs: 7 } as const;
  await store.append({ ...commit(), judged: [{ deviceId: 1, withdrawn: [], findings: [finding] }] });
  const url = await databases.urlOf(folder);
  const connections = new Connections(url, await findServer(url));
  t.teardown(() => connections.close());
  const { read } = connections;
  await read.run(`INSERT INTO staged_event (device_id, merchant_id, kind, at_ms, content) VALUES (1, 1, 4, 1, '{}')`);
  const state = async () => await read.get(`SELECT ${COUNTS}, (SELECT state FROM command) AS command`);
  // The table node has a row for each claimed slot.
  const node = await read.get<{ slot: number; epoch: number; session: number }>('SELECT * FROM node');
  const before = await state();
  const commitNumber = 1_000;
  const parts = commitParts(fullBatch(), commitNumber);
  t.equal(parts.length, 9, 'the batch has every part');
  const wrongClaims = [{ epoch: (node?.epoch ?? 0) + 1 }, { session: (node?.session ?? 0) + 1 }, { slot: 9 }];
  // The part of uplinks (u) refers to that of staged events, so these two are run together.
  for (const claim of wrongClaims)
    for (const chosen of [...parts.map((part) => (part.name === 'u' ? parts.slice(1, 3) : [part])), parts]) {
      const values = Object.assign({ ...node, ...claim }, ...chosen.map((part) => part.values)) as object;
      t.match(await read.get(statementOf(chosen), { ...values }), { fence: 0 });
      t.same(await state(), before, `${chosen.map(({ name }) => name).join()} with a wrong ${Object.keys(claim)[0]}`);
    }
  const values = Object.assign({ ...node }, ...parts.map((part) => part.values)) as object;
  t.match(
    await read.get(statementOf(parts), { ...values }),
    { fence: 1, uplinks: 2 },
    'the true claim writes them all',
  );
  t.notSame(await state(), before);
});

t.test('a gateway whose slot was taken acknowledges nothing', options, async (t) => {
  const folder = tempFolder(t);
  const store = await databases.open(folder);
  t.teardown(() => store.close().catch(() => undefined));
  await store.append(commit(uplink(1)));
  const server = await databases.server();
  const name = new URL(await databases.urlOf(folder)).pathname.slice(1);
  await server.query(name, 'UPDATE node SET epoch = 7');
  await t.rejects(store.append(commit(uplink(2))), { name: 'StoreFailure' });
  await t.rejects(store.append(commit()), { name: 'StoreFailure' }, 'nor a commit without uplinks');
  const isFenced = { name: 'StoreFailure', kind: 'fenced' };
  await t.rejects(store.append(commit()), isFenced, 'so that the process ends');
  await t.rejects(store.addMerchant('Basil', 1), isFenced);
  await t.rejects(store.writeMetadata('a', 'b'), isFenced);
  t.same(await server.query(name, 'SELECT count(*)::int AS count FROM uplink'), [{ count: 1 }]);
});

t.test('a commit whose connection was cut is stored once, and the next ones too', options, async (t) => {
  const folder = tempFolder(t);
  const store = await databases.open(folder);
  t.teardown(() => store.close());
  const server = await databases.server();
  const name = new URL(await databases.urlOf(folder)).pathname.slice(1);
  // A commit's statement begins with `WITH f AS`.
  for (let sequence = 1; sequence <= 12; sequence += 1) {
    const stored = store.append(commit(uplink(sequence)));
    const cut = server.query(
      'postgres',
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1 AND query LIKE 'WITH f AS%'`,
      [name],
    );
    await Promise.all([stored, cut]);
  }
  const rows = await server.query(name, 'SELECT sequence::int AS sequence FROM uplink ORDER BY id');
  t.same(
    rows.map(({ sequence }) => sequence),
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
  );
});

t.test(
  'a second gateway, and a newer database, are refused; a default that loses commits is not used',
  options,
  async (t) => {
    const folder = tempFolder(t);
    const store = await databases.open(folder);
    const url = await databases.urlOf(folder);
    await t.rejects(openPostgresStore(url), { code: 'data-in-use' });
    await store.close();
    const server = await databases.server();
    const name = new URL(url).pathname.slice(1);
    await server.query(name, `ALTER DATABASE ${name} SET synchronous_commit = off`);
    const reopened = await openPostgresStore(url);
    await t.resolves(findServer(url), 'the store’s connections set it on, and are refused if it is not');
    await reopened.close();
    await server.query(name, `INSERT INTO lockgate_migration (name) VALUES ('9999-later')`);
    await t.rejects(openPostgresStore(url), { code: 'store-newer' });
  },
);
