// Folders for temporary files, and what users read where none can be made.
import { spawnSync } from 'node:child_process';
import { rmSync, statSync } from 'node:fs';
import t from 'tap';
import { makeTemporaryFolder } from '../../../gateway/temporary-folder.js';
import { LOCKGATE } from '../../helpers/cli/program.js';

const MISSING = '/nonexistent/tmp';

t.test('the folder is readable by this user only', (t) => {
  const folder = makeTemporaryFolder('test');
  t.teardown(() => rmSync(folder, { recursive: true }));
  t.match(folder, /lockgate-test-/);
  if (process.platform !== 'win32') t.equal(statSync(folder).mode & 0o777, 0o700);
  t.end();
});

t.test('a command that can’t make one names the place and the variable', (t) => {
  const { status, stderr } = spawnSync(process.execPath, [LOCKGATE, 'trace', 'shrink', '-', '--rule', 'boot-back'], {
    env: { ...process.env, TMPDIR: MISSING },
    input: '',
    encoding: 'utf8',
  });
  t.equal(status, 2);
  t.equal(
    stderr,
    `lockgate: can't write temporary files to ${MISSING} (ENOENT): expected a folder with room that this user may ` +
      'write to; the variable TMPDIR names another\n',
  );
  t.end();
});
