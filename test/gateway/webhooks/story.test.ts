/**
 * Stories: scripted series of pings, such as a theft, that an operator can send to a merchant's receivers as test
 * webhooks. They match the power model's table of triggers (protocol.md §2), are sent like test webhooks (interfaces.md
 * §3), and `lockgate webhook trigger` sends and prints them.
 */
import t from 'tap';
import { STORIES } from '../../../firmware-sim/story/story.js';
import { runStory, type StoryLock } from '../../../firmware-sim/story/story-run.js';
import type { Gateway } from '../../../gateway/gateway.js';
import { STORY_PINGS_PER_MINUTE, TESTS_PER_MINUTE } from '../../../gateway/webhooks/webhook-test.js';
import { ManualClock, Minutes, Seconds, systemClock } from '../../../proto/clock.js';
import { periodMinuteOf } from '../../../proto/power/step/reading.js';
import type { Mac } from '../../../proto/wire/mac.js';
import { pingUplinkToJson } from '../../../proto/wire/ping-json.js';
import { Webhook } from '../../clients/webhook-libraries.js';
import { LOCKGATE, Program, runProgram } from '../../helpers/cli/program.js';
import { MERCHANT, openGateway, testBytes, testMac, testUplink } from '../../helpers/gateway/test-gateway.js';
import { testReceiver } from '../../helpers/gateway/test-receiver.js';
import { setUpWebhooks } from '../../helpers/gateway/webhook-setup.js';
import { connectedLock } from '../../helpers/mqtt/test-lock.js';
import { JudgedRun } from '../../helpers/pair/judged-uplinks.js';
import { type Teardown, tempFolder } from '../../helpers/store/temp-folder.js';

const MAC = testMac();
const AMSTERDAM = { latitudeDegrees: 52.3702, longitudeDegrees: 4.8952 };

/** A lock as it last reported itself, from which a story starts. */
function lockOf(mac: Mac): StoryLock {
  const reported = { firmwareVersion: '3.1', batteryPercent: 64, ebikeVolts: 36.5, tetherState: 'attached' } as const;
  return { mac, ...reported, place: AMSTERDAM };
}

/** A lock counts its boots from 1; the pings of stories have boot 0, so that they can't be taken for the lock's own. */
const STORY_START = { startMs: Date.UTC(2026, 10, 20, 6), boot: 0, firstSequence: 500 };

/** @throws Error if there is no story with this name */
function pingsOfStory(name: string, mac = MAC) {
  const story = STORIES.find((each) => each.name === name);
  if (story === undefined) throw new Error(`there is no story ${name}`);
  return runStory(story, lockOf(mac), STORY_START);
}

/** A story's pings, each as its seconds (a theft is over 6 s of motion: 6,001 ms), type, reason and lock state. */
function storyLines(name: string, mac = MAC): string[] {
  return pingsOfStory(name, mac).map(({ afterMs, uplink: { body } }) => {
    return `${Math.round(afterMs / Seconds(1))} ${body.kind} ${body.reason.replace('REASON_', '')} ${body.lockState}`;
  });
}

