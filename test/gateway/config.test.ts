/**
 * The settings as the CLI shows them, the operator's token, and how the CLI finds a gateway (interfaces.md §4, §6). The
 * commands run against a real gateway.
 */
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import got from 'got';
import t from 'tap';
import { type ConnectionFlags, GatewayClient } from '../../cli/client.js';
import { resetToken } from '../../cli/commands/config/token-reset.js';
import { exitCodeOf } from '../../cli/terminal/exit-codes.js';
import { readConfig } from '../../gateway/config-reader.js';
import { rotateKey } from '../../gateway/data-folder/key-change.js';
import { misspeltVariables, resolveSettings } from '../../gateway/resolved-settings.js';
import { SETTINGS, type SettingKey } from '../../gateway/settings.js';
import { callOperator } from '../helpers/cli/operator-call.js';
import { type CommandOutput, runLockgate } from '../helpers/cli/program.js';
import { ServeProgram } from '../helpers/cli/serve-program.js';
import { openGateway, testGateway } from '../helpers/gateway/test-gateway.js';
import { tempFolder } from '../helpers/store/temp-folder.js';

/** An environment in which the CLI finds no gateway. In this file, nothing listens on port 9 of 127.0.0.1. */
const NO_GATEWAY = {
  LOCKGATE_DATA: '/nonexistent',
  LOCKGATE_GATEWAY: '',
  LOCKGATE_TOKEN: '',
  LOCKGATE_TOKEN_FILE: '',
};

type Environment = Readonly<Record<string, string>>;

/** What `config show --json` prints: whether a gateway runs, its address, and where each setting comes from. */
interface ShownConfig {
  readonly running: boolean;
  readonly gateway: string | null;
  readonly settings: readonly { readonly flag: string; readonly value: string; readonly source: string }[];
}

async function lockgate(args: readonly string[], environment: Environment = {}): Promise<CommandOutput> {
  return await runLockgate(args, { ...NO_GATEWAY, ...environment });
}

async function showConfig(args: readonly string[], environment: Environment = {}): Promise<ShownConfig> {
  return JSON.parse((await lockgate(['config', ...args, '--json'], environment)).stdout.join('')) as ShownConfig;
}

t.test('without a gateway, config shows the settings that serve would use and their sources', async (t) => {
  const environment = { LOCKGATE_HTTP_PORT: '9000', LOCKGATE_MQTT_PORT: '9001' };
  const all = await showConfig(['--mqtt-port', '9002'], environment);
  t.match(all, { running: false, gateway: null });
  t.same(
    all.settings.map(({ flag }) => flag),
    SETTINGS.map(({ flag }) => flag),
    'each setting of the table',
  );
  const find = (flag: string) => all.settings.find((each) => each.flag === flag);
  t.match(find('--mqtt-port'), { value: '9002', source: 'flag', environment: 'LOCKGATE_MQTT_PORT', default: '1883' });
  t.match(find('--http-port'), { value: '9000', source: 'environment', unit: 'port', meaning: /merchants/ });
  t.match(find('--operator-port'), { value: '8081', source: 'default' });
  const { stdout, stderr } = await lockgate(['config'], environment);
  t.match(stdout[0], /^SETTING +VALUE +FROM +UNIT +MEANING$/);
  t.equal(stdout.length, 1 + SETTINGS.length);
  t.ok(stdout.some((line) => /^--http-port +9000 +LOCKGATE_HTTP_PORT +port +The merchants’/.test(line)));
  t.match(stderr, [/"lockgate serve" would use/]);
});

/** The setting that a flag and its value give, such as `--mqtt-port 1`; none without a flag. */
function flagsOf([flag, value]: readonly string[]): Partial<Record<SettingKey, string>> {
  const setting = SETTINGS.find((each) => each.flag === flag);
  return setting === undefined || value === undefined ? {} : { [setting.key]: value };
}

