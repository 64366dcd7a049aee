/** The partitions of the log in PostgreSQL, one for each day, which a start makes for some days ahead. */
import t from 'tap';
import { postgresMissing } from '../../../helpers/store/postgres/server.js';
import { TestDatabases } from '../../../helpers/store/postgres/test-database.js';
import { tempFolder } from '../../../helpers/store/temp-folder.js';
import { commit, HASH, MAC, uplink } from '../contract/contract-store.js';

t.setTimeout(170_000);
const options = { skip: postgresMissing ?? false };
const databases = new TestDatabases(t);

const PARTITIONS = `SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  WHERE i.inhparent = 'uplink'::regclass AND c.relname <> 'uplink_default' ORDER BY c.relname`;

t.test('a gateway that ran on past its last partition can be started again on the same day', options, async (t) => {
  const folder = tempFolder(t);
  const server = await databases.server();
  const name = new URL(await databases.urlOf(folder)).pathname.slice(1);
  const first = await databases.open(folder);
  await first.addMerchant('Amber', 5);
  await first.addDevice({ mac: MAC, merchant: 'Amber', simulated: true, secretHash: HASH, nowMs: 6 });
  // As if the days for which it has partitions had passed.
  const days = (await server.query(name, PARTITIONS)).map((row) => String(row.name));
  t.ok(days.length > 0);
  await server.query(name, `DROP TABLE ${days.join(', ')}`);
  await first.append(commit(uplink(1)));
  t.same(await server.query(name, 'SELECT count(*)::int AS count FROM uplink_default'), [{ count: 1 }]);
  await first.close();

  const second = await databases.open(folder);
  t.teardown(() => second.close());
  const made = (await server.query(name, PARTITIONS)).map((row) => String(row.name));
  t.same(made, days.slice(1), 'the days after this one have partitions again');
  await second.append(commit(uplink(2)));
  const stored = await second.readUplinks(1, 10);
  t.same(
    stored.map(({ sequence }) => sequence),
    [2, 1],
  );
});