// The expected reasons, their order and their times follow from the table of triggers in protocol.md §2.
t.test('each story has the pings of its trigger', async (t) => {
  /** The lines of repeated pings; times in seconds. */
  const repeated = (from: number, until: number, every: number, what: string): string[] =>
    Array.from({ length: Math.floor((until - from) / every) + 1 }, (_, index) => `${from + index * every} ${what}`);
  // The lock moves for 90 s. The theft starts after 6 s of motion, the story's second 0, so the motion ends at 84 s,
  // and the theft at 204 s, after 2 min without motion. In all stories a first fix takes 30 s, and an idle connection
  // is closed after 20 s.
  const theft = [
    '0 cellular THEFT locked',
    ...repeated(30, 80, 10, 'gps THEFT locked'),
    '204 close_connection CLOSE_CONNECTION locked',
  ];
  t.same(storyLines('theft'), theft);
  const unlockedAndFound = ['0 cellular STATE_PING unlocked', '30 gps STATE_PING unlocked'];
  const closeConnection = (seconds: number, state = 'unlocked') =>
    `${seconds} close_connection CLOSE_CONNECTION ${state}`;
  t.same(storyLines('state-change'), [...unlockedAndFound, closeConnection(50)]);
  t.same(storyLines('phone'), [
    '0 cellular PHONE unlocked',
    '1 cellular STATE_PING unlocked',
    '31 gps STATE_PING unlocked',
    closeConnection(51),
  ]);
  const period = ['0 cellular PERIOD_TRACKING locked', '30 gps PERIOD_TRACKING locked', closeConnection(50, 'locked')];
  t.same(storyLines('period'), period);
  t.same(storyLines('ride'), [
    ...['0 cellular STATE_PING unlocked', '15 cellular UNLOCKED_MOVEMENT unlocked', '30 gps STATE_PING unlocked'],
    // At least every 5 min while the ride lasts. The last GPS fix is fresh, so the next takes only 5 s.
    ...['315 cellular UNLOCKED_MOVEMENT unlocked', '370 cellular STATE_PING locked', '375 gps STATE_PING locked'],
    closeConnection(395, 'locked'),
  ]);
  t.same(storyLines('commute'), [
    ...['0 cellular STATE_PING unlocked', '15 cellular UNLOCKED_MOVEMENT unlocked', '30 gps STATE_PING unlocked'],
    ...repeated(30, 240, 30, 'gps UNLOCKED_PING unlocked'),
    ...['250 cellular STATE_PING locked', '250 gps STATE_PING locked', closeConnection(270, 'locked')],
  ]);
  // After 16 min the lock gets another power mode, in which it does not stay connected.
  const network = [
    '0 cellular NETWORK_PING locked',
    '900 cellular NETWORK_PING locked',
    closeConnection(960, 'locked'),
  ];
  t.same(storyLines('network'), network);
  t.same(storyLines('gps'), ['0 gps GPS_PING locked']);
  t.same(storyLines('cell'), ['0 cellular CELL_PING locked']);
  t.same(storyLines('reset'), ['0 cellular RESET locked', closeConnection(20, 'locked')]);
  t.same(storyLines('close'), [closeConnection(0, 'locked')]);
  // The theft begins two minutes later, after 6 s of motion. The motion ends at 170 s, and the theft 2 min after that.
  t.same(storyLines('low-battery'), [
    ...[closeConnection(0, 'locked'), '126 cellular THEFT locked', '156 gps THEFT locked', '166 gps THEFT locked'],
    closeConnection(290, 'locked'),
  ]);
  t.ok(pingsOfStory('low-battery').every(({ uplink }) => uplink.body.batteryPercent === 9));
});

// In the story “late” a lock rides without coverage and sends its pings afterwards.
t.test('the story “late” is sent at once when coverage returns, oldest ping first', async (t) => {
  const late = pingsOfStory('late');
  const bufferedPings = late.slice(0, -1);
  t.same([...new Set(bufferedPings.map(({ afterMs }) => afterMs))], [0]);
  const dates = bufferedPings.map(({ uplink }) => uplink.timeMs);
  t.same(
    dates,
    dates.toSorted((a, b) => a - b),
  );
  t.ok(
    dates.every((timeMs) => timeMs < STORY_START.startMs - Minutes(1)),
    'they count as buffered',
  );
  t.same(
    late.map(({ uplink }) => uplink.sequence),
    late.map((_, index) => 500 + index),
  );
});

t.test('the judge has no findings about any story, whenever the lock sends its daily ping', async (t) => {
  // A lock sends its daily ping in a minute of the day that follows from its MAC. The minutes below are the first and
  // the last of the day, one soon after the stories' start at 6:00, and one long after it.
  const macWithPeriodMinute = (minute: number): Mac => {
    for (let number = 1; ; number++) if (periodMinuteOf(testMac(number)) === minute) return testMac(number);
  };
  for (const mac of [MAC, ...[0, 6 * 60 + 1, 14 * 60, 1439].map(macWithPeriodMinute)])
    for (const { name } of STORIES) {
      const run = new JudgedRun(STORY_START.startMs, { listeningSinceMs: STORY_START.startMs });
      for (const { afterMs, source, uplink } of pingsOfStory(name, mac))
        if (source === 'lock') run.receive(uplink, STORY_START.startMs + afterMs);
      t.same(run.contentFindings, [], name);
      t.same(storyLines(name, mac), storyLines(name), 'the same for every lock');
    }
});