t.test('a wrong setting is reported with the same sentence as at the start', async (t) => {
  const wrong: readonly (readonly [string[], NodeJS.ProcessEnv, RegExp])[] = [
    [['--mqtt-port', 'x'], {}, /^--mqtt-port is "x": expected a port, 0 to 65535$/],
    [[], { LOCKGATE_KEEP_DAYS: '5' }, /^LOCKGATE_KEEP_DAYS is "5": expected days/],
    [['--log-level', 'loud'], {}, /^--log-level is "loud": expected debug/],
    [['--map-tiles', 'tiles'], {}, /^--map-tiles is not the http or https URL of tiles, such as/],
  ];
  for (const [args, environment, message] of wrong)
    t.throws(() => readConfig(resolveSettings(flagsOf(args), environment)), { code: 'input-setting', message });
  const run = await lockgate(['config', '--mqtt-port', 'x']);
  t.match(run, { exit: { code: 2 }, stdout: [], stderr: [/^lockgate: --mqtt-port is "x": expected a port/] });
  t.equal(run.stderr.length, 1, 'in one sentence');
  const both = await lockgate(['config', '--gateway', 'http://127.0.0.1:9', '--mqtt-port', '1']);
  t.match(both, { exit: { code: 2 }, stderr: [/not both/] });
});

t.test('with a running gateway, config shows the values in use, with the ports that the system chose', async (t) => {
  const data = tempFolder(t);
  const flags = { mqttPort: '0', httpPort: '0', operatorPort: '0', keepDays: '31' };
  const settings = resolveSettings(flags, { LOCKGATE_LOG_LEVEL: 'warn' });
  const gateway = await openGateway(t, data, { settings });
  const gatewayFlags = ['--gateway', `http://127.0.0.1:${gateway.operatorPort}`, '--token', gateway.operatorToken];
  const all = await showConfig(gatewayFlags);
  t.match(all, { running: true, gateway: `http://127.0.0.1:${gateway.operatorPort}` });
  const find = (flag: string) => all.settings.find((each) => each.flag === flag);
  t.match(find('--mqtt-port'), { value: String(gateway.mqttPort), given: '0', source: 'flag' });
  t.match(find('--operator-port'), { value: String(gateway.operatorPort) });
  t.match(find('--keep-days'), { value: '31', source: 'flag' });
  t.match(find('--log-level'), { value: 'warn', source: 'environment' });
  const text = JSON.stringify(all);
  t.notOk(text.includes(gateway.operatorToken), 'the token is not shown');
  t.notOk(
    text.includes(readFileSync(path.join(data, 'key'), 'utf8').trim()),
    'no secret, though their files are named',
  );
  const withoutGateway = ['config', '--gateway', 'http://127.0.0.1:9', '--token', 'x'];
  t.match(await lockgate(withoutGateway), { exit: { code: 3 }, stderr: [/no gateway.*lockgate serve/] });
  writeFileSync(path.join(data, 'operator-address'), 'http://127.0.0.1:9\n');
  t.match(await showConfig(['--data', data]), { running: false }, 'the address of a gateway that has stopped');
});

/** Lists the merchants with the CLI's client. Returns the answer, or the exit code and message of the error. */
async function listMerchantsWith(flags: ConnectionFlags, environment: NodeJS.ProcessEnv): Promise<unknown> {
  const before = { ...process.env };
  Object.assign(process.env, NO_GATEWAY, environment);
  try {
    const client = new GatewayClient(flags);
    return await client.get('/merchants');
  } catch (error) {
    return { exit: exitCodeOf(error), message: (error as Error).message };
  } finally {
    for (const name of Object.keys(NO_GATEWAY)) delete process.env[name];
    Object.assign(process.env, before);
  }
}

t.test('the CLI takes gateway and token from flags, then the environment, then the data folder', async (t) => {
  const gateway = await testGateway(t);
  const url = `http://127.0.0.1:${gateway.operatorPort}`;
  const token = gateway.operatorToken;
  const environment = { LOCKGATE_GATEWAY: url, LOCKGATE_TOKEN: token };
  const good = { merchants: [{ name: 'Amber' }] };
  t.match(await listMerchantsWith({ gateway: url, token }, {}), good);
  t.match(await listMerchantsWith({}, environment), good);
  t.match(await listMerchantsWith({ token: 'x' }, environment), { exit: 3, message: /requires the token/ });
  t.match(await listMerchantsWith({ gateway: 'http://127.0.0.1:9' }, environment), {
    exit: 3,
    message: /no gateway.*lockgate serve/,
  });
  t.match(await listMerchantsWith({ gateway: url, token }, { LOCKGATE_GATEWAY: 'x', LOCKGATE_TOKEN: 'x' }), good);
  t.match(await listMerchantsWith({}, { LOCKGATE_GATEWAY: url }), { exit: 3, message: /no operator token: .*--token/ });
  for (const wrong of ['mqtt://127.0.0.1:1883', 'localhost:8081', 'x'])
    for (const result of [
      await listMerchantsWith({ gateway: wrong, token }, {}),
      await listMerchantsWith({ token }, { LOCKGATE_GATEWAY: wrong }),
    ])
      t.match(result, { exit: 2, message: /is not the URL of a gateway: expected http:/ }, wrong);
});

