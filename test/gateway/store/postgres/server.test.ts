/** The tests' own PostgreSQL: durable as in production, and gone afterwards. */
import { existsSync } from 'node:fs';
import t from 'tap';
import { postgresMissing, startPostgres } from '../../../helpers/store/postgres/server.js';

t.test(
  'a server keeps its promises about the disk, and ends with the test',
  { skip: postgresMissing ?? false },
  async (t) => {
    let pid = 0;
    let folder = '';
    await t.test('runs', async (t) => {
      const server = await startPostgres(t);
      pid = server.pid;
      const settings = await server.query(
        'postgres',
        `SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS synchronous_commit,
         current_setting('data_directory') AS folder, version() AS version`,
      );
      folder = String(settings[0]?.folder);
      t.match(settings, [{ fsync: 'on', synchronous_commit: 'on', version: /^PostgreSQL 1[5-9]/ }]);
      const url = await server.createDatabase();
      await server.query('lockgate_1', 'CREATE TABLE kept (id int)');
      t.equal(url, server.url('lockgate_1'));
      // A copy of the first database.
      t.equal(await server.createDatabase('lockgate_1'), server.url('lockgate_2'));
      t.same(await server.query('lockgate_2', 'SELECT count(*)::int AS count FROM kept'), [{ count: 0 }]);
    });
    t.throws(() => process.kill(pid, 0), { code: 'ESRCH' }, 'the process is gone');
    t.notOk(existsSync(folder), 'the folder is gone');
  },
);
