/**
 * Details of tables and errors for operators: status names the origin of a URL in trouble and leaves out closed
 * merchants, the audit log names the token, an age has the largest fitting unit, and an error names the wrong flag.
 */
import t from 'tap';
import { secondsAgoText } from '../../cli/terminal/time-text.js';
import type { Gateway } from '../../gateway/gateway.js';
import { runCommand } from '../helpers/cli/command-line.js';
import { MERCHANT, testGateway } from '../helpers/gateway/test-gateway.js';

const URL = 'https://hooks.example.com/locks';

/** Runs a command on 200 columns, by default with the operator token that the gateway made at its start. */
const lockgate = async (gateway: Gateway, args: readonly string[], token = gateway.operatorToken) =>
  await runCommand(args, {
    columns: 200,
    environment: { LOCKGATE_GATEWAY: `http://127.0.0.1:${gateway.operatorPort}`, LOCKGATE_TOKEN: token },
  });

t.test('status names the origin of a URL in trouble, and leaves out those of closed merchants', async (t) => {
  const gateway = await testGateway(t);
  await lockgate(gateway, ['webhook', 'add', URL, '--merchant', MERCHANT]);
  await lockgate(gateway, ['webhook', 'set', '1', '--disable']);
  t.match(
    (await lockgate(gateway, ['status'])).stdout,
    /1 of 1 in trouble.*disabled.*https:\/\/hooks\.example\.com\n/s,
  );
  await lockgate(gateway, ['merchant', 'close', MERCHANT, '--yes']);
  t.match((await lockgate(gateway, ['status'])).stdout, /URLs {5}✓ 0 in order/);
});

t.test('the audit log names the token that was used', async (t) => {
  const gateway = await testGateway(t);
  const { stdout } = await lockgate(gateway, ['token', 'create', 'night-shift', '--role', 'operate', '--json']);
  const { token } = JSON.parse(stdout) as { readonly token: string };
  await lockgate(gateway, ['webhook', 'add', URL, '--merchant', MERCHANT], token);
  const { stdout: table } = await lockgate(gateway, ['audit']);
  t.match(table, /token night-shift.* webhook\.add/);
  t.match(table, /operator .* token\.create/, 'the first token has no name');
});

t.test('an error names the wrong flag', async (t) => {
  const gateway = await testGateway(t);
  await gateway.accounts.addMerchant('Blue');
  const add = ['webhook', 'add', URL, '--merchant', MERCHANT];
  const create = ['--merchant', MERCHANT, '--expires', '2020-01-01'];
  for (const [args, sentence] of [
    [[...add, '--events', 'pong'], /--events: "pong" is no type of event/],
    [[...add, '--reasons', 'NONE'], /--reasons: "NONE" is no reason/],
    [[...add, '--ping-types', 'radio'], /--ping-types: "radio" is no ping type/],
    [['key', 'create', 'map', ...create], /--expires: a key must expire in the future/],
    [['token', 'create', 'ada', '--role', 'read', '--expires', '2020-01-01'], /--expires: a token must expire/],
    [['key', 'create', 'map'], /--merchant: which merchant\? there are 2/],
  ] as const)
    t.match(await lockgate(gateway, args), { code: 2, stderr: sentence }, args.join(' '));
});

t.test('a long age is shown in minutes, a very short one as now', async (t) => {
  // Any time.
  const nowMs = Date.UTC(2026, 0, 5);
  t.equal(secondsAgoText(2_625.4, nowMs), '43 min ago');
  t.equal(secondsAgoText(0.2, nowMs), 'now');
});
