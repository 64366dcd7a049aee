/** `lockgate webhook …` as a separate process against a real gateway. */
import got, { type Response } from 'got';
import t from 'tap';
import type { Gateway } from '../../gateway/gateway.js';
import { makeWebhookSecret } from '../../gateway/webhooks/payload/signature.js';
import { systemClock } from '../../proto/clock.js';
import { Webhook } from '../clients/webhook-libraries.js';
import { LOCKGATE, Program, runLockgate } from '../helpers/cli/program.js';
import { MERCHANT, openGateway, testBytes, testMac } from '../helpers/gateway/test-gateway.js';
import { testReceiver } from '../helpers/gateway/test-receiver.js';
import { eventually, readDeliveries } from '../helpers/gateway/webhook-setup.js';
import { connectedLock } from '../helpers/mqtt/test-lock.js';
import { type Teardown, tempFolder } from '../helpers/store/temp-folder.js';

const MAC = testMac();
/** Nothing listens there. */
const NOWHERE = 'http://127.0.0.1:9';

/** The exit code and output of a command. */
interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `lockgate webhook …` to its end. */
async function run(args: readonly string[]): Promise<CommandResult> {
  const program = await runLockgate(['webhook', ...args]);
  const [stdout, stderr] = [program.stdout.join('\n'), program.stderr.join('\n')];
  return { code: program.exit?.code ?? null, stdout, stderr };
}

/** A gateway with a merchant, and a function that runs webhook commands against it. */
interface WebhookSetup {
  readonly gateway: Gateway;
  readonly webhook: (...args: string[]) => Promise<CommandResult>;
}

async function setUpGateway(test: Teardown): Promise<WebhookSetup> {
  const gateway = await openGateway(test, tempFolder(test));
  await gateway.accounts.addMerchant(MERCHANT);
  const gatewayFlags = ['--gateway', `http://127.0.0.1:${gateway.operatorPort}`, '--token', gateway.operatorToken];
  return { gateway, webhook: (...args) => run([...args, ...gatewayFlags]) };
}

t.test('set, rotate-secret and remove print text and JSON, and fail with a sentence', async (t) => {
  const { webhook } = await setUpGateway(t);
  await webhook('add', `${NOWHERE}/a`, '--header', 'X-Team: bikes', '--ordered');
  const set = ['set', '1', '--url', `${NOWHERE}/b`, '--ordered', 'off', '--header', 'X-Two: 2', '--disable'];
  t.match(JSON.parse((await webhook(...set, '--json')).stdout), {
    url: `${NOWHERE}/b`,
    headers: ['X-Team', 'X-Two'],
    ordered: false,
    state: 'disabled',
  });
  t.match(await webhook('list'), { code: 0, stdout: /ID +MERCHANT .*\n1 .*disabled by the operator/ });
  const enabled = await webhook('set', '1', '--enable', '--remove-header', 'x-team');
  t.match(enabled, { code: 0, stdout: /is active.*\nHeaders: X-Two/, stderr: /webhook recover --url 1/ });
  t.match(await webhook('set', '1', '--enable'), { code: 0, stdout: /is active/ }, 'also if it is active already');
  const rotated = JSON.parse((await webhook('rotate-secret', '1', '--grace', '1h', '--json')).stdout);
  t.match(rotated, { secret: /^whsec_/, old_secrets_until: [/^20/] });
  t.match(await webhook('rotate-secret', '1', '--now'), {
    code: 0,
    stdout: /whsec_/,
    stderr: /old secret is no longer used/,
  });
  const listed = await webhook('list', '--json');
  t.match(JSON.parse(listed.stdout), { webhooks: [{ circuit: 'closed', old_secrets_until: [], failing_since: null }] });
  t.notMatch(listed.stdout, /whsec_|secret_sealed/, 'no secret is shown twice');
  t.match(await webhook('remove', '1'), { code: 0, stdout: /Removed webhook URL 1: http:\/\/127.0.0.1:9\/b/ });
  t.match(await webhook('remove', '1'), { code: 3, stderr: /there is no webhook URL 1/ });
  const wrong: [string[], number, RegExp][] = [
    [['set', '1'], 3, /no webhook URL 1/],
    [['set', 'x', '--enable'], 2, /is invalid for argument/],
    [['set', '1', '--enable', '--disable'], 2, /exclude each other/],
    [['set', '1', '--ordered', 'maybe'], 2, /Expected on or off/],
    [['rotate-secret', '1', '--grace', '1 hour'], 2, /such as 90s, 15m, 1h or 2d/],
    [['rotate-secret', '1', '--grace', '1h', '--now'], 2, /exclude each other/],
    [['add', NOWHERE, '--since', 'yesterday'], 2, /since is "yesterday": expected a date such as/],
  ];
  for (const [args, code, stderr] of wrong) t.match(await webhook(...args), { code, stderr }, args.join(' '));
});

