/**
 * Tests the systemd unit in deploy/ without systemd as the init system: systemd's own checks of the file, its score,
 * and a gateway that gets the unit's settings and is refused the system calls that the unit forbids.
 */
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import path from 'node:path';
import t from 'tap';
import { STOP_LIMIT } from '../../gateway/graceful-stop.js';
import { SETTINGS } from '../../gateway/settings.js';
import { LOCKGATE, Program } from '../helpers/cli/program.js';
import { directiveValues, forbiddenCalls, systemdAnalyze } from '../helpers/deploy/unit-file.js';
import { root } from '../helpers/house/our-files.js';
import { type Teardown, tempFolder } from '../helpers/store/temp-folder.js';

/** Where the unit expects lockgate. */
const INSTALLED = '/opt/lockgate';
/**
 * The limit for systemd's rating of the unit, in tenths: from 0, the best, to 100. Each version of systemd rates a
 * little differently, so there is some room above the present rating.
 */
const MAX_EXPOSURE_TENTHS = 14;

const read = (name: string): string => readFileSync(path.join(root, 'deploy', name), 'utf8');
const unit = read('lockgate.service');
/** What keeps secrets where only root reads them. */
const DROP_INS = ['store-key.conf', 'store-password.conf'];
const dropIns = DROP_INS.map(read);
const NO_SYSTEMD = systemdAnalyze('--version') === undefined ? 'systemd-analyze is missing' : false;
/** A short trace, which shows whether strace may trace processes here: containers often forbid it. */
const tracedRun = spawnSync('strace', ['--seccomp-bpf', '-f', '-qq', '-e', 'trace=?mount', process.execPath, '-v']);
const NO_STRACE = NO_SYSTEMD || (tracedRun.status === 0 ? false : 'strace is missing or may not trace');

/** The unit and its drop-ins in a folder, with the paths of this machine. */
function unitFolder(test: Teardown, text = unit): string {
  const folder = tempFolder(test);
  const file = path.join(folder, 'lockgate.service');
  writeFileSync(file, text.replace('/usr/bin/node', process.execPath));
  mkdirSync(`${file}.d`);
  DROP_INS.forEach((name, index) => void writeFileSync(path.join(`${file}.d`, name), String(dropIns[index])));
  return file;
}

t.test('systemd accepts the unit and its drop-ins', { skip: NO_SYSTEMD }, async (t) => {
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
  const variables = [unit, ...dropIns].flatMap((text) => directiveValues(text, 'Environment'));
  const names = SETTINGS.map(({ environment }): string => environment);
  t.same(
    variables.map((variable) => variable.split('=')[0]).filter((name) => !names.includes(name ?? '')),
    ['PGPASSFILE'],
    'and a variable that PostgreSQL’s clients know',
  );
  t.equal(variables.length, 3);
  for (const text of dropIns) {
    const [name, file] = (directiveValues(text, 'LoadCredential')[0] ?? '').split(':');
    t.match(file, /^\/etc\/lockgate\//);
    t.match(directiveValues(text, 'Environment')[0], new RegExp(`=%d/${name}$`));
  }
  t.ok(Number(directiveValues(unit, 'TimeoutStopSec')[0]) > STOP_LIMIT / 1000);
});

t.test('systemd hears from the gateway, and has time for a long start', async (t) => {
  const value = (name: string): string | undefined => directiveValues(unit, name)[0];
  t.equal(value('Type'), 'notify');
  t.equal(value('NotifyAccess'), 'all', 'another process of the unit sends the messages');
  t.equal(value('TimeoutStartSec'), 'infinity', 'upgrades of large stores take minutes');
  t.ok(Number(value('WatchdogSec')) >= 30, 'a machine that is busy for a while is no reason to kill the gateway');
});

/** A server that asks its first client for a password, as PostgreSQL does, and refuses what it gets. */
async function passwordServer(test: Teardown): Promise<{ port: number; password: Promise<string> }> {
  const request = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]);
  let answered = (_password: string): void => undefined;
  const password = new Promise<string>((resolve) => {
    answered = resolve;
  });
  const server = createServer((socket) => {
    socket
      .on('error', () => undefined)
      .on('data', (bytes) => {
        if (bytes[0] !== 0x70) return void socket.write(request);
        answered(bytes.toString('utf8', 5, bytes.length - 1));
        socket.destroy();
      });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.teardown(() => void server.close());
  return { port: (server.address() as AddressInfo).port, password };
}

t.test('the password of a store in PostgreSQL comes from the file of its credential', async (t) => {
  const { port, password } = await passwordServer(t);
  const [variable = ''] = directiveValues(read('store-password.conf'), 'Environment');
  const file = path.join(tempFolder(t), 'store-password');
  writeFileSync(file, `127.0.0.1:${port}:locks:lockgate:a secret\n`, { mode: 0o400 });
  const gateway = new Program(t, process.execPath, [LOCKGATE, 'serve'], {
    LOCKGATE_DATA: tempFolder(t),
    LOCKGATE_STORE: `postgres://lockgate@127.0.0.1:${port}/locks`,
    [String(variable.split('=')[0])]: file,
  });
  t.equal(await password, 'a secret');
  gateway.kill('SIGKILL');
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