t.test('a story starts from the lock’s last known state and position', async (t) => {
  for (const { uplink } of pingsOfStory('theft')) {
    const { body } = uplink;
    t.equal(body.batteryPercent, 64);
    if (body.kind === 'close_connection') continue;
    t.match(body, { ebikeVolts: 36.5, tetherState: 'attached' });
    if (body.position === null) continue;
    t.ok(Math.abs(body.position.latitudeDegrees - AMSTERDAM.latitudeDegrees) < 0.01);
    t.ok(Math.abs(body.position.longitudeDegrees - AMSTERDAM.longitudeDegrees) < 0.01);
  }
  for (const place of [
    { latitudeDegrees: 90, longitudeDegrees: 0 },
    { latitudeDegrees: -214, longitudeDegrees: 200 },
    null,
  ]) {
    const [theft] = STORIES;
    if (theft === undefined) throw new Error('there is no story');
    const [, gps] = runStory(theft, { ...lockOf(MAC), place }, STORY_START);
    t.match(
      gps?.uplink.body,
      { position: { latitudeDegrees: /^52\.37/ } },
      'without a position it happens in Amsterdam',
    );
  }
});

t.test('the pings of a phone have successive sequence numbers', async (t) => {
  const story = STORIES.find(({ name }) => name === 'phone');
  if (story === undefined) throw new Error('there is no story phone');
  const secondPing = { afterMs: Seconds(20), type: 'phone', lockState: 'locked' } as const;
  const pings = runStory({ ...story, events: [...story.events, secondPing] }, lockOf(MAC), STORY_START);
  const numbers = pings.flatMap(({ source, uplink }) => (source === 'phone' ? [uplink.sequence] : []));
  t.same(numbers, [500, 501]);
});

interface TriggerResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function gatewayFlags(gateway: Gateway): string[] {
  return ['--gateway', `http://127.0.0.1:${gateway.operatorPort}`, '--token', gateway.operatorToken];
}

/** Runs `lockgate webhook trigger` to its end. */
async function trigger(test: Teardown, gateway: Gateway, ...args: string[]): Promise<TriggerResult> {
  const programArguments = [LOCKGATE, 'webhook', 'trigger', ...args, ...gatewayFlags(gateway)];
  const program = await runProgram(test, process.execPath, programArguments);
  const [stdout, stderr] = [program.stdout.join('\n'), program.stderr.join('\n')];
  return { code: program.exit?.code ?? null, stdout, stderr };
}