t.test('deliveries, resend and recover print text and JSON, and fail with a sentence', async (t) => {
  const { gateway, webhook } = await setUpGateway(t);
  const receiver = await testReceiver(t);
  // The first ping fails, the second succeeds.
  receiver.answer = ({ json }, response) => void response.writeHead(json.sequence === 1 ? 500 : 200).end('fine\n');
  await gateway.accounts.addWebhookUrl({ url: receiver.url });
  const lock = await connectedLock(t, gateway, MAC);
  for (const sequence of [1, 2]) await lock.send(testBytes(sequence));
  const ofState = (state: 'pending' | 'delivered') => readDeliveries(gateway, [state]);
  await eventually('one delivery is pending and one is delivered', async () => {
    return (await ofState('pending'))[0]?.attempts.length === 1 && (await ofState('delivered')).length === 1;
  });
  const { deliveries } = JSON.parse((await webhook('deliveries', '--json')).stdout);
  t.match(deliveries, [
    { url_id: 1, mac: 'A4:C1:38:00:00:01', state: 'delivered', attempts: [{ number: 1, status: 200, error: null }] },
    { state: 'pending', next_attempt_at: /^20/, attempts: [{ status: 500, error: 'the receiver answered 500' }] },
  ]);
  const shown = await webhook('deliveries', '--state', 'pending', '--mac', MAC, '--url', '1', '--body');
  t.match(shown, {
    code: 0,
    stdout:
      /! pending +.* 1 +the receiver answered 500; next in \d s +evt_.*\n {4}1\. .*: the receiver answered 500 .*"fine/,
  });
  t.match(await webhook('deliveries', '--state', 'dead'), { code: 0, stdout: '', stderr: /No deliveries match/ });
  receiver.answer = (_request, response) => void response.writeHead(204).end();
  const since = '2020-01-01T00:00:00Z';
  t.match(await webhook('recover', '--since', since), { code: 0, stdout: /URL +SENT AGAIN\n1 +1/ });
  await eventually('both are delivered', async () => (await ofState('delivered')).length === 2);
  const event = deliveries[0].event_id;
  t.match(await webhook('resend', event), { code: 0, stdout: 'Sent again to URL 1.' });
  await receiver.waitForRequests(4);
  t.equal(receiver.requests[3]?.headers['webhook-id'], event, 'with its original id');
  const wrong: [string[], number, RegExp][] = [
    [['deliveries', '--state', 'lost'], 2, /state is "lost": expected pending, delivered, dead, kept/],
    [['deliveries', '--mac', 'zz'], 2, /12 hex digits/],
    [['deliveries', '--mac', 'A4C138F0E1D2'], 3, /no device/],
    [['deliveries', '--url', '7'], 3, /no webhook URL 7/],
    [['resend', 'evt_nonsense'], 2, /not an event id/],
    // Its last hex digit changed.
    [['resend', event.replace(/.$/, event.endsWith('0') ? '1' : '0')], 3, /there is no event/],
    [['resend', event, '--url', '7'], 3, /no webhook URL 7/],
    [['recover'], 2, /--since/],
    [['recover', '--since', since, '--until', since], 2, /until is not after since/],
  ];
  for (const [args, code, stderr] of wrong) t.match(await webhook(...args), { code, stderr }, args.join(' '));
});

t.test('test prints each URL’s answer, and exits with 1 unless all accept', async (t) => {
  const { gateway, webhook } = await setUpGateway(t);
  const receiver = await testReceiver(t);
  await gateway.accounts.addDevice({ mac: MAC });
  t.match(await webhook('test', MAC), { code: 3, stderr: /no active webhook URL/ });
  await gateway.accounts.addWebhookUrl({ url: receiver.url });
  const { origin } = new URL(receiver.url);
  const accepted = await webhook('test', MAC);
  t.match(accepted, { code: 0, stdout: new RegExp(`URL +ORIGIN .*\n1 +${origin} +204 +\\d+ ms +✓ received`) });
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  t.match(await webhook('test', MAC), { code: 1, stdout: /500 .*the receiver answered 500/ });
  const failed = await webhook('test', MAC, '--json');
  t.match(JSON.parse(failed.stdout), { status: 'error', deliveries: [{ url_id: 1, origin, status: 500 }] });
  t.equal(failed.code, 1);
  t.match(await webhook('test', 'zz'), { code: 2, stderr: /12 hex digits/ });
  t.match(await webhook('test', MAC, '--url', '7'), { code: 3, stderr: /no webhook URL 7/ });
});

/** A running `webhook listen`, and its URL. */
interface Listener {
  readonly program: Program;
  readonly url: string;
}

async function startListener(test: Teardown, args: readonly string[]): Promise<Listener> {
  const program = new Program(test, process.execPath, [LOCKGATE, 'webhook', 'listen', '--port', '0', ...args]);
  const [url = ''] = /http:\S+/.exec(await program.waitForLine(/Listening on/, 'stderr')) ?? [];
  return { program, url };
}

