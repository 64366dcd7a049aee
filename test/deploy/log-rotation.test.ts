/** deploy/lockgate.logrotate rotates the log of a running gateway: nothing is torn, and the gateway goes on writing. */
import { spawnSync } from 'node:child_process';
import { readFileSync, watch, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { LOCKGATE, Program } from '../helpers/cli/program.js';
import { ChangeSignal } from '../helpers/clocks/change-signal.js';
import { root } from '../helpers/house/our-files.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

/** Its folder is often missing in the path of users who are not root. */
const PROGRAM = ['logrotate', '/usr/sbin/logrotate'].find((name) => !spawnSync(name, ['--version']).error);
const skip = PROGRAM === undefined && 'logrotate is not installed (Debian: logrotate)';

/** The complete lines of a log in JSON. @throws SyntaxError if one begins in the middle */
const linesOf = (file: string): { readonly msg: string }[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));

t.test('a rotation leaves whole lines behind, and the next ones come into the emptied file', { skip }, async (t) => {
  const folder = tempFolder(t);
  const log = path.join(folder, 'lockgate.log');
  const ports = ['--mqtt-port', '0', '--http-port', '0', '--operator-port', '0'];
  const serve = [LOCKGATE, 'serve', '--data', tempFolder(t), '--log-format', 'json', ...ports];
  const gateway = new Program(t, 'sh', ['-c', `exec "$0" "$@" 2>> '${log}'`, process.execPath, ...serve]);
  await gateway.waitForLine(/Next:/);
  // The log is written in the background, so its first lines may come later than that.
  const changed = new ChangeSignal();
  const watcher = watch(log, () => changed.notify());
  await changed.waitUntil(
    () => linesOf(log).length > 0,
    60,
    () => 'a line in the log',
  );
  watcher.close();
  const before = linesOf(log);
  const rules = readFileSync(path.join(root, 'deploy/lockgate.logrotate'), 'utf8');
  const config = path.join(folder, 'lockgate.logrotate');
  writeFileSync(config, rules.replaceAll('/var/log/lockgate/lockgate.log', log), { mode: 0o600 });
  const { status, stderr } = spawnSync(String(PROGRAM), ['--force', '--state', path.join(folder, 'state'), config]);
  t.equal(status, 0, String(stderr));
  t.same(linesOf(`${log}.1`).slice(0, before.length), before);
  t.match(readFileSync(`${log}.1`, 'utf8'), /\n$/, 'the last line is whole');
  gateway.kill('SIGTERM');
  t.same(await gateway.waitForExit(), { code: 0, signal: null });
  const after = linesOf(log);
  t.ok(after.length > 0, 'the gateway has logged its end');
  t.notMatch(readFileSync(log, 'utf8'), /\0/, 'it writes at the end of the file, not where it was');
});