t.test(
  'trigger sends a story’s pings signed and in order, each with a separate id, and shows every answer',
  async (t) => {
    const { gateway, receiver, secret } = await setUpWebhooks(t, { headers: { 'X-Team': 'bikes' } });
    const lock = await connectedLock(t, gateway, MAC);
    await lock.send(testBytes(1));
    await receiver.waitForRequests(1);
    const before = systemClock.now();
    const result = await trigger(t, gateway, 'theft', MAC, '--fast', '--json');
    t.match(result, { code: 0, stderr: '' });
    const lines = result.stdout.split('\n').map((line) => JSON.parse(line));
    const testRequests = receiver.requests.slice(1);
    t.same(
      lines.map((line) => line.event_id),
      testRequests.map(({ headers }) => headers['webhook-id']),
    );
    t.equal(new Set(lines.map((line) => line.event_id)).size, 8, 'each has its own id');
    t.ok(lines.every((line) => /^evt_test_/.test(line.event_id) && line.deliveries[0].status === 204));
    t.same(
      testRequests.map(({ json }) => json.reason),
      [...Array(7).fill('REASON_THEFT'), 'REASON_CLOSE_CONNECTION'],
    );
    for (const { headers, body, json } of testRequests) {
      t.match(json, { mac_addr: 'A4:C1:38:00:00:01', battery_percent: 81, test: true, buffered: false, boot: 0 });
      t.equal(json.received_at, json.date);
      t.doesNotThrow(() => new Webhook(secret).verify(body, headers as Record<string, string>));
      t.match(headers, { 'x-team': 'bikes', 'user-agent': /^lockgate\// });
    }
    const dateMs = (index: number): number => Date.parse(testRequests[index]?.json.date as string);
    // The theft begins after 6 s and 1 ms of motion, so it ends a millisecond before the full second.
    t.same(
      [dateMs(1) - dateMs(0), dateMs(7) - dateMs(0)],
      [Seconds(30), Seconds(204) - 1],
      'the times between dates are the real ones',
    );
    t.ok(dateMs(7) <= systemClock.now() && dateMs(7) >= before, 'and no date is in the future');
    const late = await trigger(t, gateway, 'late', MAC, '--fast');
    t.match(late, {
      code: 0,
      stdout: /0:00 {2}cellular REASON_STATE_PING unlocked 81%\n +URL 1 .* 204 in \d+ ms +received/,
    });
    t.match(late.stderr, /late: 11 pings of A4:C1:38:00:00:01, without waiting\. A tracked ride/);
    // The first nine are the lock's own ping and the eight of the theft.
    const buffered = receiver.requests.slice(9).map(({ json }) => json.buffered);
    t.same(buffered, [...Array(10).fill(true), false]);
    const sequences = receiver.requests.slice(1).map(({ json }) => json.sequence as number);
    t.same(
      sequences,
      [...new Set(sequences)].toSorted((a, b) => a - b),
      'each story is newer than the one before',
    );
  },
);

t.test('trigger has exit codes, can send to one URL, and lists stories', async (t) => {
  const { gateway, receiver } = await setUpWebhooks(t);
  await gateway.accounts.addDevice({ mac: MAC });
  const other = await testReceiver(t);
  await gateway.accounts.addWebhookUrl({ url: other.url });
  other.answer = ({ json }, response) => void response.writeHead(json.ping_type === 'gps' ? 500 : 200).end();
  const failed = await trigger(t, gateway, 'state-change', MAC, '--fast');
  t.match(failed, { code: 1, stdout: /URL 2 .* 500 in \d+ ms +the receiver answered 500/ });
  t.match(failed.stderr, /1 of 3 pings were not accepted by every URL/);
  t.equal(receiver.requests.length, 3, 'the other URLs got all pings');
  t.match(await trigger(t, gateway, 'gps', MAC, '--fast', '--url', '1'), { code: 0 });
  t.same([receiver.requests.length, other.requests.length], [4, 3]);
  const wrongCalls: [string[], number, RegExp][] = [
    [['fire', MAC], 2, /there is no story "fire"\. Expected one of theft, commute/],
    [[], 2, /the story is missing/],
    [['theft'], 2, /the lock is missing/],
    [['theft', 'zz'], 2, /12 hex digits/],
    [['gps', 'A4C138F0E1D2'], 3, /no device/],
    [['gps', MAC, '--url', '7'], 3, /no webhook URL 7/],
  ];
  for (const [args, code, stderr] of wrongCalls)
    t.match(await trigger(t, gateway, ...args), { code, stderr }, args.join(' '));
  const list = await trigger(t, gateway, '--list');
  for (const { name, sentence } of STORIES)
    t.ok(
      list.stdout.split('\n').some((line) => line.startsWith(name) && line.endsWith(sentence)),
      name,
    );
  const { stories } = JSON.parse((await trigger(t, gateway, '--list', '--json')).stdout);
  t.match(stories[0], { story: 'theft', pings: 8, seconds: 204 });
});

t.test('trigger waits for the time of each ping, and Ctrl-C ends it with exit code 130', async (t) => {
  const { gateway, receiver } = await setUpWebhooks(t);
  await gateway.accounts.addDevice({ mac: MAC });
  const programArguments = [LOCKGATE, 'webhook', 'trigger', 'theft', MAC, ...gatewayFlags(gateway)];
  const program = new Program(t, process.execPath, programArguments);
  await program.waitForLine(/URL 1/);
  program.kill('SIGINT');
  t.same(await program.waitForExit(), { code: 130, signal: null });
  t.match(program.stderr.join('\n'), /over 3:24(.|\n)*Interrupted: 1 of 8 pings were sent/);
  t.equal(receiver.requests.length, 1, 'nothing more was sent');
  receiver.answer = () => undefined;
  const unanswered = new Program(t, process.execPath, [...programArguments, '--fast']);
  await receiver.waitForRequests(2);
  unanswered.kill('SIGINT');
  t.same(await unanswered.waitForExit(), { code: 130, signal: null }, 'also while it waits for an answer');
  t.match(unanswered.stderr.join('\n'), /0 of 8 pings were sent/);
});

t.test('the operator’s route accepts only pings that a lock could send, and a limited number per minute', async (t) => {
  const clock = new ManualClock(systemClock.now());
  const { gateway, receiver } = await setUpWebhooks(t, {}, { deliveryClock: clock });
  await gateway.accounts.addDevice({ mac: MAC });
  const call = async (body: unknown) => {
    const response = await fetch(`http://127.0.0.1:${gateway.operatorPort}/devices/${MAC}/test-webhook`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.operatorToken}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as { code?: string; detail?: string } };
  };
  const ping = pingUplinkToJson(testUplink(7) as Parameters<typeof pingUplinkToJson>[0]);
  const refused: [unknown, string, RegExp][] = [
    [{ ping: {} }, 'input-ping', /ping/],
    [{ ping: { ...ping, lock_state: 'ajar' } }, 'input-ping', /lock_state/],
    [{ ping: { ...ping, reason: 'REASON_ALARM' } }, 'input-ping', /reason/],
    [{ ping: { id: 1, result: 'ok', boot: 1, sequence: 1, date: ping.date } }, 'input-ping', /acknowledgement/],
    [{ ping: { ...ping, firmware_version: 'x'.repeat(1024) } }, 'input-ping', /bytes: a lock may send at most 1024/],
    [{ ping: { ...ping, firmware_version: '\ud800' } }, 'input-ping', /well-formed Unicode/],
    [{ ping, received_at: 'now' }, 'input-date', /received_at is "now": expected a date/],
    [{ ping, received_at: '1969-12-31T23:59:59.999Z' }, 'input-date', /from 1970 on/],
    [{ ping: 'theft' }, 'input-body', /object/],
  ];
  for (const [body, code, detail] of refused)
    t.match(await call(body), { status: 400, body: { code, detail } }, JSON.stringify(body).slice(0, 80));
  t.equal(receiver.requests.length, 0, 'a refused ping is not sent');
  for (let count = 0; count < STORY_PINGS_PER_MINUTE; count++) t.equal((await call({ ping })).status, 200);
  t.match(await call({ ping }), {
    status: 429,
    body: { code: 'rate-limited', detail: /120 pings of stories a minute/ },
  });
  for (let count = 0; count < TESTS_PER_MINUTE; count++)
    t.equal((await call({})).status, 200, 'test webhooks have a separate limit');
  t.equal((await call({})).status, 429);
  clock.advance(Minutes(1));
  t.equal((await call({ ping })).status, 200);
  t.match(receiver.requests.at(-1)?.json, { sequence: 7, test: true, buffered: true, simulated: false });
});

t.test('many tests at once leak no listeners, and a test of a moved lock reveals nothing of its past', async (t) => {
  const warnings: string[] = [];
  const onWarning = ({ name }: Error): void => void warnings.push(name);
  process.on('warning', onWarning);
  t.teardown(() => process.off('warning', onWarning));
  const { gateway, receiver } = await setUpWebhooks(t);
  const lock = await connectedLock(t, gateway, MAC);
  await lock.send(testBytes(1));
  await Promise.all(Array.from({ length: 25 }, () => gateway.webhooks.tester.test(MAC)));
  t.equal(receiver.requests.length, 26, 'the ping and each test');
  t.same(warnings, []);
  await gateway.accounts.addMerchant('Birch');
  const other = await testReceiver(t);
  await gateway.accounts.addWebhookUrl({ url: other.url, merchant: 'Birch' });
  await gateway.accounts.devices.change(MAC, { merchant: 'Birch' });
  await gateway.webhooks.tester.test(MAC);
  t.match(other.requests[0]?.json, { battery_percent: 80, firmware_version: '1.0.0' }, 'an invented ping');
});

t.test('a forbidden address is refused for a story too', async (t) => {
  const gateway = await openGateway(t, tempFolder(t), {}, { allowWebhookRange: [] });
  await gateway.accounts.addMerchant(MERCHANT);
  await gateway.accounts.addDevice({ mac: MAC });
  await gateway.accounts.addWebhookUrl({ url: 'http://127.0.0.1:9/' });
  const result = await trigger(t, gateway, 'gps', MAC, '--fast');
  t.match(result, { code: 1, stdout: /URL 1 {2}http:\/\/127.0.0.1:9 {2}no answer {2}the address is not allowed/ });
});
