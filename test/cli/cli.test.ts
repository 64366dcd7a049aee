/** The command line as a separate process against a real gateway: output, errors and exit codes. */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { SETTING_FLAGS } from '../../cli/commands/serve/serve.js';
import { eventLine } from '../../cli/commands/tail/event-line.js';
import { type Column, tableLines } from '../../cli/terminal/table.js';
import { SETTINGS } from '../../gateway/settings.js';
import { afterThisTurn } from '../../proto/clock.js';
import { runCommand } from '../helpers/cli/command-line.js';
import { MERCHANT, openGateway, testGateway, testMac } from '../helpers/gateway/test-gateway.js';
import { connectedLock } from '../helpers/mqtt/test-lock.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const MAIN = path.join(ROOT, 'dist/program/main.js');

// biome-ignore lint/suspicious/noControlCharactersInRegex: the test looks for control characters
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f-\u009f]/;

/** The exit code of a process that has ended, and its output. */
interface ProcessEnd {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `lockgate` to its end. */
function lockgate(args: readonly string[], environment: Record<string, string> = {}): Promise<ProcessEnd> {
  const child = spawn(process.execPath, [MAIN, ...args], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, LOCKGATE_DATA: '/nonexistent', ...environment },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => (stdout += chunk));
  child.stderr.on('data', (chunk) => (stderr += chunk));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, stdout, stderr })));
}

t.test('merchant, device and webhook can be added and listed, as text and as JSON', async (t) => {
  const folder = tempFolder(t);
  const gateway = await openGateway(t, folder);
  const environment = { LOCKGATE_DATA: folder, LOCKGATE_GATEWAY: `http://127.0.0.1:${gateway.operatorPort}` };
  t.match(await lockgate(['merchant', 'list'], environment), { code: 0, stdout: '', stderr: /no merchant yet/ });
  t.match(await lockgate(['device', 'add', 'A4C138F0E1D2'], environment), {
    code: 2,
    stderr: /which merchant\? there is none/,
  });
  t.match(await lockgate(['merchant', 'add', 'Amber Bikes'], environment), {
    code: 0,
    stdout: 'Added merchant Amber Bikes.\n',
  });
  t.match(await lockgate(['merchant', 'add', 'Amber Bikes'], environment), {
    code: 3,
    stderr: /there is a merchant named/,
  });
  const added = await lockgate(['device', 'add', 'a4c1.38f0.e1d2', '--json'], environment);
  t.match(JSON.parse(added.stdout), { mac: 'A4:C1:38:F0:E1:D2', merchant: 'Amber Bikes', secret: /^lgs_.{32}$/ });
  t.match(await lockgate(['device', 'add', 'A4:C1'], environment), {
    code: 2,
    stderr: /"A4:C1" is no MAC: expected 12 hex/,
  });
  t.match(await lockgate(['device', 'list'], environment), {
    code: 0,
    stdout: /MAC +LOCK .*\nA4:C1:38:F0:E1:D2 .*Amber Bikes/,
  });
  t.match(await lockgate(['device', 'show', 'A4C138F0E1D3'], environment), {
    code: 3,
    stderr: /there is no device A4:C1:38:F0:E1:D3/,
  });
  const url = ['webhook', 'add', 'http://127.0.0.1:9/', '--header', 'X-Team: bikes'];
  t.match(JSON.parse((await lockgate([...url, '--json'], environment)).stdout), {
    id: 1,
    headers: ['X-Team'],
    secret: /^whsec_/,
  });
  t.match(await lockgate(['webhook', 'add', 'ftp://a/'], environment), { code: 2, stderr: /not an http or https URL/ });
  t.match(await lockgate(['webhook', 'list'], environment), {
    code: 0,
    stdout: /1 +Amber Bikes +http:\/\/127.0.0.1:9\/ +✓ active/,
  });
  t.match(await lockgate(['merchant', 'list'], { ...environment, LOCKGATE_TOKEN: 'x' }), {
    code: 3,
    stderr: /requires the token/,
  });
});

