// `why` about what stands in a gateway: deliveries at every outcome, long logs, and the command line.
import t, { type Test } from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { OPENS_AFTER } from '../../../gateway/webhooks/url/circuit.js';
import { OUTCOMES, type Outcome } from '../../../gateway/why/delivery-why.js';
import { REPLAYED_MOST } from '../../../gateway/why/lock-history.js';
import { Hours, ManualClock, Minutes, Seconds } from '../../../proto/clock.js';
import { formatMac, type Mac } from '../../../proto/wire/mac.js';
import { ask } from '../../helpers/cli/operator-call.js';
import { LOCKGATE, type Program, runProgram } from '../../helpers/cli/program.js';
import { type WhyAnswer, why } from '../../helpers/cli/why-answer.js';
import { eventsOf, MERCHANT, testBytes, testGateway, testMac } from '../../helpers/gateway/test-gateway.js';
import { eventually, toNextTimer, type WebhookBench, webhookBench } from '../../helpers/gateway/webhook-bench.js';
import { connectedLock, type TestLock } from '../../helpers/mqtt/test-lock.js';
import { writeStored } from '../../helpers/store/stored-bytes.js';
import { readEvents, storeEvents } from '../../helpers/store/stored-trace.js';

/** Outcomes that a test has seen through the operator's interface. */
const seen = new Set<string>();

/** What is told of an event's delivery to a URL, without the URL. */
async function toldOf(gateway: Gateway, id: string, urlId: number): Promise<string> {
  const { steps } = await why(gateway, `${id}/${urlId}`);
  const step = steps.find(({ kind }) => kind === 'delivery');
  seen.add(step?.code ?? '');
  return `${step?.code} ${step?.sentence.replace(/^URL \d+ \([^)]*\): /, '')}`;
}

/** Waits until the delivery stands so, and answers its sentence. */
async function standing(gateway: Gateway, id: string, urlId: number, outcome: Outcome): Promise<string> {
  let told = '';
  await eventually(outcome, async () => {
    told = await toldOf(gateway, id, urlId);
    return told.startsWith(`${outcome} `);
  });
  return told.slice(outcome.length + 1);
}

/** Sends a ping and answers its event id. */
async function ping(gateway: Gateway, lock: TestLock, sequence: number): Promise<string> {
  const taken = eventsOf(gateway, 'uplink', 1);
  await lock.send(testBytes(sequence));
  return (await taken)[0]?.eventId ?? '';
}

async function bench(
  t: Test,
  url: { readonly ordered?: boolean } = {},
): Promise<WebhookBench & { lock: TestLock; mac: Mac }> {
  const made = await webhookBench(t, url);
  const mac = testMac(1);
  return { ...made, mac, lock: await connectedLock(t, made.gateway, mac) };
}

/** Turns the clock to the retry that is due next, and waits until it is noted. */
async function nextAttempt(gateway: Gateway, clock: ManualClock): Promise<void> {
  const attempted = eventsOf(gateway, 'delivery', 1);
  await toNextTimer(clock);
  await attempted;
}

const operator = async (gateway: Gateway, where: string, body: object): Promise<void> => {
  const { status, body: answer } = await ask(gateway, 'POST', where, body);
  if (status >= 400) throw new Error(`${where}: ${status} ${JSON.stringify(answer)}`);
};

const RESENDS = '“lockgate webhook resend” sends it again';

