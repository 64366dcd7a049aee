// `lockgate why` and `GET /why` explain from a gateway's store why an event was or was not delivered, and why a lock
// has its presence (interfaces.md §4): every outcome of a delivery, locks, long logs, and the command line.
import t, { type Test } from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { FAILURES_TO_OPEN } from '../../../gateway/webhooks/url/circuit.js';
import { OUTCOMES, type Outcome } from '../../../gateway/why/delivery-why.js';
import { MAX_REPLAYED_UPLINKS } from '../../../gateway/why/lock-history.js';
import { Hours, ManualClock, Minutes, Seconds } from '../../../proto/clock.js';
import { formatMac, type Mac } from '../../../proto/wire/mac.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { type CommandOutput, runLockgate } from '../../helpers/cli/program.js';
import { requestWhy, type WhyAnswer } from '../../helpers/cli/why-answer.js';
import { MERCHANT, testBytes, testGateway, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import {
  advanceToNextTimer,
  eventually,
  setUpWebhooks,
  type WebhookSetup,
} from '../../helpers/gateway/webhook-setup.js';
import { followLink } from '../../helpers/house/document-links.js';
import { connectedLock, type TestLock } from '../../helpers/mqtt/test-lock.js';
import { writeStored } from '../../helpers/store/stored-bytes.js';
import { readTraceLines, storeEvents } from '../../helpers/store/stored-trace.js';

/** The outcomes that the tests below got from the operators' interface. */
const seenOutcomes = new Set<string>();

/** The code and sentence of an event's delivery to a URL, without the URL. */
async function readOutcome(gateway: Gateway, id: string, urlId: number): Promise<string> {
  const { steps } = await requestWhy(gateway, `${id}/${urlId}`);
  const step = steps.find(({ kind }) => kind === 'delivery');
  seenOutcomes.add(step?.code ?? '');
  return `${step?.code} ${step?.sentence.replace(/^URL \d+ \([^)]*\): /, '')}`;
}

/** Waits until the delivery has this outcome, and returns its sentence. */
async function waitForOutcome(gateway: Gateway, id: string, urlId: number, outcome: Outcome): Promise<string> {
  let outcomeText = '';
  await eventually(outcome, async () => {
    outcomeText = await readOutcome(gateway, id, urlId);
    return outcomeText.startsWith(`${outcome} `);
  });
  return outcomeText.slice(outcome.length + 1);
}

/** Sends a ping and returns its event id. */
async function ping(gateway: Gateway, lock: TestLock, sequence: number): Promise<string> {
  const stored = waitForEvents(gateway, 'uplink', 1);
  await lock.send(testBytes(sequence));
  return (await stored)[0]?.eventId ?? '';
}

async function setUpWhy(
  t: Test,
  url: { readonly ordered?: boolean } = {},
): Promise<WebhookSetup & { lock: TestLock; mac: Mac }> {
  const webhooks = await setUpWebhooks(t, url);
  const mac = testMac(1);
  return { ...webhooks, mac, lock: await connectedLock(t, webhooks.gateway, mac) };
}

/** Advances the clock to the next retry, and waits until its result is recorded. */
async function nextAttempt(gateway: Gateway, clock: ManualClock): Promise<void> {
  const attempted = waitForEvents(gateway, 'delivery', 1);
  await advanceToNextTimer(clock);
  await attempted;
}

const postAsOperator = async (gateway: Gateway, route: string, body: object): Promise<void> => {
  const { status, body: answer } = await callOperator(gateway, 'POST', route, body);
  if (status >= 400) throw new Error(`${route}: ${status} ${JSON.stringify(answer)}`);
};

const RESEND_HINT = '“lockgate webhook resend” sends it again';

t.test('why explains an event that was delivered, retried, given up, sent again or damaged', async (t) => {
  const { clock, gateway, receiver, urlId, lock } = await setUpWhy(t);
  const first = await ping(gateway, lock, 1);
  t.equal(await waitForOutcome(gateway, first, urlId, 'delivered-at-once'), 'delivered, at the first attempt.');
  const { steps } = await requestWhy(gateway, first);
  const attempt = steps.find(({ kind }) => kind === 'attempt');
  t.match(attempt, { code: 'went-well', rests_on: 'interfaces.md §3', clock: 'wall' });
  t.match(attempt?.sentence, /^Attempt 1 at URL 1, at \S+Z: answer 204 within \d+ ms\.$/);

  receiver.answer = (_request, response) => void response.writeHead(500).end();
  const second = await ping(gateway, lock, 2);
  const waitText = await waitForOutcome(gateway, second, urlId, 'pending-retry');
  const next = new Date(clock.now() + 5000).toISOString();
  t.equal(waitText, `waiting for its retry after one failed attempt: attempt 2 of 8 at ${next}.`);
  receiver.answer = (_request, response) => void response.writeHead(204).end();
  await advanceToNextTimer(clock);
  const delivered = await waitForOutcome(gateway, second, urlId, 'delivered-retried');
  t.equal(delivered, 'delivered, at attempt 2 of 8, after one failed attempt.');

  receiver.answer = (_request, response) => void response.writeHead(500).end();
  const third = await ping(gateway, lock, 3);
  await waitForOutcome(gateway, third, urlId, 'pending-retry');
  for (let attempts = 1; attempts < 8; attempts++) await nextAttempt(gateway, clock);
  const dead = await waitForOutcome(gateway, third, urlId, 'dead');
  t.equal(dead, `dead: given up after 8 failed attempts; it stays readable, and ${RESEND_HINT}.`);

  let answer = (): void => undefined;
  receiver.answer = (_request, response) => {
    answer = () => void response.writeHead(204).end();
  };
  await postAsOperator(gateway, `/events/${third}/resend`, { url_id: urlId });
  t.match(
    await waitForOutcome(gateway, third, urlId, 'pending-resent'),
    /^waiting: it is to be sent again on request; attempt 1 of 8 at /,
  );
  await receiver.waitForRequests(11);
  answer();
  const repeated = await waitForOutcome(gateway, third, urlId, 'delivered-resent');
  t.equal(repeated, 'delivered, at attempt 9, after a request to send it again.');

  receiver.answer = (_request, response) => void response.writeHead(500).end();
  const fourth = await ping(gateway, lock, 4);
  await waitForOutcome(gateway, fourth, urlId, 'pending-retry');
  writeStored(gateway, 4, testBytes(5));
  await advanceToNextTimer(clock);
  t.equal(
    await waitForOutcome(gateway, fourth, urlId, 'damaged'),
    'waiting, damaged: its stored ping does not match its checksum, and damaged bytes are never sent; once the ' +
      `stored ping is restored, it is sent at the next start, or ${RESEND_HINT}.`,
  );
});

t.test('why explains the events of a URL that is gone, disabled, enabled again, and recovered', async (t) => {
  const { gateway, receiver, urlId, lock } = await setUpWhy(t);
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  const waiting = await ping(gateway, lock, 1);
  await waitForOutcome(gateway, waiting, urlId, 'pending-retry');
  receiver.answer = (_request, response) => void response.writeHead(410).end();
  const goneEvent = await ping(gateway, lock, 2);
  t.equal(
    await waitForOutcome(gateway, goneEvent, urlId, 'dead-gone'),
    `dead: the receiver answered 410, which says that the URL is gone, so the URL was disabled; ${RESEND_HINT} once ` +
      'it is enabled.',
  );
  const why410 = 'the receiver answered 410: the URL is gone';
  t.equal(
    await waitForOutcome(gateway, waiting, urlId, 'pending-disabled'),
    `waiting: the URL is disabled (${why410}); the attempts continue when it is enabled.`,
  );
  const keptEvent = await ping(gateway, lock, 3);
  t.equal(
    await waitForOutcome(gateway, keptEvent, urlId, 'kept-disabled'),
    `not sent: the URL is disabled (${why410}). The event is stored; when the URL is enabled, “lockgate ` +
      'webhook recover” sends it.',
  );
  receiver.answer = (_request, response) => void response.writeHead(204).end();
  await postAsOperator(gateway, `/webhooks/${urlId}`, { state: 'active' });
  t.equal(
    await waitForOutcome(gateway, keptEvent, urlId, 'kept-gap'),
    'not sent: the URL was disabled when the event came. The event is stored, and “lockgate webhook recover” sends it.',
  );
  await postAsOperator(gateway, '/deliveries/recover', { since: '2026-01-01T00:00:00Z' });
  t.equal(
    await waitForOutcome(gateway, keptEvent, urlId, 'delivered-recovered'),
    'delivered late: the URL was disabled when the event came, and an operator requested it later (recover or resend).',
  );
});

t.test('why explains the wait for a receiver that answered with Retry-After', async (t) => {
  const { clock, gateway, receiver, urlId, lock } = await setUpWhy(t);
  receiver.answer = (_request, response) => void response.writeHead(429, { 'retry-after': '600' }).end();
  const asked = waitForEvents(gateway, 'delivery', 1);
  await ping(gateway, lock, 1);
  await asked;
  const until = new Date(clock.now() + Minutes(10)).toISOString();
  const next = await ping(gateway, lock, 2);
  t.equal(
    await waitForOutcome(gateway, next, urlId, 'pending-held'),
    `waiting: the receiver asked for a pause (Retry-After), so nothing is sent to the URL until ${until}.`,
  );
});

t.test('why explains waits for an open circuit, for an ordered URL, and for a first attempt', async (t) => {
  const { clock, gateway, receiver, urlId, lock } = await setUpWhy(t);
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  const opened = waitForEvents(gateway, 'circuit', 1);
  const ids: string[] = [];
  for (let sequence = 1; sequence <= FAILURES_TO_OPEN; sequence++) {
    const attempted = waitForEvents(gateway, 'delivery', 1);
    ids.push(await ping(gateway, lock, sequence));
    await attempted;
  }
  await opened;
  const open = await waitForOutcome(gateway, ids[0] ?? '', urlId, 'pending-circuit');
  // The clock does not advance by itself, so the first probe is 5 s from now.
  const probe = new Date(clock.now() + Seconds(5)).toISOString();
  t.equal(
    open.replace(/2 of 8 at \S+/, '2 of 8 at …'),
    `waiting: every attempt at the URL fails, so its circuit is open, and one event is tried at ${probe}, ` +
      'and then at most 5 min apart, until one succeeds; for this event attempt 2 of 8 at … at the earliest.',
  );
  await nextAttempt(gateway, clock);
  const laterUrlId = new Date(clock.now() + Seconds(10)).toISOString();
  await eventually('the next probe', async () =>
    (await readOutcome(gateway, ids[1] ?? '', urlId)).includes(laterUrlId),
  );
  const { steps } = await requestWhy(gateway, `${ids[1]}/${urlId}`);
  t.equal(steps.find(({ kind }) => kind === 'delivery')?.at, laterUrlId, 'nothing is sent before the probe');

  const ordered = await setUpWhy(t, { ordered: true });
  ordered.receiver.answer = (_request, response) => void response.writeHead(500).end();
  const failing = await ping(ordered.gateway, ordered.lock, 1);
  await waitForOutcome(ordered.gateway, failing, ordered.urlId, 'pending-retry');
  const behind = await ping(ordered.gateway, ordered.lock, 2);
  const third = await ping(ordered.gateway, ordered.lock, 3);
  for (const each of [behind, third])
    t.equal(
      (await waitForOutcome(ordered.gateway, each, ordered.urlId, 'pending-behind')).replace(/at \S+Z/, 'at …'),
      `waiting behind an earlier event of this lock, ${failing} (attempt 2 of 8 at …): the URL gets each lock’s ` +
        'events in order.',
    );

  const slow = await setUpWhy(t);
  slow.receiver.answer = () => undefined;
  await ping(slow.gateway, slow.lock, 1);
  const first = await ping(slow.gateway, slow.lock, 2);
  t.equal(
    await waitForOutcome(slow.gateway, first, slow.urlId, 'pending-first'),
    'waiting for its first attempt, which is made as soon as it is its turn.',
  );
});

t.test('why explains a refused address, a URL added later, a missing URL, and what is no event', async (t) => {
  const { clock, gateway, urlId, lock, mac } = await setUpWhy(t);
  const internalUrlId = (await gateway.accounts.addWebhookUrl({ url: 'http://10.0.0.1/hook' })).url.id;
  const event = await ping(gateway, lock, 1);
  const refused = 'the URL’s address is not allowed (it is internal, or a metadata address)';
  t.match(
    await waitForOutcome(gateway, event, internalUrlId, 'pending-refused'),
    `waiting: ${refused} unless the operator allows its range, so nothing was sent; attempt 2 of 8 at `,
  );
  await waitForOutcome(gateway, event, urlId, 'delivered-at-once');
  for (let attempts = 1; attempts < 8; attempts++) await nextAttempt(gateway, clock);
  t.equal(
    await waitForOutcome(gateway, event, internalUrlId, 'dead-refused'),
    `dead: ${refused}, so nothing was sent; ${RESEND_HINT}.`,
  );
  const laterUrlId = (await gateway.accounts.addWebhookUrl({ url: 'http://127.0.0.1:9/hook' })).url.id;
  t.equal(
    await waitForOutcome(gateway, event, laterUrlId, 'not-its-own'),
    `not sent: the URL was added after this event, and gets only later events; ${RESEND_HINT} to it all the same.`,
  );
  t.same(await callOperator(gateway, 'GET', `/why?id=${event}/99`).then(({ status }) => status), 404, 'no such URL');

  const urllessGateway = await testGateway(t);
  const other = await connectedLock(t, urllessGateway, mac);
  const unsent = await ping(urllessGateway, other, 1);
  const { steps } = await requestWhy(urllessGateway, unsent);
  t.match(
    steps.find(({ kind }) => kind === 'delivery'),
    { code: 'no-url', sentence: 'The lock’s merchant had no webhook URL to send it to.' },
  );
  const stored = waitForEvents(urllessGateway, 'uplink', 1);
  const ack = { kind: 'ack', commandId: 7, result: 'ok', detail: '', highWindow: null } as const;
  await other.send(testBytes(2, { body: ack }));
  await stored;
  const answered = await requestWhy(urllessGateway, `${formatMac(mac)} 1/2`);
  t.match(
    answered.steps.find(({ kind }) => kind === 'delivery'),
    { code: 'no-event' },
  );
  t.match(answered.steps.find(({ kind }) => kind === 'command')?.sentence, 'It answers command 7: ok.');
  const test = await requestWhy(urllessGateway, 'evt_test_0123');
  t.match(test.steps[0]?.sentence, /^This is the id of a test webhook, which was requested \(POST \/test_webhook/);
});

t.test('the tests above got every outcome', async (t) => {
  for (const outcome of OUTCOMES) t.ok(seenOutcomes.has(outcome), outcome);
});

const MAC = formatMac(testMac(5));
const HEADER = `{"trace":"lockgate","version":1,"locks":{"${MAC}":{}}}`;
const START_MS = Date.UTC(2026, 10, 20, 6);

/** A line of a trace, `seconds` after 06:00. */
function line(seconds: number, event: string, rest: object = {}): string {
  return JSON.stringify({ at: new Date(START_MS + seconds * 1000).toISOString(), mac: MAC, event, ...rest });
}

function cell(seconds: number, reason: string): string {
  const fixed = { lock_state: 'locked', battery_percent: 80, firmware_version: '2.4.1', ebike_voltage: null };
  return line(seconds, 'ping', { ping: { ping_type: 'cellular', reason, ...fixed, tether_state: 'detached' } });
}

/** The trace of a lock that sends its daily ping and then loses its connection. */
const LOST_CONNECTION = [
  HEADER,
  line(0, 'connect'),
  cell(1, 'REASON_PERIOD_TRACKING'),
  line(30, 'disconnect', { cause: 'dropped' }),
];

t.test('why explains a lock at a past time and now: asleep, late, and with a waiting command', async (t) => {
  const runClock = new ManualClock(START_MS);
  const gateway = await testGateway(t, { runClock });
  const { mac } = await storeEvents(gateway.store, testMac(5), readTraceLines(LOST_CONNECTION));
  runClock.advance(Hours(5));
  await postAsOperator(gateway, '/commands', { macs: [MAC], type: 'locate-gps', asked_by: 'Ada' });
  runClock.advance(Hours(1));
  const { about, steps } = await requestWhy(gateway, MAC, '10:59');
  t.same(about, { kind: 'lock', id: MAC, mac: formatMac(mac) });
  const sentences = steps.map(({ kind, code, sentence }) => `${kind} ${code}: ${sentence}`);
  t.match(sentences, [
    'state MID: The gateway’s view then, from uplink 1/1: MID, locked, battery 80 %. Mode MID: the lock sleeps, and ' +
      'wakes for theft, its daily ping, a change of lock state, and a ride.',
    'silence asleep-period: Asleep, as the model expects in MID: its last daily ping came at ' +
      '2026-11-20T06:00:01.000Z, so the next is due by 2026-11-21T06:00:01.000Z, and it counts as late after ' +
      '2026-11-21T07:00:01.000Z (period-overdue), counted from its last daily ping at 2026-11-20T06:00:01.000Z.',
    /^connection dropped: Its last connection ended at 2026-11-20T06:00:30.000Z: the connection broke off without a/,
    'before last-uplink: The last uplink before it: a ping REASON_PERIOD_TRACKING (1/1), received at ' +
      '2026-11-20T06:00:01.000Z',
    'after nothing: Nothing has come from it since.',
    /^next asleep-period: Now: Asleep, as the model expects in MID/,
  ]);
  const command = await requestWhy(gateway, 'command:1');
  const waitText = command.steps.find(({ code }) => code === 'waits-connection')?.sentence;
  t.match(waitText, /^It waits: lock not connected.*; a lock receives commands only while it is connected\.$/);
  t.match(
    (await requestWhy(gateway, MAC)).steps.find(({ code }) => code === 'open')?.sentence,
    'Command 1 (locate-gps) was not answered yet: requested at 2026-11-20T11:00:00.000Z, expires at 2026-11-21T11:00',
  );
  runClock.advance(Hours(20));
  const delivered = await requestWhy(gateway, MAC);
  t.match(
    delivered.steps.find(({ kind }) => kind === 'silence'),
    { code: 'late-period', at: '2026-11-21T07:00:01.000Z', clock: 'run', rests_on: 'protocol.md §3' },
  );
});

t.test('why explains two clocks, a moved lock, a shortened log, and two uplinks with one key', async (t) => {
  const runClock = new ManualClock(START_MS);
  const gateway = await testGateway(t, { runClock });
  const lock = await connectedLock(t, gateway, testMac(1));
  const event = await ping(gateway, lock, 1);
  await gateway.accounts.addMerchant('Basil');
  await gateway.accounts.addWebhookUrl({ url: 'http://127.0.0.1:9/hook', merchant: MERCHANT });
  const clocksAnswer = await requestWhy(gateway, event);
  t.match(clocksAnswer.steps[0], { kind: 'clocks', code: 'two' });
  t.match(
    clocksAnswer.steps[0]?.sentence,
    `Two clocks: the run’s clock, for locks, shows ${clocksAnswer.now}; the wall clock, for`,
  );
  t.not(clocksAnswer.now, clocksAnswer.wall_now);
  await gateway.accounts.devices.change(testMac(1), { merchant: 'Basil' });
  const moved = (await requestWhy(gateway, event)).steps.find(({ kind }) => kind === 'bound');
  t.match(moved, { code: 'moved', sentence: /^The lock belonged to another merchant then/ });

  const longLog = [HEADER, line(0, 'connect')];
  for (let index = 0; index <= MAX_REPLAYED_UPLINKS; index++) longLog.push(cell(1 + index, 'REASON_NETWORK_PING'));
  await storeEvents(gateway.store, testMac(5), readTraceLines(longLog));
  runClock.advance(Hours(2));
  const cutStep = (await requestWhy(gateway, MAC)).steps[0];
  t.match(cutStep, { kind: 'bound', code: 'cut' });
  t.equal(
    cutStep?.sentence,
    'The log goes back further: only the last 2,500 uplinks and as many connection events were replayed.',
  );
  t.not((await requestWhy(gateway, `${MAC} 1/100`)).steps[0]?.kind, 'bound', 'nothing before that uplink is left out');

  const firstLife = readTraceLines([HEADER, line(0, 'connect'), cell(1, 'REASON_RESET')]);
  const repeated = readTraceLines([HEADER, cell(2, 'REASON_NETWORK_PING')]);
  const conflict = { events: [...firstLife.events, ...repeated.events], lock: firstLife.lock };
  await storeEvents(gateway.store, testMac(6), conflict);
  const { status, body } = await callOperator(
    gateway,
    'GET',
    `/why?id=${encodeURIComponent(`${formatMac(testMac(6))} 1/1`)}`,
  );
  t.equal(status, 400);
  t.match((body as { detail: string }).detail, /1\/1 is 2 uplinks: use evt_A4C138000006_\S+, evt_A4C138000006_/);
});

t.test('“lockgate why” prints text or JSON, and fails with a sentence and an exit code', async (t) => {
  const runClock = new ManualClock(START_MS);
  const gateway = await testGateway(t, { runClock });
  const { findings } = await storeEvents(gateway.store, testMac(5), readTraceLines(LOST_CONNECTION));
  runClock.advance(Hours(6));
  const at = ['--gateway', `http://127.0.0.1:${gateway.operatorPort}`, '--token', gateway.operatorToken];
  const run = (...args: string[]): Promise<CommandOutput> => runLockgate(['why', ...args, ...at]);
  const id = findings.get('not-closed');
  const printed = await run(`finding:${id}`);
  t.equal(printed.exit?.code, 0, printed.stderr.join('\n'));
  const text = printed.stdout.join('\n');
  t.match(
    text,
    new RegExp(`^finding:${id}  ${MAC}\nrule-broken   It broke not-closed, a warning \\(finding:${id}\\): The`),
  );
  t.match(text, / {14}protocol.md §3; 2026-11-20T06:00:30.000Z \(5 h ago\)\n/);
  t.match(text, / {14}specification, Ping \(device message\)\n/);
  t.match(text, /in 18 h\)/, 'a future time is relative too');
  t.ok(printed.stdout.every((each) => each.length <= 100));
  const json = await run(MAC, '--at', '2h ago', '--json');
  const document = JSON.parse(json.stdout.join('\n')) as WhyAnswer;
  t.match(document, { about: { kind: 'lock', id: MAC, mac: MAC }, now: '2026-11-20T12:00:00.000Z' });
  t.same(
    document.steps.flatMap(({ link }) => followLink(link) ?? []),
    [],
    'each step’s link leads to an anchor',
  );
  for (const step of document.steps)
    t.same(Object.keys(step), ['kind', 'code', 'sentence', 'rests_on', 'link', 'at', 'clock'], step.kind);
  const deviceShow = await runLockgate(['device', 'show', MAC, ...at]);
  t.ok(
    deviceShow.stdout.some((each) => each.includes(`finding:${id}`)),
    'device show prints ids that “why” accepts',
  );
  const failures: readonly (readonly [args: string[], code: number, message: RegExp])[] = [
    [['finding:999'], 1, /^lockgate: there is no finding 999/],
    [['A4:C1:38:00:00:99'], 1, /^lockgate: there is no lock|^lockgate: .*A4:C1:38:00:00:99/],
    [['12'], 2, /12 is ambiguous: use finding:12, command:12 or quarantine:12/],
    [['finding:1', '--at', '2h'], 2, /a time is accepted only with a MAC/],
    [[MAC, '--at', 'soon'], 2, /expected a date such as/],
    [[MAC, '--url', '1'], 2, /--url requires an event/],
  ];
  for (const [args, code, message] of failures) {
    const ended = await run(...args);
    t.equal(ended.exit?.code, code, args.join(' '));
    t.match(ended.stderr.join('\n'), message);
    t.same(ended.stdout, []);
  }
  const unreachable = await runLockgate(['why', MAC, '--gateway', 'http://127.0.0.1:9', '--token', 'x']);
  t.equal(unreachable.exit?.code, 3);
  t.match(unreachable.stderr.join('\n'), /no gateway at http:\/\/127\.0\.0\.1:9/);
});
