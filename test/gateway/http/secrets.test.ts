/**
 * The commands `lockgate key` and `lockgate user`; and that a password, a key, a token or a session appears only in the
 * one answer that returns it, and in no log, file, metric or other answer (interfaces.md §2): a canary is sent in every
 * input.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { GatewayEvents } from '../../../gateway/events.js';
import type { Gateway } from '../../../gateway/gateway.js';
import { logEvents, makeLog } from '../../../gateway/log/log.js';
import { INT64_MAX } from '../../../gateway/store/contract/merchants/people-store.js';
import { systemClock } from '../../../proto/clock.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { runLockgate } from '../../helpers/cli/program.js';
import { MERCHANT, openGateway } from '../../helpers/gateway/test-gateway.js';
import {
  accessToken,
  basicAuthorization,
  callMerchantApi,
  type MerchantCall,
} from '../../helpers/http/merchant-call.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

interface Output {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the command line against this gateway. */
async function run(gateway: Gateway, args: readonly string[]): Promise<Output> {
  const gatewayFlags = ['--gateway', `http://127.0.0.1:${gateway.operatorPort}`, '--token', gateway.operatorToken];
  const program = await runLockgate([...args, ...gatewayFlags]);
  const [stdout, stderr] = [program.stdout.join('\n'), program.stderr.join('\n')];
  return { code: program.exit?.code ?? null, stdout, stderr };
}

/** Stores a user of the first merchant as older versions could: today control characters in names are refused. */
async function addOldUser({ store }: Gateway, id: bigint, username: string): Promise<void> {
  const [merchant] = await store.listMerchants();
  const absent = { firstName: null, lastName: null, email: null, phone: null, userStatus: null, passwordHash: null };
  await store.people.addUsers(merchant?.id ?? 0, [{ id, username, ...absent }], 0);
}