t.test('an empty list says whether a filter matched nothing or nothing exists yet', async (t) => {
  const gateway = await testGateway(t);
  const environment = {
    LOCKGATE_GATEWAY: `http://127.0.0.1:${gateway.operatorPort}`,
    LOCKGATE_TOKEN: gateway.operatorToken,
  };
  const since = ['--since', '2026-01-01T00:00:00Z'];
  const lists: readonly (readonly [command: string, nothingYet: RegExp, filter: string[], noMatch: RegExp])[] = [
    ['key list', /There is no API key yet/, ['--merchant', 'Nobody'], /No API keys match/],
    ['command list', /There is no command yet/, ['--state', 'sent'], /No commands match/],
    ['webhook deliveries', /There is no delivery yet/, since, /No deliveries match/],
    ['notices', /There are no unread notices/, ['--kind', 'degraded'], /No unread notices match/],
    ['notices --all', /There is no notice yet/, since, /No notices match/],
    ['usage show', /There is no usage yet/, ['--month', '2026-01'], /No usage matches/],
    ['usage plan show', /There is no price plan/, [MERCHANT], /The merchant has no price plan/],
    ['user list', /The merchant has no user yet/, ['--merchant', MERCHANT], /The merchant has no user yet/],
    ['audit', /There is no entry yet/, ['--action', 'key.revoke'], /No entries match/],
  ];
  for (const [command, nothingYet, filter, noMatch] of lists) {
    const words = command.split(' ');
    const { stderr: withoutFilter } = await runCommand(words, { environment });
    t.match(withoutFilter, nothingYet, command);
    t.match((await runCommand([...words, ...filter], { environment })).stderr, noMatch, `${command} with a filter`);
  }
});

t.test('control characters in a stranger’s text are also removed from errors', async (t) => {
  const file = path.join(tempFolder(t), 'a\u001b[2J.jsonl');
  writeFileSync(file, '\u001b[2J\n');
  const { code, stderr } = await lockgate(['trace', 'check', file]);
  t.equal(code, 2);
  t.match(stderr, /^lockgate: .*:1: the line is no JSON/);
  t.notMatch(stderr.slice(0, -1), CONTROL_CHARACTER);
  const two = await lockgate(['trace', 'check', file, `${file}\r`]);
  t.notMatch(two.stderr.replaceAll('\n', ''), CONTROL_CHARACTER, 'also in the first of two errors');
});

t.test('without a gateway, commands say what is wrong and what to do', async (t) => {
  const folder = tempFolder(t);
  t.match(await lockgate(['merchant', 'list', '--data', folder]), {
    code: 3,
    stderr: /no operator token.*lockgate serve/,
  });
  // Nothing listens there.
  const elsewhere = ['--gateway', 'http://127.0.0.1:9', '--token', 'x'];
  t.match(await lockgate(['tail', ...elsewhere]), {
    code: 3,
    stderr: /no gateway at http:\/\/127.0.0.1:9 .*lockgate serve/,
  });
});

t.test('a wrong command line is exit code 2 with a sentence', async (t) => {
  t.match(await lockgate(['merchnt', 'list']), {
    code: 2,
    stderr: /^lockgate: unknown command 'merchnt'\. Did you mean merchant\? \(see lockgate --help\)\n$/,
  });
  t.match(await lockgate(['serve', '--mqtt-port', 'x']), { code: 2, stderr: /--mqtt-port is "x": expected a port/ });
  t.match(await lockgate(['serve'], { LOCKGATE_OPERATOR_PORT: '70000' }), {
    code: 2,
    stderr: /LOCKGATE_OPERATOR_PORT/,
  });
  t.match(await lockgate(['serve', '--allow-webhook-range', '10.0.0.0/99']), {
    code: 2,
    stderr: /is not an address range/,
  });
  t.match(await lockgate(['webhook', 'listen', '--port', '99999']), { code: 2, stderr: /Expected a port/ });
});

t.test('code and help have the same settings', async (t) => {
  const flags = SETTING_FLAGS.map(([flag]) => flag.split(' ')[0]);
  t.same(
    flags,
    SETTINGS.map((setting) => setting.flag),
  );
});

