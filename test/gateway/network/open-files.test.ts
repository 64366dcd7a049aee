/** The number of open files and connections, which `/status` and the metrics show. */
import { closeSync, openSync, readdirSync } from 'node:fs';
import t from 'tap';
import { countOpenFiles } from '../../../gateway/network/descriptor-limit.js';

const skip = process.platform === 'linux' ? false : 'only Linux lists open files';

t.test('every open file counts, and the counting itself does not', { skip }, (t) => {
  // Listing the folder takes a descriptor of its own.
  const listed = (): number => readdirSync('/proc/self/fd').length - 1;
  const before = listed();
  t.equal(countOpenFiles(), before);
  const files = Array.from({ length: 50 }, () => openSync('/dev/null', 'r'));
  t.equal(countOpenFiles(), before + files.length);
  for (const file of files) closeSync(file);
  t.equal(countOpenFiles(), before);
  t.end();
});
