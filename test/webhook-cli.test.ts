/** `lockgate webhook …` as people and programs use it: real processes against a real gateway. */
import t from 'tap';
import type { Gateway } from '../gateway/gateway.js';
import { LOCKGATE, type Program, runProgram } from './helpers/program.js';
import { type Teardown, tempFolder } from './helpers/temp-folder.js';
import { MERCHANT, openGateway, testBytes, testMac } from './helpers/test-gateway.js';
import { connectedLock } from './helpers/test-lock.js';
import { testReceiver } from './helpers/test-receiver.js';
import { deliveriesOf, eventually } from './helpers/webhook-bench.js';

const MAC = testMac();

interface Said {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(test: Teardown, args: readonly string[]): Promise<Said> {
  const program: Program = await runProgram(test, process.execPath, [LOCKGATE, 'webhook', ...args]);
  const [stdout, stderr] = [program.stdout.join('\n'), program.stderr.join('\n')];
  return { code: program.ended?.code ?? null, stdout, stderr };
}

interface CliBench {
  readonly gateway: Gateway;
  readonly webhook: (...args: string[]) => Promise<Said>;
}

async function cliBench(test: Teardown): Promise<CliBench> {
  const gateway = await openGateway(test, tempFolder(test));
  await gateway.accounts.addMerchant(MERCHANT);
  const place = ['--gateway', `http://127.0.0.1:${gateway.operatorPort}`, '--token', gateway.operatorToken];
  return { gateway, webhook: (...args) => run(test, [...args, ...place]) };
}

t.test('set, rotate-secret, remove: for people, for programs, and how they fail', async (t) => {
  const { webhook } = await cliBench(t);
  await webhook('add', 'http://127.0.0.1:9/a', '--header', 'X-Team: bikes', '--ordered');
  const set = ['set', '1', '--url', 'http://127.0.0.1:9/b', '--ordered', 'off', '--header', 'X-Two: 2', '--disable'];
  t.match(JSON.parse((await webhook(...set, '--json')).stdout), {
    url: 'http://127.0.0.1:9/b',
    headers: ['X-Team', 'X-Two'],
    ordered: false,
    state: 'disabled',
  });
  t.match(await webhook('list'), { code: 0, stdout: /ID +MERCHANT .*\n1 .*disabled by the operator/ });
  const enabled = await webhook('set', '1', '--enable', '--remove-header', 'x-team');
  t.match(enabled, { code: 0, stdout: /is active.*\nHeaders: X-Two/, stderr: /webhook recover --url 1/ });
  const rotated = JSON.parse((await webhook('rotate-secret', '1', '--grace', '1h', '--json')).stdout);
  t.match(rotated, { secret: /^whsec_/, old_secrets_until: [/^20/] });
  t.match(await webhook('rotate-secret', '1', '--now'), { code: 0, stdout: /whsec_/, stderr: /old one signs nothing/ });
  const listed = await webhook('list', '--json');
  t.match(JSON.parse(listed.stdout), { webhooks: [{ circuit: 'closed', old_secrets_until: [], failing_since: null }] });
  t.notMatch(listed.stdout, /whsec_|secret_sealed/, 'no secret is shown twice');
  t.match(await webhook('remove', '1'), { code: 0, stdout: /Removed webhook URL 1: http:\/\/127.0.0.1:9\/b/ });
  t.match(await webhook('remove', '1'), { code: 3, stderr: /there is no webhook URL 1/ });
  const wrong: [string[], number, RegExp][] = [
    [['set', '1'], 3, /no webhook URL 1/],
    [['set', 'x', '--enable'], 2, /Expected a number/],
    [['set', '1', '--enable', '--disable'], 2, /not both/],
    [['set', '1', '--ordered', 'maybe'], 2, /Expected on or off/],
    [['rotate-secret', '1', '--grace', '1 hour'], 2, /such as 90s, 15m, 1h or 2d/],
    [['rotate-secret', '1', '--grace', '1h', '--now'], 2, /not both/],
    [['add', 'http://127.0.0.1:9/', '--since', 'yesterday'], 2, /since is "yesterday": expected a date such as/],
  ];
  for (const [args, code, stderr] of wrong) t.match(await webhook(...args), { code, stderr }, args.join(' '));
});

t.test('deliveries, resend, recover: for people, for programs, and how they fail', async (t) => {
  const { gateway, webhook } = await cliBench(t);
  const receiver = await testReceiver(t);
  receiver.answer = ({ json }, response) => void response.writeHead(json.sequence === 1 ? 500 : 200).end('fine\n');
  await gateway.accounts.addWebhookUrl({ url: receiver.url });
  const lock = await connectedLock(t, gateway, MAC);
  for (const sequence of [1, 2]) await lock.send(testBytes(sequence));
  const ofState = (state: 'pending' | 'delivered') => deliveriesOf(gateway, [state]);
  await eventually('one of each', async () => {
    return (await ofState('pending'))[0]?.attempts.length === 1 && (await ofState('delivered')).length === 1;
  });
  const { deliveries } = JSON.parse((await webhook('deliveries', '--json')).stdout);
  t.match(deliveries, [
    { url_id: 1, mac: 'A4:C1:38:00:00:01', state: 'delivered', attempts: [{ number: 1, status: 200, error: null }] },
    { state: 'pending', next_attempt_at: /^20/, attempts: [{ status: 500, error: 'the receiver answered 500' }] },
  ]);
  const shown = await webhook('deliveries', '--state', 'pending', '--mac', MAC, '--url', '1', '--limit', '5');
  t.match(shown, {
    code: 0,
    stdout: /URL 1 {2}pending, next attempt at .*evt_.*\n {2}1\. 20.* 500 in \d+ ms: .*"fine/,
  });
  t.match(await webhook('deliveries', '--state', 'dead'), { code: 0, stdout: '', stderr: /no such delivery/ });
  receiver.answer = (_request, response) => void response.writeHead(204).end();
  const since = '2020-01-01T00:00:00Z';
  t.match(await webhook('recover', '--since', since), { code: 0, stdout: /URL +SENT AGAIN\n1 +1/ });
  await eventually('both are delivered', async () => (await ofState('delivered')).length === 2);
  const event = deliveries[0].event_id;
  t.match(await webhook('resend', event), { code: 0, stdout: 'Sent again to URL 1.' });
  await receiver.received(4);
  t.equal(receiver.requests[3]?.headers['webhook-id'], event, 'under its own id');
  const wrong: [string[], number, RegExp][] = [
    [['deliveries', '--state', 'lost'], 2, /state is "lost": expected pending, delivered, dead, kept/],
    [['deliveries', '--limit', '501'], 2, /expected a number, 1 to 500/],
    [['deliveries', '--mac', 'zz'], 2, /12 hex digits/],
    [['deliveries', '--mac', 'A4C138F0E1D2'], 3, /no device/],
    [['deliveries', '--url', '7'], 3, /no webhook URL 7/],
    [['resend', 'evt_nonsense'], 2, /no event id/],
    [['resend', event.replace(/.$/, event.endsWith('0') ? '1' : '0')], 3, /there is no event/],
    [['resend', event, '--url', '7'], 3, /no webhook URL 7/],
    [['recover'], 2, /--since/],
    [['recover', '--since', since, '--until', since], 2, /until is not after since/],
  ];
  for (const [args, code, stderr] of wrong) t.match(await webhook(...args), { code, stderr }, args.join(' '));
});

t.test('test: each URL’s answer, and the exit code says whether all were well', async (t) => {
  const { gateway, webhook } = await cliBench(t);
  const receiver = await testReceiver(t);
  await gateway.accounts.addDevice({ mac: MAC });
  t.match(await webhook('test', MAC), { code: 3, stderr: /no webhook URL that is active/ });
  await gateway.accounts.addWebhookUrl({ url: receiver.url });
  const { origin } = new URL(receiver.url);
  const fine = await webhook('test', MAC);
  t.match(fine, { code: 0, stdout: new RegExp(`URL +ORIGIN .*\n1 +${origin} +204 +\\d+ ms +received`) });
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  t.match(await webhook('test', MAC), { code: 1, stdout: /500 .*the receiver answered 500/ });
  const failed = await webhook('test', MAC, '--json');
  t.match(JSON.parse(failed.stdout), { status: 'error', deliveries: [{ url_id: 1, origin, status: 500 }] });
  t.equal(failed.code, 1);
  t.match(await webhook('test', 'zz'), { code: 2, stderr: /12 hex digits/ });
  t.match(await webhook('test', MAC, '--url', '7'), { code: 3, stderr: /no webhook URL 7/ });
});

t.test('every webhook command has help with an example', async (t) => {
  const commands = [
    'add',
    'list',
    'set',
    'remove',
    'rotate-secret',
    'deliveries',
    'resend',
    'recover',
    'test',
    'listen',
  ];
  for (const command of commands) {
    const help = await run(t, [command, '--help']);
    t.match(help, { code: 0, stdout: new RegExp(`Example:\n  \\$ lockgate webhook ${command}`) }, command);
  }
});