t.test('a table fits its terminal, and its first column is never cut', async (t) => {
  const rows = [{ name: 'A4:C1:38:F0:E1:D2', text: 'x'.repeat(30), more: 'y'.repeat(30) }];
  const columns: Column<(typeof rows)[0]>[] = [
    { title: 'MAC', show: ({ name }) => name },
    { title: 'TEXT', show: ({ text }) => text },
    { title: 'MORE', show: ({ more }) => more, optional: true },
  ];
  t.match(tableLines(rows, columns, Number.POSITIVE_INFINITY)[1], /^A4:C1:38:F0:E1:D2 {2}x{30} {2}y{30}$/);
  t.match(tableLines(rows, columns, 60)[1], /^A4:C1:38:F0:E1:D2 {2}x{30}$/);
  t.match(tableLines(rows, columns, 40)[1], /^A4:C1:38:F0:E1:D2 {2}x{20}…$/);
});

t.test('control characters that a lock sent are removed from output', async (t) => {
  const line = eventLine({
    at: '2026-11-20T06:00:00.000Z',
    event: 'refused',
    what: 'connect',
    why: 'no such lock',
    client_id: 'a\u001b[2J\nb',
    address: '127.0.0.1',
  });
  // Blanks in place of the MAC, which has 17 characters.
  t.equal(line, `06:00:00 ${' '.repeat(17)} no    connect refused: no such lock (a\ufffd[2J\ufffdb, 127.0.0.1)`);
  const ping = { ping_type: 'gps', reason: 'REASON_THEFT', lock_state: 'locked', battery_percent: 9 };
  const at = '2026-11-20T06:00:00.000Z';
  const mac = 'A4:C1:38:F0:E1:D2';
  // On terminals of 60 and of 50 columns.
  t.equal(
    eventLine({ at, mac, event: 'ping', ping }, 60),
    '06:00:00 A4:C1:38:F0:E1:D2 ping  gps REASON_THEFT locked 9%',
  );
  t.equal([...eventLine({ at, mac, event: 'ping', ping }, 50)].length, 50, 'cut to the terminal');
});

t.test('the line of a finding has the uplink’s key, which why accepts', async (t) => {
  const finding = { rule: 'period-too-soon', severity: 'violation', message: 'too soon' };
  const event = { at: '2026-11-20T06:00:00.000Z', mac: 'A4:C1:38:F0:E1:D2', event: 'finding' };
  const uplink = { credential: 1, boot: 41, sequence: 12 };
  t.match(eventLine({ ...event, finding: { ...finding, uplink } }), /judge period-too-soon 41\/12: too soon$/);
  t.match(eventLine({ ...event, finding: { ...finding, uplink: null } }), /judge period-too-soon: too soon$/);
});

t.test('tail shows events as they happen', async (t) => {
  const folder = tempFolder(t);
  const gateway = await openGateway(t, folder);
  await gateway.accounts.addMerchant('Amber');
  const args = [
    'tail',
    '--json',
    '--gateway',
    `http://127.0.0.1:${gateway.operatorPort}`,
    '--token',
    gateway.operatorToken,
  ];
  // The gateway has one more listener once tail is connected.
  const listening = gateway.events.listenerCount('connected');
  const child = spawn(process.execPath, [MAIN, ...args], { env: { PATH: process.env.PATH } });
  t.teardown(() => child.kill('SIGKILL'));
  while (gateway.events.listenerCount('connected') === listening)
    await new Promise<void>((resolve) => afterThisTurn(resolve));
  await connectedLock(t, gateway, testMac());
  const [chunk] = await new Promise<Buffer[]>((resolve) =>
    child.stdout.once('data', (data: Buffer) => resolve([data])),
  );
  t.match(JSON.parse(String(chunk).split('\n')[0] ?? ''), { event: 'connect', mac: 'A4:C1:38:00:00:01' });
  const ended = new Promise((resolve) => child.on('close', resolve));
  child.kill('SIGINT');
  t.equal(await ended, 130, 'the exit code of Ctrl-C');
});
