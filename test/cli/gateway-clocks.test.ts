/**
 * Ages in tables are by the gateway's clocks: what locks do has a time of the run's clock, which a demonstration speeds
 * up, and everything else has a real date. Also: locks of a closed merchant are not late, and long texts are wrapped
 * between words.
 */
import t, { type Test } from 'tap';
import { Days, Hours, ManualClock, Minutes, systemClock } from '../../proto/clock.js';
import { formatMac } from '../../proto/wire/mac.js';
import { formatDate } from '../../proto/wire/ping-json.js';
import { type CommandResult, runCommand } from '../helpers/cli/command-line.js';
import { ManualMachine } from '../helpers/clocks/manual-machine.js';
import { MERCHANT, testBytes, testGateway, testMac, waitForEvents } from '../helpers/gateway/test-gateway.js';
import { testReceiver } from '../helpers/gateway/test-receiver.js';
import { eventually, NO_JITTER } from '../helpers/gateway/webhook-setup.js';
import { TestLock } from '../helpers/mqtt/test-lock.js';

const MAC = formatMac(testMac());
const SPEED = 60;

/** A gateway whose run's clock is a month ahead of the date and fast; one lock; a URL that fails. */
async function setUp(t: Test) {
  const clock = new ManualClock(systemClock.now() + Days(30));
  const deliveryClock = new ManualClock(systemClock.now());
  // With 0.5 the waits between attempts have no jitter.
  const gateway = await testGateway(t, { runClock: clock, speed: SPEED, deliveryClock, random: NO_JITTER });
  const receiver = await testReceiver(t);
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  await gateway.accounts.addWebhookUrl({ url: receiver.url });
  const { secret } = await gateway.accounts.addDevice({ mac: testMac() });
  const lock = await TestLock.connect(t, gateway.mqttPort, testMac(), secret);
  const failed = waitForEvents(gateway, 'delivery', 1);
  await lock.send(testBytes(1, { timeMs: clock.now() }));
  await failed;
  const lockgate = async (args: string, columns = 200): Promise<CommandResult> =>
    await runCommand(args.split(' '), {
      columns,
      environment: {
        LOCKGATE_GATEWAY: `http://127.0.0.1:${gateway.operatorPort}`,
        LOCKGATE_TOKEN: gateway.operatorToken,
      },
    });
  return { gateway, clock, lock, lockgate };
}

t.test('ages of locks, commands and deliveries are by the run’s clock', async (t) => {
  const { gateway, clock, lockgate } = await setUp(t);
  await lockgate(`command send ${MAC} locate-gps`);
  await gateway.accounts.addDevice({ mac: testMac(2) });
  clock.advance(Minutes(30));
  t.match((await lockgate('device list')).stdout, new RegExp(`${MAC}.* 30 min ago`));
  t.match((await lockgate('command list')).stdout, / 30 min ago .*in \d+ (min|h|d)/, 'when it was made, and expires');
  const { stdout } = await lockgate('webhook deliveries --body');
  t.match(
    stdout,
    /pending +30 min ago .*next (now|(in )?\d+ s)\b/,
    'received by the run’s clock, sent again by the real one',
  );
  t.match(stdout, /1\. (now|\d+ s ago): /);
  t.match((await lockgate('webhook deliveries --since 20m')).stderr, /No deliveries match/);
  t.match((await lockgate('webhook deliveries --since 40m')).stdout, /pending/);
  t.match((await lockgate('webhook show 1')).stdout, /the oldest received 30 min ago/);
  t.match(
    (await lockgate('merchant list')).stdout,
    new RegExp(`${MERCHANT} +(now|\\d+ s ago)`),
    'added at a real date',
  );
  t.match((await lockgate('audit --since 1h')).stdout, /command\.send/);
  t.match((await lockgate(`why ${MAC}`)).stdout, /30 min ago/);
});