t.test('delivered at once; after retries; dead; sent again', async (t) => {
  const { clock, gateway, receiver, urlId, lock } = await bench(t);
  const first = await ping(gateway, lock, 1);
  t.equal(await standing(gateway, first, urlId, 'delivered-at-once'), 'delivered, at the first attempt.');
  const { steps } = await why(gateway, first);
  const attempt = steps.find(({ kind }) => kind === 'attempt');
  t.match(attempt, { code: 'went-well', rests_on: 'interfaces.md §3', clock: 'wall' });
  t.match(attempt?.sentence, /^Attempt 1 at URL 1, at \S+Z: answer 204 within \d+ ms\.$/);

  receiver.answer = (_request, response) => void response.writeHead(500).end();
  const second = await ping(gateway, lock, 2);
  const waits = await standing(gateway, second, urlId, 'pending-retry');
  const next = new Date(clock.now() + 5000).toISOString();
  t.equal(waits, `waiting for its retry after one that failed: attempt 2 of 8 at ${next}.`);
  receiver.answer = (_request, response) => void response.writeHead(204).end();
  await toNextTimer(clock);
  const late = await standing(gateway, second, urlId, 'delivered-retried');
  t.equal(late, 'delivered, at attempt 2 of 8, after one that failed.');

  receiver.answer = (_request, response) => void response.writeHead(500).end();
  const third = await ping(gateway, lock, 3);
  await standing(gateway, third, urlId, 'pending-retry');
  for (let attempts = 1; attempts < 8; attempts++) await nextAttempt(gateway, clock);
  const given = await standing(gateway, third, urlId, 'dead');
  t.equal(given, `dead: given up after 8 attempts that failed; it stays readable, and ${RESENDS}.`);

  let answer = (): void => undefined;
  receiver.answer = (_request, response) => {
    answer = () => void response.writeHead(204).end();
  };
  await operator(gateway, `/events/${third}/resend`, { url_id: urlId });
  t.match(
    await standing(gateway, third, urlId, 'pending-resent'),
    /^waiting: somebody had it sent again; attempt 1 of 8 at /,
  );
  await receiver.received(11);
  answer();
  const again = await standing(gateway, third, urlId, 'delivered-resent');
  t.equal(again, 'delivered, at attempt 9, after somebody had it sent again.');

  receiver.answer = (_request, response) => void response.writeHead(500).end();
  const fourth = await ping(gateway, lock, 4);
  await standing(gateway, fourth, urlId, 'pending-retry');
  writeStored(gateway, 4, testBytes(5));
  await toNextTimer(clock);
  t.equal(
    await standing(gateway, fourth, urlId, 'damaged'),
    'waiting, damaged: its stored ping does not fit its checksum, and wrong bytes are sent to nobody; once its row ' +
      `is restored it is sent at the next start, or ${RESENDS}.`,
  );
});

t.test('a URL that is gone, disabled, enabled again, and recovered', async (t) => {
  const { gateway, receiver, urlId, lock } = await bench(t);
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  const waiting = await ping(gateway, lock, 1);
  await standing(gateway, waiting, urlId, 'pending-retry');
  receiver.answer = (_request, response) => void response.writeHead(410).end();
  const gone = await ping(gateway, lock, 2);
  t.equal(
    await standing(gateway, gone, urlId, 'dead-gone'),
    `dead: the receiver answered 410, which says that the URL is gone, so the URL was disabled; ${RESENDS} once it ` +
      `is ` +
      'enabled.',
  );
  const why410 = 'the receiver answered 410: the URL is gone';
  t.equal(
    await standing(gateway, waiting, urlId, 'pending-disabled'),
    `waiting: the URL is disabled (${why410}); what was promised goes on when it is enabled.`,
  );
  const kept = await ping(gateway, lock, 3);
  t.equal(
    await standing(gateway, kept, urlId, 'kept-disabled'),
    `not sent: the URL is disabled (${why410}). The event is kept; when the URL is enabled, “lockgate webhook ` +
      `recover” ` +
      'sends it.',
  );
  receiver.answer = (_request, response) => void response.writeHead(204).end();
  await operator(gateway, `/webhooks/${urlId}`, { state: 'active' });
  t.equal(
    await standing(gateway, kept, urlId, 'kept-gap'),
    'not sent: the URL was disabled when it came. The event is kept, and “lockgate webhook recover” sends it.',
  );
  await operator(gateway, '/deliveries/recover', { since: '2026-01-01T00:00:00Z' });
  t.equal(
    await standing(gateway, kept, urlId, 'delivered-recovered'),
    'delivered late: the URL was disabled when it came, and somebody asked for it afterwards (recover or resend).',
  );
});

t.test('a receiver that asked for patience', async (t) => {
  const { clock, gateway, receiver, urlId, lock } = await bench(t);
  receiver.answer = (_request, response) => void response.writeHead(429, { 'retry-after': '600' }).end();
  const asked = eventsOf(gateway, 'delivery', 1);
  await ping(gateway, lock, 1);
  await asked;
  const until = new Date(clock.now() + Minutes(10)).toISOString();
  const next = await ping(gateway, lock, 2);
  t.equal(
    await standing(gateway, next, urlId, 'pending-held'),
    `waiting: the receiver asked for patience (Retry-After), so nothing goes to the URL until ${until}.`,
  );
});