/** Posts a webhook that the reference library signs. Returns the answer. @throws got's error without an answer */
async function postSigned(url: string, secret: string, id: string): Promise<Response<string>> {
  const body = JSON.stringify({ event_id: id, mac_addr: 'A4:C1:38:00:00:01', reason: 'REASON_THEFT' });
  const sent = new Date(systemClock.now());
  const signature = new Webhook(secret).sign(id, sent, body);
  const timestamp = String(Math.floor(sent.getTime() / 1000));
  const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature };
  // 500 ms: the listener answers at once, unless --fail says timeout.
  const request = { body, headers, throwHttpErrors: false, retry: { limit: 0 }, timeout: { request: 500 } };
  return await got.post(url, request);
}

/** Posts a webhook. Returns the status of the answer; null if there is none. */
async function post(url: string, secret: string, id: string): Promise<number | null> {
  return await postSigned(url, secret, id).then(
    ({ statusCode }) => statusCode,
    () => null,
  );
}

t.test('listen verifies signatures of the reference library, follows --fail, and sets the exit code', async (t) => {
  const secret = makeWebhookSecret();
  const plan = ['--fail', '500,timeout,reset*2,ok,410', '--expect', '2'];
  const { program, url } = await startListener(t, ['--secret', secret, ...plan]);
  t.equal(
    await post(url, makeWebhookSecret(), 'evt_0'),
    401,
    'a webhook with a wrong signature does not use up a fault',
  );
  const answers: (number | null)[] = [];
  for (const id of ['evt_1', 'evt_2', 'evt_3', 'evt_3', 'evt_4', 'evt_5', 'evt_4', 'evt_6'])
    answers.push(await post(url, secret, id));
  t.same(answers, [500, null, null, null, 204, 410, 204, 204], 'a webhook that arrives twice counts once for --expect');
  t.same(await program.waitForExit(), { code: 0, signal: null });
  t.match(program.stdout, [
    /NOT VERIFIED .*evt_0/,
    / verified .*\(answered: 500\) evt_1/,
    /\(answered: timeout\) evt_2/,
    /\(answered: reset\) evt_3/,
  ]);
  const late = await startListener(t, ['--expect', '1', '--within', '0s']);
  t.match(await late.program.waitForExit(), { code: 1 });
  t.match(late.program.stderr.join(' '), /0 of 1 webhooks arrived/);
  t.match(await run(['listen', '--fail', 'bang']), {
    code: 2,
    stderr: /"bang" is not a fault: expected ok, timeout/,
  });
  t.match(await run(['listen', '--forward', 'ftp://a/']), { code: 2, stderr: /not an http or https URL/ });
});

t.test('listen sends Retry-After only with 429 and 503', async (t) => {
  const { url } = await startListener(t, ['--fail', '429,503,500', '--retry-after', '2m']);
  const answers: unknown[] = [];
  for (let count = 0; count < 4; count++) {
    const { statusCode, headers } = await got.post(url, { body: '{}', throwHttpErrors: false, retry: { limit: 0 } });
    answers.push([statusCode, headers['retry-after']]);
  }
  t.same(answers, [
    [429, '120'],
    [503, '120'],
    [500, undefined],
    [204, undefined],
  ]);
});

t.test('add refuses a header that is given twice, in any case', async (t) => {
  const { webhook } = await setUpGateway(t);
  const twice = await webhook('add', 'http://a/', '--header', 'X-Team: bikes', '--header', 'x-team: scooters');
  t.match(twice, { code: 2, stderr: /--header names "x-team" twice: give each header once/ });
});

t.test('listen forwards webhooks unchanged and passes on the answer', async (t) => {
  const secret = makeWebhookSecret();
  const receiver = await testReceiver(t);
  receiver.answer = (_request, response) => void response.writeHead(418).end();
  const { program, url } = await startListener(t, ['--secret', secret, '--forward', receiver.url, '--json']);
  t.equal(await post(url, secret, 'evt_1'), 418);
  const [request] = receiver.requests;
  t.doesNotThrow(() => new Webhook(secret).verify(request?.body ?? '', request?.headers as Record<string, string>));
  t.match(JSON.parse(await program.waitForLine(/evt_1/)), { verified: true, answer: 418 });
  t.equal(await post(url, makeWebhookSecret(), 'evt_2'), 401);
  t.equal(receiver.requests.length, 1, 'a webhook with a wrong signature is not forwarded');

  receiver.answer = (_request, response) =>
    void response.writeHead(429, { 'retry-after': '90', 'content-type': 'application/json' }).end('{"why":"busy"}');
  const refused = await postSigned(url, secret, 'evt_3');
  t.equal(refused.statusCode, 429);
  t.match(refused.headers, { 'retry-after': '90', 'content-type': 'application/json' });
  t.equal(refused.body, '{"why":"busy"}');

  receiver.answer = (_request, response) => void response.writeHead(200).end(Buffer.alloc(2 * 1024 * 1024));
  t.equal(await post(url, secret, 'evt_4'), 502, 'an answer with a body of 2 MiB is not passed on');
  program.kill('SIGINT');
  t.match(await program.waitForExit(), { code: 0 });
});