t.test('a URL is behind after a minute of real time, however fast the run’s clock is', async (t) => {
  const { clock, lockgate } = await setUp(t);
  clock.advance(Minutes(59));
  t.match((await lockgate('status')).stdout, /URLs {5}✓ 1 in order/, '59 s at 60 × speed');
  clock.advance(Minutes(2));
  t.match((await lockgate('status')).stdout, /1 of 1 in trouble[\s\S]*behind +1 +61 min ago/);
});

t.test('the locks of a closed merchant are not late, and are not counted', async (t) => {
  const { gateway, clock, lock, lockgate } = await setUp(t);
  const gone = waitForEvents(gateway, 'disconnected', 1);
  const closesSocketAtOnce = true;
  await lock.client.endAsync(closesSocketAtOnce);
  await gone;
  clock.advance(Days(3));
  const notices = async () => (await lockgate('notices --all')).stdout;
  await eventually('a notice', async () => /lock-late +! open/.test(await notices()));
  t.match((await lockgate('status')).stdout, /1 in service: ! 1 late;/);
  await lockgate(`merchant close ${MERCHANT} --yes`);
  await eventually('the notice is over', async () => /lock-late +✓ over/.test(await notices()));
  t.match((await lockgate('status')).stdout, /0 in service; 0 connected/);
  clock.advance(Days(2));
  t.notMatch(await notices(), /lock-late +! open/, 'and no other notice follows');
  await lockgate(`merchant reopen ${MERCHANT}`);
  await eventually('the notice is open again', async () => /lock-late +! open/.test(await notices()));
  t.match((await lockgate('status')).stdout, /1 in service: ! 1 late;/);
});

t.test('at 40 and 80 columns no word of status and webhook show is broken', async (t) => {
  const { gateway, lockgate } = await setUp(t);
  await gateway.accounts.importDevices(
    Array.from({ length: 1_200 }, (_, index) => ({ mac: formatMac(testMac(index + 10)), merchant: MERCHANT })),
    {},
  );
  for (const command of ['status', 'webhook show 1']) {
    const { stdout } = await lockgate(command, 40);
    // A line may be longer only if it has one word, after a label of up to 14 letters.
    for (const line of stdout.split('\n'))
      t.ok(line.length <= 40 || !/ /.test(line.trim().replace(/^.{0,14} /, '')), `${command}: ${line}`);
  }
  const { stdout } = await lockgate('webhook show 1', 80);
  t.match(stdout, /Backlog {7}1 undelivered \(1 wait for a retry\), the oldest received .*; 0\n {14}dead, 0 damaged/);
});

t.test('a long finding of device show is continued on the next line', async (t) => {
  const { clock, lock, lockgate } = await setUp(t);
  // A ping from the future breaks a rule.
  await lock.send(testBytes(2, { timeMs: clock.now() + Days(2) }));
  const { stdout } = await lockgate(`device show ${MAC}`, 60);
  const findings = stdout
    .slice(stdout.indexOf('Findings'))
    .split('\n')
    .filter((line) => line !== '');
  t.ok(
    findings.some((line) => /^ {4}\S/.test(line)),
    'a finding takes two lines',
  );
  for (const line of findings) t.ok(line.length <= 60, line);
});

t.test('an expiry counts from the gateway’s date', async (t) => {
  const { lockgate } = await setUp(t);
  const { stdout } = await lockgate('key create till --expires 2h --json');
  const { expires_at: expiresAt } = JSON.parse(stdout) as { readonly expires_at: string };
  const validMs = Date.parse(expiresAt) - systemClock.now();
  t.ok(validMs > Hours(2) - Minutes(1) && validMs <= Hours(2), `${expiresAt} at ${formatDate(systemClock.now())}`);
});

t.test('a link to the operators’ page expires by the gateway’s date, not by the clock of the caller', async (t) => {
  const gateway = await testGateway(t, { machine: new ManualMachine(systemClock.now() + Days(30)) });
  const { stderr } = await runCommand(['console', '--no-open'], {
    environment: {
      LOCKGATE_GATEWAY: `http://127.0.0.1:${gateway.operatorPort}`,
      LOCKGATE_TOKEN: gateway.operatorToken,
    },
  });
  t.match(stderr, /expires in 5 min/);
});