t.test('an open circuit, an order that is kept, a first attempt that waits', async (t) => {
  const { clock, gateway, receiver, urlId, lock } = await bench(t);
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  const opened = eventsOf(gateway, 'circuit', 1);
  const ids: string[] = [];
  for (let sequence = 1; sequence <= OPENS_AFTER; sequence++) {
    const attempted = eventsOf(gateway, 'delivery', 1);
    ids.push(await ping(gateway, lock, sequence));
    await attempted;
  }
  await opened;
  const open = await standing(gateway, ids[0] ?? '', urlId, 'pending-circuit');
  // The clock stands, so the first probe is 5 s from now.
  const probe = new Date(clock.now() + Seconds(5)).toISOString();
  t.equal(
    open.replace(/2 of 8 at \S+/, '2 of 8 at …'),
    `waiting: the URL only fails, so its circuit is open, and one event is tried at ${probe}, and then at most 5 min ` +
      'apart, until one goes well; this one’s attempt 2 of 8 at … at the earliest.',
  );
  await nextAttempt(gateway, clock);
  const later = new Date(clock.now() + Seconds(10)).toISOString();
  await eventually('the next probe', async () => (await toldOf(gateway, ids[1] ?? '', urlId)).includes(later));
  const { steps } = await why(gateway, `${ids[1]}/${urlId}`);
  t.equal(steps.find(({ kind }) => kind === 'delivery')?.at, later, 'nothing goes before the probe');

  const ordered = await bench(t, { ordered: true });
  ordered.receiver.answer = (_request, response) => void response.writeHead(500).end();
  const failing = await ping(ordered.gateway, ordered.lock, 1);
  await standing(ordered.gateway, failing, ordered.urlId, 'pending-retry');
  const behind = await ping(ordered.gateway, ordered.lock, 2);
  const third = await ping(ordered.gateway, ordered.lock, 3);
  for (const each of [behind, third])
    t.equal(
      (await standing(ordered.gateway, each, ordered.urlId, 'pending-behind')).replace(/at \S+Z/, 'at …'),
      `waiting behind an earlier event of this lock, ${failing} (attempt 2 of 8 at …): the URL keeps each lock’s ` +
        'order.',
    );

  const slow = await bench(t);
  slow.receiver.answer = () => undefined;
  await ping(slow.gateway, slow.lock, 1);
  const first = await ping(slow.gateway, slow.lock, 2);
  t.equal(
    await standing(slow.gateway, first, slow.urlId, 'pending-first'),
    'waiting for its first attempt, which is made as soon as its turn comes.',
  );
});