t.test('the command line adds and lists keys and users, as text and JSON, and refuses wrong calls', async (t) => {
  const gateway = await openGateway(t, tempFolder(t));
  const lockgate = (...args: string[]): Promise<Output> => run(gateway, args);
  t.match(await lockgate('key', 'create', 'shop'), { code: 2, stderr: /which merchant\? there is none yet/ });
  await gateway.accounts.addMerchant(MERCHANT);
  t.match(await lockgate('key', 'list'), { code: 0, stdout: '', stderr: /no API key/ });
  const created = await lockgate('key', 'create', 'shop backend');
  t.match(created, {
    code: 0,
    stdout: /Created API key [0-9a-f]{12} \(shop backend\) for Amber\.\nKey: lgk_/,
    stderr: /curl/,
  });
  const key = /lgk_\S+/.exec(created.stdout)?.[0] ?? '';
  t.match(await callMerchantApi(gateway, '/v2/user/logout', { key }), { status: 200 }, 'the printed key is valid');
  const { id, key: secondKey } = JSON.parse(
    (await lockgate('key', 'create', 'x', '--merchant', MERCHANT, '--json')).stdout,
  );
  t.match(await lockgate('key', 'revoke', id), { code: 0, stdout: `Revoked API key ${id} (x) of Amber.` });
  const revokedAgain = JSON.parse((await lockgate('key', 'revoke', id, '--json')).stdout);
  t.match(revokedAgain, { id, state: 'revoked' }, 'revoking it again changes nothing');
  t.match(await callMerchantApi(gateway, '/v2/user/logout', { key: secondKey }), { status: 401 });
  const listed = await lockgate('key', 'list', '--merchant', MERCHANT);
  t.match(listed.stdout, /^ID +MERCHANT +NAME +STATE +SCOPES +EXPIRES +LAST USED/);
  t.match(listed.stdout, /shop backend +✓ active +all +– +(now|\d+ (s|min) ago).*\n.*x +✗ revoked +all +– +never/);
  const json = (await lockgate('key', 'list', '--json')).stdout;
  t.match(JSON.parse(json), {
    keys: [
      { name: 'shop backend', state: 'active' },
      { id, revoked_at: /^20/ },
    ],
  });
  t.notMatch(listed.stdout + json, /lgk_|hash/, 'a key is shown once');
  t.match(await lockgate('key', 'revoke', 'nothing'), { code: 3, stderr: /no API key "nothing"/ });
  t.match(await lockgate('key', 'create', 'y', '--merchant', 'Nobody'), { code: 3, stderr: /no merchant named/ });
  t.match(await lockgate('key', 'create', ' '), { code: 2, stderr: /1 to 200 characters/ });

  t.match(await lockgate('user', 'list'), { code: 0, stdout: '', stderr: /no user/ });
  const user = await lockgate('user', 'add', 'ada', '--email', 'ada@example.com');
  t.match(user, { code: 0, stdout: /Added user ada of Amber\.\nPassword: \S{24}$/ });
  const password = user.stdout.split('Password: ')[1] ?? '';
  const logIn = (username: string, typedPassword: string) => {
    const query = new URLSearchParams({ username, password: typedPassword });
    return callMerchantApi(gateway, `/v2/user/login?${query}`, { key });
  };
  t.match(await logIn('ada', password), { status: 200 });
  const file = path.join(tempFolder(t), 'password');
  writeFileSync(file, 'from a file\nand no further');
  const bo = JSON.parse((await lockgate('user', 'add', 'bo', '--password-file', file, '--json')).stdout);
  t.same(bo, { username: 'bo', merchant: MERCHANT, email: null, dashboard: null, has_password: true });
  t.match(await logIn('bo', 'from a file'), { status: 200 });
  t.match(await lockgate('user', 'add', 'bo'), { code: 3, stderr: /taken already/ });
  t.match(await lockgate('user', 'add', 'cy', '--password-file', `${file}x`), { code: 2, stderr: /can't be read/ });
  await addOldUser(gateway, INT64_MAX, '\u001b[2J');
  const table = (await lockgate('user', 'list')).stdout;
  t.match(
    table,
    /^ID +NAME +LOGIN.*\n1 +ada +yes +– +ada@example\.com.*\n2 +bo +yes.*\n9223372036854775807 +.\[2J +no/,
  );
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
  t.notMatch(table.replaceAll('\n', ''), /[\u0000-\u001f]/);
  t.match(JSON.parse((await lockgate('user', 'list', '--json')).stdout), {
    users: [{ id: '1' }, {}, { has_password: false }],
  });
  t.match(await lockgate('user', 'list', '--merchant', 'Nobody'), { code: 3, stderr: /no merchant named/ });
  for (const command of ['key create', 'key list', 'key revoke', 'user add', 'user list']) {
    const help = await runLockgate([...command.split(' '), '--help']);
    t.match(help.stdout.join('\n'), new RegExp(`Example:\n  \\$ lockgate ${command}`), command);
  }
});

/** All bytes of the files in a folder, except files that hold a secret on purpose. */
function bytesOf(folder: string): string {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const withoutSecrets = files.filter(({ name }) => name !== 'key' && name !== 'operator-token');
  return withoutSecrets.map(({ parentPath, name }) => readFileSync(path.join(parentPath, name), 'latin1')).join('\n');
}

const PASSWORD = 'Canary-Pa55word';

/** Calls the merchants' interface and returns the status; the answer is searched for secrets later. */
type SendCall = (route: string, options?: MerchantCall) => Promise<number>;

/** Sends the password, the key and the token in right and wrong places. Returns the session. */
async function sendSecretsEverywhere(
  t: Test,
  gateway: Gateway,
  sendCall: SendCall,
  key: string,
  token: string,
): Promise<string> {
  const create = '/v2/user/createWithList';
  const ada = { username: 'ada', password: PASSWORD };
  t.equal(await sendCall(create, { key, body: [ada] }), 200);
  t.equal(await sendCall(create, { key, body: [ada] }), 409);
  const texts = [`[{"password":{"${PASSWORD}":1}}]`, `[{"password":"${PASSWORD}",}]`, `"${PASSWORD}`, `[${PASSWORD}]`];
  for (const body of [...texts, `{"password":"${PASSWORD}"}`]) t.equal(await sendCall(create, { key, body }), 400);
  const login = `/v2/user/login?username=ada&password=${PASSWORD}`;
  const { body: session, headers } = await callMerchantApi(gateway, login, { key });
  const expectedStatuses = {
    [login.replace('ada', 'nobody')]: 400,
    [login.replace('Canary', 'canary')]: 400,
    [login.replace('login', `login/${PASSWORD}`)]: 404,
    [login.replace('login', `%zz${PASSWORD}`)]: 400,
    [`/${key}`]: 404,
    [`/v1/pet?access_token=${token}`]: 405,
  };
  for (const [route, status] of Object.entries(expectedStatuses))
    t.equal(await sendCall(route, { key }), status, route);
  t.equal(await sendCall(login), 401);
  for (const authorization of [
    basicAuthorization('x', PASSWORD),
    basicAuthorization(PASSWORD),
    `Bearer ${PASSWORD}`,
    basicAuthorization(`${key}x`),
  ])
    t.equal(await sendCall('/v1/pet', { body: { name: 'Rex' }, headers: { authorization } }), 401);
  t.equal(await sendCall('/test_webhook', { body: { access_token: PASSWORD, mac_addr: PASSWORD } }), 400);
  t.equal(await sendCall('/test_webhook', { body: { access_token: `${token}x`, mac_addr: 'A4C138000001' } }), 401);
  const grant = `grant_type=${PASSWORD}&scope=${key}`;
  t.equal(await sendCall('/oauth/token', { key, body: grant }), 415);
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  t.equal(await sendCall('/oauth/token', { key, body: grant, headers: form }), 400);
  const cookie = String(headers['set-cookie']);
  t.equal(await sendCall('/v2/user/logout', { key, headers: { cookie, 'x-session': PASSWORD } }), 200);
  return String(session).split(':')[1] ?? '';
}

async function metricsOf({ operatorPort, operatorToken }: Gateway): Promise<string> {
  const headers = { authorization: `Bearer ${operatorToken}` };
  return await (await fetch(`http://127.0.0.1:${operatorPort}/metrics`, { headers })).text();
}

t.test('a secret appears only in the answer that returns it', async (t) => {
  const events = new GatewayEvents();
  const logged: string[] = [];
  t.teardown(
    logEvents(
      makeLog('debug', (line) => logged.push(line)),
      events,
      systemClock,
    ),
  );
  const folder = tempFolder(t);
  const gateway = await openGateway(t, folder, { events });
  await gateway.accounts.addMerchant(MERCHANT);
  const { key: row, text: key } = await gateway.merchants.apiKeys.create(MERCHANT, 'test');
  const token = await accessToken(gateway, key);
  const answerTexts: string[] = [];
  const sendCall: SendCall = async (route, options = {}) => {
    const { status, text, headers } = await callMerchantApi(gateway, route, options);
    answerTexts.push(text, JSON.stringify(headers));
    return status;
  };
  const session = await sendSecretsEverywhere(t, gateway, sendCall, key, token);
  const operatorPaths = ['/keys', '/users', '/status', '/merchants', '/readyz'];
  const texts = {
    answers: answerTexts.join('\n'),
    log: logged.join(''),
    operators: JSON.stringify(
      await Promise.all(operatorPaths.map((operatorPath) => callOperator(gateway, 'GET', operatorPath))),
    ),
    metrics: await metricsOf(gateway),
    files: bytesOf(folder),
  };
  t.match(texts.log, /"route":"\/v2\/user\/login"/, 'the log is not empty');
  t.match(
    texts.metrics,
    'lockgate_http_requests_total{route="/v2/user/login",status="400"} 2',
    'the metrics are not empty',
  );
  t.match(texts.files, row.publicId, 'the files contain the key’s row');
  t.match(texts.files, '$argon2id$v=19$m=19456,t=2,p=1$', 'the password is hashed with OWASP’s parameters');
  for (const [place, text] of Object.entries(texts))
    for (const [what, secret] of Object.entries({ password: PASSWORD, key, token, session })) {
      const spellings = [secret, secret.slice(-12), encodeURIComponent(secret), Buffer.from(secret).toString('base64')];
      t.notOk(
        spellings.some((part) => text.includes(part.replace(/=+$/, ''))),
        `no ${what} in the ${place}`,
      );
    }
});