t.test('the CLI takes the token from the file that LOCKGATE_TOKEN_FILE names', async (t) => {
  const gateway = await testGateway(t);
  const url = { LOCKGATE_GATEWAY: `http://127.0.0.1:${gateway.operatorPort}` };
  const token = gateway.operatorToken;
  const good = { merchants: [{ name: 'Amber' }] };
  const file = path.join(tempFolder(t), 'token');
  writeFileSync(file, `${token}\n`);
  t.match(await listMerchantsWith({}, { ...url, LOCKGATE_TOKEN_FILE: file }), good);
  const missing = { ...url, LOCKGATE_TOKEN_FILE: '/nonexistent/token' };
  t.match(await listMerchantsWith({}, { ...missing, LOCKGATE_TOKEN: token }), good, 'LOCKGATE_TOKEN comes first');
  t.match(await listMerchantsWith({}, missing), { exit: 3, message: /LOCKGATE_TOKEN_FILE names, can't be read/ });
  writeFileSync(file, '\n');
  t.match(await listMerchantsWith({}, { ...url, LOCKGATE_TOKEN_FILE: file }), { exit: 3, message: /has no token/ });
});

t.test('a variable that looks like a misspelt setting is reported, and no other', async (t) => {
  const environment = { LOCKGATE_MQTT_PROT: '1', LOCKGATE_SERVICE_HOST: 'x', LOCKGATE_TOKEN: 'x', LOCKGATE_DATA: 'x' };
  const sentence = 'the environment has LOCKGATE_MQTT_PROT, which is not a setting. Did you mean LOCKGATE_MQTT_PORT?';
  t.same(misspeltVariables(environment), [sentence]);
  const data = tempFolder(t);
  const shown = await lockgate(['config', '--data', data], { LOCKGATE_MQTT_PROT: '1' });
  t.match(shown, { exit: { code: 0 }, stderr: [`Warning: ${sentence}`, /would use/] });
});

t.test('the CLI warns before it sends a token over a network unencrypted', async (t) => {
  const capturedStderr = t.capture(process.stderr, 'write', () => true);
  /** Whether a client of this gateway warns. */
  const warns = (gateway: string): boolean => {
    new GatewayClient({ gateway, token: 'x' });
    return capturedStderr().some(({ args }) => /clear text/.test(String(args[0])) && String(args[0]).includes(gateway));
  };
  const clear = [
    'http://gateway.example:8081',
    'http://192.0.2.1:8081',
    'http://127.0.0.1.example:1',
    'http://[::2]:1',
  ];
  for (const url of clear) t.equal(warns(url), true, url);
  for (const url of ['https://gateway.example', 'http://127.0.0.1:9', 'http://localhost:9', 'http://[::1]:9'])
    t.equal(warns(url), false, url);
});

/** A call of the operator's interface of a gateway in another process, with the token of its folder. */
async function callRunningOperator(
  data: string,
  method: 'GET' | 'POST',
  route: string,
  json?: object,
): Promise<unknown> {
  const [base, token] = ['operator-address', 'operator-token'].map((name) => {
    return readFileSync(path.join(data, name), 'utf8').trim();
  });
  return await got(`${base}${route}`, {
    method,
    headers: { authorization: `Bearer ${token}` },
    ...(json && { json }),
  }).json();
}

t.test('replacing the token of a running gateway invalidates the old one and its streams at once', async (t) => {
  const data = tempFolder(t);
  const serve = await ServeProgram.start(t, data);
  const oldToken = readFileSync(path.join(data, 'operator-token'), 'utf8').trim();
  const tail = serve.run('tail', '--json');
  // Wait until the stream is open: it does not contain earlier events.
  for (let number = 1; tail.stdout.length === 0 && tail.exit === undefined; number += 1)
    await callRunningOperator(data, 'POST', '/merchants', { name: `Amber ${number}` });
  await tail.waitForLine(/"merchant.add"/);
  t.match(await serve.json('config'), { running: true, settings: [{ flag: '--data', value: data, source: 'flag' }] });
  const reset = await serve.json<{ file: string }>('config', 'reset-operator-token');
  // `taken`: the running gateway uses the new token already.
  t.match(reset, { reset: true, gateway: 'taken', file: path.join(data, 'operator-token') });
  await tail.waitForExit();
  const file = path.join(data, 'operator-token');
  t.equal(statSync(file).mode & 0o777, 0o600);
  t.notOk(existsSync(`${file}.new`));
  const token = readFileSync(file, 'utf8').trim();
  t.not(token, oldToken);
  t.notOk(JSON.stringify(reset).includes(token), 'it is not printed');
  t.match(await listMerchantsWith({ data, token: oldToken }, {}), { exit: 3, message: /requires the token/ });
  const audit = (await callRunningOperator(data, 'GET', '/audit?action=token')) as { entries: object[] };
  // The audit log names the new token by the start of its hash.
  t.match(audit.entries, [{ action: 'token.change', actor: 'owner', after: { token: /^[0-9a-f]{8}$/ } }]);
  serve.program.kill('SIGTERM');
  t.match(await serve.program.waitForExit(), { code: 0 });
  t.match(await lockgate(['config', 'reset-operator-token', '--data', data], { LOCKGATE_TOKEN: oldToken }), {
    exit: { code: 0 },
    stdout: [/The operator’s new token is in .*operator-token; the old one no longer works\./],
    stderr: [/LOCKGATE_TOKEN has a different token/],
  });
  const resetWithTokenFile = async (tokenFile: string): Promise<CommandOutput> =>
    await lockgate(['config', 'reset-operator-token', '--data', data], { LOCKGATE_TOKEN_FILE: tokenFile });
  const { stderr } = await resetWithTokenFile(path.join(data, 'other-token'));
  t.match(stderr, [/LOCKGATE_TOKEN_FILE names a different file: .*other-token/]);
  t.same((await resetWithTokenFile(file)).stderr, [], 'the variable names the file with the new token');
  const gateway = await openGateway(t, data);
  t.equal((await callOperator(gateway, 'GET', '/status', undefined, token)).status, 401);
  const { body } = await callOperator(gateway, 'GET', '/audit?action=token');
  t.match(body, { entries: [{ actor: 'owner', agent: /cli/, os_user: /./, outcome: 'done' }, {}] });
  await t.rejects(resetToken({ data: path.join(data, 'x') }), { code: 'input-data', message: /no data folder/ });
});

t.test('a token file that is missing, empty or readable by others lets no client in', async (t) => {
  const data = tempFolder(t);
  const gateway = await openGateway(t, data);
  const file = path.join(data, 'operator-token');
  const status = async (token: string): Promise<number> =>
    (await callOperator(gateway, 'GET', '/status', undefined, token)).status;
  const token = gateway.operatorToken;
  t.equal(await status(token), 200);
  for (const text of ['', 'short', 'two words that are long enough to be a token of ours']) {
    writeFileSync(file, text);
    t.same([await status(token), await status(text === '' ? 'x' : text)], [401, 401], JSON.stringify(text));
  }
  writeFileSync(file, `${token}\n`);
  t.equal(await status(token), 200, 'the token is restored');
  chmodSync(file, 0o644);
  t.equal(await status(token), 401, 'others could read it');
  await gateway.close();
  await t.rejects(openGateway(t, data), {
    code: 'input-secret-file',
    message: /other users may read .*operator-token.*644/,
  });
  chmodSync(file, 0o600);
  await (await openGateway(t, data)).close();
});

t.test('a key file that others may read or write stops the start and a change of the key', async (t) => {
  const data = tempFolder(t);
  await (await openGateway(t, data)).close();
  const file = path.join(data, 'key');
  for (const mode of [0o640, 0o604, 0o620]) {
    chmodSync(file, mode);
    const refused = {
      code: 'input-secret-file',
      message: new RegExp(`other users may read .*key .*${mode.toString(8)}.*chmod`),
    };
    await t.rejects(openGateway(t, data), refused, mode.toString(8));
    await t.rejects(rotateKey({ data, keyFile: null }), refused);
  }
  chmodSync(file, 0o400);
  await (await openGateway(t, data)).close();
});
