/**
 * Tests the systemd unit in deploy/ without systemd as the init system: systemd's own checks of the file, its score,
 * and a gateway that gets the unit's settings and is refused the system calls that the unit forbids.
 */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { STOP_LIMIT } from '../../gateway/graceful-stop.js';
import { SETTINGS } from '../../gateway/settings.js';
import { Program } from '../helpers/cli/program.js';
import { directiveValues, forbiddenCalls, systemdAnalyze } from '../helpers/deploy/unit-file.js';
import { root } from '../helpers/house/our-files.js';
import { type Teardown, tempFolder } from '../helpers/store/temp-folder.js';

/** Where the unit expects lockgate. */
const INSTALLED = '/opt/lockgate';
/**
 * The limit for systemd's rating of the unit, in tenths: from 0, the best, to 100. Each version of systemd rates a
 * little differently, so there is some room above the present rating.
 */
const MAX_EXPOSURE_TENTHS = 12;

const read = (name: string): string => readFileSync(path.join(root, 'deploy', name), 'utf8');
const unit = read('lockgate.service');
const dropIn = read('store-key.conf');
const NO_SYSTEMD = systemdAnalyze('--version') === undefined ? 'systemd-analyze is missing' : false;
/** A short trace, which shows whether strace may trace processes here: containers often forbid it. */
const tracedRun = spawnSync('strace', ['--seccomp-bpf', '-f', '-qq', '-e', 'trace=?mount', process.execPath, '-v']);
const NO_STRACE = NO_SYSTEMD || (tracedRun.status === 0 ? false : 'strace is missing or may not trace');

/** The unit and its drop-in in a folder, with the paths of this machine. */
function unitFolder(test: Teardown, text = unit): string {
  const folder = tempFolder(test);
  const file = path.join(folder, 'lockgate.service');
  writeFileSync(file, text.replace('/usr/bin/node', process.execPath));
  mkdirSync(`${file}.d`);
  writeFileSync(path.join(`${file}.d`, 'store-key.conf'), dropIn);
  return file;
}

t.test('systemd accepts the unit and its drop-in', { skip: NO_SYSTEMD }, async (t) => {
  t.same(systemdAnalyze('verify', '--man=no', '--recursive-errors=no', unitFolder(t)), { status: 0, output: '' });
  const misspelt = systemdAnalyze('verify', unitFolder(t, unit.replace('NoNewPrivileges', 'NoMorePrivileges')));
  t.match(misspelt?.output, /NoMorePrivileges/, 'a misspelt directive is found');
});

t.test('the unit has little exposure', { skip: NO_SYSTEMD }, async (t) => {
  const security = (text: string) =>
    systemdAnalyze('security', '--offline=true', `--threshold=${MAX_EXPOSURE_TENTHS}`, unitFolder(t, text));
  t.match(security(unit), { status: 0, output: /Overall exposure level for lockgate\.service: \d\.\d OK/ });
  t.equal(security(unit.replace('NoNewPrivileges=yes', 'NoNewPrivileges=no'))?.status, 1, 'a weaker unit fails');
});

t.test('the unit sets settings that exist, and gives the gateway time to stop', async (t) => {
  const variables = [unit, dropIn].flatMap((text) => directiveValues(text, 'Environment'));
  const names = SETTINGS.map(({ environment }): string => environment);
  t.same(
    variables.map((variable) => variable.split('=')[0]).filter((name) => !names.includes(name ?? '')),
    [],
  );
  t.equal(variables.length, 2);
  t.ok(Number(directiveValues(unit, 'TimeoutStopSec')[0]) > STOP_LIMIT / 1000);
});

t.test(
  'a gateway runs without the forbidden system calls, with a key that it can only read',
  {
    skip: NO_STRACE,
  },
  async (t) => {
    const folder = tempFolder(t);
    const [command = ''] = directiveValues(unit, 'ExecStart');
    const [node, ...args] = command.replace(INSTALLED, root).split(' ');
    t.equal(node, '/usr/bin/node');
    const forbidden = forbiddenCalls(directiveValues(unit, 'SystemCallFilter'));
    t.ok(forbidden.includes('mount') && forbidden.includes('chown') && !forbidden.includes('read'));
    const calls = forbidden.map((call) => `?${call}`).join(',');
    const keyFile = path.join(folder, 'store-key');
    writeFileSync(keyFile, randomBytes(32).toString('base64'), { mode: 0o400 });
    // -D: the gateway is the child of this process, so that signals reach it.
    const trace = ['-D', '--seccomp-bpf', '-f', '-qq', '-o', path.join(folder, 'calls')];
    const refusal = ['-e', `trace=${calls}`, '-e', `inject=${calls}:error=EPERM`];
    const gateway = new Program(t, 'strace', [...trace, ...refusal, process.execPath, ...args], {
      LOCKGATE_DATA: path.join(folder, 'data'),
      LOCKGATE_KEY_FILE: keyFile,
      ...Object.fromEntries(['MQTT', 'HTTP', 'OPERATOR'].map((name) => [`LOCKGATE_${name}_PORT`, '0'])),
    });
    const address = /http:\S+/.exec(await gateway.waitForLine(/merchants/))?.[0];
    t.equal((await fetch(`${address}/readyz`)).status, 200);
    const [reload = ''] = directiveValues(unit, 'ExecReload');
    t.match(reload, / -HUP \$MAINPID$/);
    gateway.kill('SIGHUP');
    // Without a TLS certificate there is nothing to reread, and the gateway goes on.
    await gateway.waitForLine(/nothing-to-read/, 'stderr');
    gateway.kill('SIGTERM');
    t.same(await gateway.waitForExit(), { code: 0, signal: null });
  },
);