t.test('an address that is refused; a URL that was added later; no URL; no event', async (t) => {
  const { clock, gateway, urlId, lock, mac } = await bench(t);
  const inside = (await gateway.accounts.addWebhookUrl({ url: 'http://10.0.0.1/hook' })).url.id;
  const event = await ping(gateway, lock, 1);
  const refused = 'its address is not allowed (it is inside, or a metadata address)';
  t.match(
    await standing(gateway, event, inside, 'pending-refused'),
    `waiting: ${refused} unless the operator allows its range, so nothing was sent to it; attempt 2 of 8 at `,
  );
  await standing(gateway, event, urlId, 'delivered-at-once');
  for (let attempts = 1; attempts < 8; attempts++) await nextAttempt(gateway, clock);
  t.equal(
    await standing(gateway, event, inside, 'dead-refused'),
    `dead: ${refused}, so nothing was sent to it; ${RESENDS}.`,
  );
  const later = (await gateway.accounts.addWebhookUrl({ url: 'http://127.0.0.1:9/hook' })).url.id;
  t.equal(
    await standing(gateway, event, later, 'not-its-own'),
    `not sent: the URL was added after this event, and gets what comes from then on; ${RESENDS} to it all the same.`,
  );
  t.same(await ask(gateway, 'GET', `/why?id=${event}/99`).then(({ status }) => status), 404, 'no such URL');

  const bare = await testGateway(t);
  const other = await connectedLock(t, bare, mac);
  const unsent = await ping(bare, other, 1);
  const { steps } = await why(bare, unsent);
  t.match(
    steps.find(({ kind }) => kind === 'delivery'),
    { code: 'no-url', sentence: 'The lock’s merchant had no webhook URL to send it to.' },
  );
  const taken = eventsOf(bare, 'uplink', 1);
  const ack = { kind: 'ack', commandId: 7, result: 'ok', detail: '', highWindow: null } as const;
  await other.send(testBytes(2, { body: ack }));
  await taken;
  const answered = await why(bare, `${formatMac(mac)} 1/2`);
  t.match(
    answered.steps.find(({ kind }) => kind === 'delivery'),
    { code: 'no-event' },
  );
  t.match(answered.steps.find(({ kind }) => kind === 'command')?.sentence, 'It answers command 7: ok.');
  const test = await why(bare, 'evt_test_0123');
  t.match(test.steps[0]?.sentence, /^This is the id of a test webhook: somebody asked for it \(POST \/test_webhook/);
});

t.test('every outcome was seen', async (t) => {
  for (const outcome of OUTCOMES) t.ok(seen.has(outcome), outcome);
});

const MAC = formatMac(testMac(5));
const HEADER = `{"trace":"lockgate","version":1,"locks":{"${MAC}":{}}}`;
const START = Date.UTC(2026, 10, 20, 6);

/** A line of a trace, so many seconds after 06:00. */
function line(seconds: number, event: string, rest: object = {}): string {
  return JSON.stringify({ at: new Date(START + seconds * 1000).toISOString(), mac: MAC, event, ...rest });
}

function cell(seconds: number, reason: string): string {
  const fixed = { lock_state: 'locked', battery_percent: 80, firmware_version: '2.4.1', ebike_voltage: null };
  return line(seconds, 'ping', { ping: { ping_type: 'cellular', reason, ...fixed, tether_state: 'detached' } });
}

/** A day of a lock that had its daily ping and then lost its connection. */
const LOST = [
  HEADER,
  line(0, 'connect'),
  cell(1, 'REASON_PERIOD_TRACKING'),
  line(30, 'disconnect', { cause: 'dropped' }),
];

t.test('a lock at a moment and now: asleep, late with its finding, a command that waits', async (t) => {
  const runClock = new ManualClock(START);
  const gateway = await testGateway(t, { runClock });
  const { mac } = await storeEvents(gateway.store, testMac(5), readEvents(LOST));
  runClock.advance(Hours(5));
  await operator(gateway, '/commands', { macs: [MAC], type: 'locate-gps', asked_by: 'Ada' });
  runClock.advance(Hours(1));
  const { about, steps } = await why(gateway, MAC, '10:59');
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
  const command = await why(gateway, 'command:1');
  const waits = command.steps.find(({ code }) => code === 'waits-connection')?.sentence;
  t.match(waits, /^It waits: lock not connected.*; a lock hears commands only while it is connected\.$/);
  t.match(
    (await why(gateway, MAC)).steps.find(({ code }) => code === 'open')?.sentence,
    'Command 1 (locate-gps) was not answered yet: asked for at 2026-11-20T11:00:00.000Z, expires at 2026-11-21T11:00',
  );
  runClock.advance(Hours(20));
  const late = await why(gateway, MAC);
  t.match(
    late.steps.find(({ kind }) => kind === 'silence'),
    { code: 'late-period', at: '2026-11-21T07:00:01.000Z', clock: 'run', rests_on: 'protocol.md §3' },
  );
});

t.test('what stands on more than the log: a moved lock, a long life, two clocks, two under one name', async (t) => {
  const runClock = new ManualClock(START);
  const gateway = await testGateway(t, { runClock });
  const lock = await connectedLock(t, gateway, testMac(1));
  const event = await ping(gateway, lock, 1);
  await gateway.accounts.addMerchant('Basil');
  await gateway.accounts.addWebhookUrl({ url: 'http://127.0.0.1:9/hook', merchant: MERCHANT });
  const two = await why(gateway, event);
  t.match(two.steps[0], { kind: 'clocks', code: 'two' });
  t.match(two.steps[0]?.sentence, `Two clocks: the run’s stands at ${two.now}, by which locks live; the wall’s at`);
  t.not(two.now, two.wall_now);
  await gateway.accounts.devices.change(testMac(1), { merchant: 'Basil' });
  const moved = (await why(gateway, event)).steps.find(({ kind }) => kind === 'bound');
  t.match(moved, { code: 'moved', sentence: /^The lock was another merchant’s then/ });

  const long = [HEADER, line(0, 'connect')];
  for (let index = 0; index <= REPLAYED_MOST; index++) long.push(cell(1 + index, 'REASON_NETWORK_PING'));
  await storeEvents(gateway.store, testMac(5), readEvents(long));
  runClock.advance(Hours(2));
  const cut = (await why(gateway, MAC)).steps[0];
  t.match(cut, { kind: 'bound', code: 'cut' });
  t.equal(
    cut?.sentence,
    'The log goes back further: only the last 2,500 uplinks and as many events were judged again.',
  );
  t.not((await why(gateway, `${MAC} 1/100`)).steps[0]?.kind, 'bound', 'what lies before it is all there is');

  const twice = readEvents([HEADER, line(0, 'connect'), cell(1, 'REASON_RESET')]);
  const again = readEvents([HEADER, cell(2, 'REASON_NETWORK_PING')]);
  const conflict = { events: [...twice.events, ...again.events], lock: twice.lock };
  await storeEvents(gateway.store, testMac(6), conflict);
  const { status, body } = await ask(gateway, 'GET', `/why?id=${encodeURIComponent(`${formatMac(testMac(6))} 1/1`)}`);
  t.equal(status, 400);
  t.match((body as { detail: string }).detail, /1\/1 is 2 uplinks: say evt_A4C138000006_\S+, evt_A4C138000006_/);
});

t.test('the command line: for people, for programs, and how it fails', async (t) => {
  const runClock = new ManualClock(START);
  const gateway = await testGateway(t, { runClock });
  const { findings } = await storeEvents(gateway.store, testMac(5), readEvents(LOST));
  runClock.advance(Hours(6));
  const at = ['--gateway', `http://127.0.0.1:${gateway.operatorPort}`, '--token', gateway.operatorToken];
  const run = (...args: string[]): Promise<Program> =>
    runProgram(t, process.execPath, [LOCKGATE, 'why', ...args, ...at]);
  const id = findings.get('not-closed');
  const shown = await run(`finding:${id}`);
  t.equal(shown.ended?.code, 0, shown.stderr.join('\n'));
  const text = shown.stdout.join('\n');
  t.match(
    text,
    new RegExp(`^finding:${id}  ${MAC}\nrule-broken   It broke not-closed, a warning \\(finding:${id}\\): The`),
  );
  t.match(text, / {14}protocol.md §3; 2026-11-20T06:00:30.000Z \(5 h ago\)\n/);
  t.match(text, / {14}specification, Ping \(device message\)\n/);
  t.match(text, /in 18 h\)/, 'what is still to come');
  t.ok(shown.stdout.every((each) => each.length <= 100));
  const json = await run(MAC, '--at', '2h ago', '--json');
  const document = JSON.parse(json.stdout.join('\n')) as WhyAnswer;
  t.match(document, { about: { kind: 'lock', id: MAC, mac: MAC }, now: '2026-11-20T12:00:00.000Z' });
  for (const step of document.steps)
    t.same(Object.keys(step), ['kind', 'code', 'sentence', 'rests_on', 'at', 'clock'], step.kind);
  const show = await runProgram(t, process.execPath, [LOCKGATE, 'device', 'show', MAC, ...at]);
  t.ok(
    show.stdout.some((each) => each.includes(`finding:${id}`)),
    'device show prints what can be asked about',
  );
  const ends: readonly (readonly [args: string[], code: number, says: RegExp])[] = [
    [['finding:999'], 1, /^lockgate: there is no finding 999/],
    [['A4:C1:38:00:00:99'], 1, /^lockgate: there is no lock|^lockgate: .*A4:C1:38:00:00:99/],
    [['12'], 2, /12 could be several things: say finding:12, command:12 or quarantine:12/],
    [['finding:1', '--at', '2h'], 2, /a time goes with a MAC alone/],
    [[MAC, '--at', 'soon'], 2, /expected a date such as/],
    [[MAC, '--url', '1'], 2, /--url requires an event/],
  ];
  for (const [args, code, says] of ends) {
    const ended = await run(...args);
    t.equal(ended.ended?.code, code, args.join(' '));
    t.match(ended.stderr.join('\n'), says);
    t.same(ended.stdout, []);
  }
  const down = await runProgram(t, process.execPath, [
    LOCKGATE,
    'why',
    MAC,
    '--gateway',
    'http://127.0.0.1:9',
    '--token',
    'x',
  ]);
  t.equal(down.ended?.code, 3);
  t.match(down.stderr.join('\n'), /no gateway at http:\/\/127\.0\.0\.1:9/);
});
