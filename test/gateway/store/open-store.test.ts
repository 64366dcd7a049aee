/** The engine is chosen by the scheme of the store's URL (gateway/store/open-store.ts). */
import path from 'node:path';
import t from 'tap';
import { openStore, sqliteUrl } from '../../../gateway/store/open-store.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

t.test('sqlite: opens the store of a data folder, also with special characters in its path', async (t) => {
  const folder = path.join(tempFolder(t), 'a folder: 100 %#?');
  const store = await openStore(sqliteUrl(folder));
  t.equal(store.description, `SQLite, ${path.join(folder, 'lockgate.sqlite')}`);
  await store.close();
  const reopened = await openStore(sqliteUrl(folder).replace('sqlite:', 'SQLite:'));
  t.same(await reopened.listMerchants(), [], 'the scheme may be in capitals');
  await reopened.close();
});

t.test('any other URL is refused; the error says what is expected and shows no password', async (t) => {
  const refusals: Readonly<Record<string, RegExp>> = {
    'mysql://joe:s3cret@db/locks': /there is no engine for "mysql:"; expected .*sqlite:DATA_FOLDER/,
    './data': /it has no scheme; expected/,
    '': /it has no scheme; expected/,
    'sqlite:': /nothing follows its scheme; expected/,
  };
  for (const [url, message] of Object.entries(refusals)) {
    const error = await openStore(url).catch((thrown: unknown) => thrown as Error);
    t.match(error, { code: 'input-store', message }, url);
    t.notMatch(String(error), 's3cret');
  }
});
