/**
 * `GET /why`, which `lockgate why` prints, explains from what a gateway has stored why an event was or was not
 * delivered to a webhook URL (interfaces.md §4). The tests produce every outcome of a delivery, with a receiver that
 * answers as each test says, and compare its sentence; the last test checks that none is missing.
 */
import t, { type Test } from 'tap';
import type { Gateway } from '../../../gateway/gateway.js';
import { FAILURES_TO_OPEN } from '../../../gateway/webhooks/url/circuit.js';
import { OUTCOMES, type Outcome } from '../../../gateway/why/delivery-why.js';
import { type ManualClock, Minutes, Seconds } from '../../../proto/clock.js';
import { formatMac, type Mac } from '../../../proto/wire/mac.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { requestWhy } from '../../helpers/cli/why-answer.js';
import { testBytes, testGateway, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import {
  advanceToNextTimer,
  eventually,
  setUpWebhooks,
  type WebhookSetup,
} from '../../helpers/gateway/webhook-setup.js';
import { connectedLock, type TestLock } from '../../helpers/mqtt/test-lock.js';
import { writeStored } from '../../helpers/store/stored-bytes.js';

/** The outcomes that the tests below have read. */
const seenOutcomes = new Set<string>();

/** The code and sentence of an event's delivery to a URL, without the sentence's “URL 1 (http://…): ”. */
async function readOutcome(gateway: Gateway, id: string, urlId: number): Promise<string> {
  const { steps } = await requestWhy(gateway, `${id}/${urlId}`);
  const step = steps.find(({ kind }) => kind === 'delivery');
  seenOutcomes.add(step?.code ?? '');
  return `${step?.code} ${step?.sentence.replace(/^URL \d+ \([^)]*\): /, '')}`;
}

/** Waits until the delivery of the event `id` has this outcome, and returns its sentence. */
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

/** A gateway with a receiver as its merchant's webhook URL, and a connected lock. */
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

/** Posts to the operators' interface. @throws Error if it refuses */
const postAsOperator = async (gateway: Gateway, route: string, body: object): Promise<void> => {
  const { status, body: answer } = await callOperator(gateway, 'POST', route, body);
  if (status >= 400) throw new Error(`${route}: ${status} ${JSON.stringify(answer)}`);
};

const RESEND_HINT = '“lockgate webhook resend” sends it again';

t.test('why explains an event that was delivered, retried, given up, sent again or damaged', async (t) => {
  const { clock, gateway, receiver, urlId, lock } = await setUpWhy(t);
  const firstEvent = await ping(gateway, lock, 1);
  t.equal(await waitForOutcome(gateway, firstEvent, urlId, 'delivered-at-once'), 'delivered, at the first attempt.');
  const { steps } = await requestWhy(gateway, firstEvent);
  const attempt = steps.find(({ kind }) => kind === 'attempt');
  t.match(attempt, { code: 'went-well', rests_on: 'interfaces.md §3', clock: 'wall' });
  t.match(attempt?.sentence, /^Attempt 1 at URL 1, at \S+Z: answer 204 within \d+ ms\.$/);

  receiver.answer = (_request, response) => void response.writeHead(500).end();
  const secondEvent = await ping(gateway, lock, 2);
  const waitText = await waitForOutcome(gateway, secondEvent, urlId, 'pending-retry');
  const next = new Date(clock.now() + 5000).toISOString();
  t.equal(waitText, `waiting for its retry after one failed attempt: attempt 2 of 8 at ${next}.`);
  receiver.answer = (_request, response) => void response.writeHead(204).end();
  await advanceToNextTimer(clock);
  const retriedText = await waitForOutcome(gateway, secondEvent, urlId, 'delivered-retried');
  t.equal(retriedText, 'delivered, at attempt 2 of 8, after one failed attempt.');

  receiver.answer = (_request, response) => void response.writeHead(500).end();
  const thirdEvent = await ping(gateway, lock, 3);
  await waitForOutcome(gateway, thirdEvent, urlId, 'pending-retry');
  for (let attempts = 1; attempts < 8; attempts++) await nextAttempt(gateway, clock);
  const deadText = await waitForOutcome(gateway, thirdEvent, urlId, 'dead');
  t.equal(deadText, `dead: given up after 8 failed attempts; it stays readable, and ${RESEND_HINT}.`);

  let answerResend = (): void => undefined;
  receiver.answer = (_request, response) => {
    answerResend = () => void response.writeHead(204).end();
  };
  const requestsBeforeResend = receiver.requests.length;
  await postAsOperator(gateway, `/events/${thirdEvent}/resend`, { url_id: urlId });
  t.match(
    await waitForOutcome(gateway, thirdEvent, urlId, 'pending-resent'),
    /^waiting: it is to be sent again on request; attempt 1 of 8 at /,
  );
  await receiver.waitForRequests(requestsBeforeResend + 1);
  answerResend();
  const resentText = await waitForOutcome(gateway, thirdEvent, urlId, 'delivered-resent');
  t.equal(resentText, 'delivered, at attempt 9, after a request to send it again.');

  receiver.answer = (_request, response) => void response.writeHead(500).end();
  const fourthEvent = await ping(gateway, lock, 4);
  await waitForOutcome(gateway, fourthEvent, urlId, 'pending-retry');
  // The stored bytes of the fourth uplink no longer match their checksum.
  writeStored(gateway, 4, testBytes(5));
  await advanceToNextTimer(clock);
  t.equal(
    await waitForOutcome(gateway, fourthEvent, urlId, 'damaged'),
    'waiting, damaged: its stored ping does not match its checksum, and damaged bytes are never sent; once the ' +
      `stored ping is restored, it is sent at the next start, or ${RESEND_HINT}.`,
  );
});

t.test('why explains the events of a URL that is gone, disabled, enabled again, and recovered', async (t) => {
  const { gateway, receiver, urlId, lock } = await setUpWhy(t);
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  const waitingEvent = await ping(gateway, lock, 1);
  await waitForOutcome(gateway, waitingEvent, urlId, 'pending-retry');
  receiver.answer = (_request, response) => void response.writeHead(410).end();
  const goneEvent = await ping(gateway, lock, 2);
  t.equal(
    await waitForOutcome(gateway, goneEvent, urlId, 'dead-gone'),
    `dead: the receiver answered 410, which says that the URL is gone, so the URL was disabled; ${RESEND_HINT} once ` +
      'it is enabled.',
  );
  const why410 = 'the receiver answered 410: the URL is gone';
  t.equal(
    await waitForOutcome(gateway, waitingEvent, urlId, 'pending-disabled'),
    `waiting: the URL is disabled (${why410}); the attempts continue when it is enabled.`,
  );
  const unsentEvent = await ping(gateway, lock, 3);
  t.equal(
    await waitForOutcome(gateway, unsentEvent, urlId, 'kept-disabled'),
    `not sent: the URL is disabled (${why410}). The event is stored; when the URL is enabled, “lockgate ` +
      'webhook recover” sends it.',
  );
  receiver.answer = (_request, response) => void response.writeHead(204).end();
  await postAsOperator(gateway, `/webhooks/${urlId}`, { state: 'active' });
  t.equal(
    await waitForOutcome(gateway, unsentEvent, urlId, 'kept-gap'),
    'not sent: the URL was disabled when the event came. The event is stored, and “lockgate webhook recover” sends it.',
  );
  await postAsOperator(gateway, '/deliveries/recover', { since: '2026-01-01T00:00:00Z' });
  t.equal(
    await waitForOutcome(gateway, unsentEvent, urlId, 'delivered-recovered'),
    'delivered late: the URL was disabled when the event came, and an operator requested it later (recover or resend).',
  );
});

t.test('why explains the wait for a receiver that answered with Retry-After', async (t) => {
  const { clock, gateway, receiver, urlId, lock } = await setUpWhy(t);
  receiver.answer = (_request, response) => void response.writeHead(429, { 'retry-after': '600' }).end();
  const answeredOnce = waitForEvents(gateway, 'delivery', 1);
  await ping(gateway, lock, 1);
  await answeredOnce;
  const until = new Date(clock.now() + Minutes(10)).toISOString();
  const next = await ping(gateway, lock, 2);
  t.equal(
    await waitForOutcome(gateway, next, urlId, 'pending-held'),
    `waiting: the receiver asked for a pause (Retry-After), so nothing is sent to the URL until ${until}.`,
  );
});

// After FAILURES_TO_OPEN failures in a row a URL's circuit is open: it gets only single attempts, called probes.
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
  const nextProbe = new Date(clock.now() + Seconds(10)).toISOString();
  await eventually('the next probe', async () => (await readOutcome(gateway, ids[1] ?? '', urlId)).includes(nextProbe));
  const { steps } = await requestWhy(gateway, `${ids[1]}/${urlId}`);
  t.equal(steps.find(({ kind }) => kind === 'delivery')?.at, nextProbe, 'nothing is sent before the probe');

  const ordered = await setUpWhy(t, { ordered: true });
  ordered.receiver.answer = (_request, response) => void response.writeHead(500).end();
  const failing = await ping(ordered.gateway, ordered.lock, 1);
  await waitForOutcome(ordered.gateway, failing, ordered.urlId, 'pending-retry');
  const nextInOrder = await ping(ordered.gateway, ordered.lock, 2);
  const thirdEvent = await ping(ordered.gateway, ordered.lock, 3);
  for (const each of [nextInOrder, thirdEvent])
    t.equal(
      (await waitForOutcome(ordered.gateway, each, ordered.urlId, 'pending-behind')).replace(/at \S+Z/, 'at …'),
      `waiting behind an earlier event of this lock, ${failing} (attempt 2 of 8 at …): the URL gets each lock’s ` +
        'events in order.',
    );

  const slow = await setUpWhy(t);
  slow.receiver.answer = () => undefined; // never: the first event's attempt stays open
  await ping(slow.gateway, slow.lock, 1);
  const untriedEvent = await ping(slow.gateway, slow.lock, 2);
  t.equal(
    await waitForOutcome(slow.gateway, untriedEvent, slow.urlId, 'pending-first'),
    'waiting for its first attempt, which is made as soon as it is its turn.',
  );
});

t.test(
  'why explains a refused address, a URL added later, a missing URL, and uplinks that make no event',
  async (t) => {
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
    const filter = { reasons: ['REASON_THEFT'] };
    const filteredUrlId = (await gateway.accounts.addWebhookUrl({ url: 'http://127.0.0.1:9/', filter })).url.id;
    const otherReason = await ping(gateway, lock, 2);
    t.match(
      await waitForOutcome(gateway, otherReason, filteredUrlId, 'filtered'),
      'not sent: a filter of the URL left',
    );
    t.same(await callOperator(gateway, 'GET', `/why?id=${event}/99`).then(({ status }) => status), 404, 'no such URL');

    const urllessGateway = await testGateway(t);
    const otherLock = await connectedLock(t, urllessGateway, mac);
    const unsent = await ping(urllessGateway, otherLock, 1);
    const { steps } = await requestWhy(urllessGateway, unsent);
    t.match(
      steps.find(({ kind }) => kind === 'delivery'),
      { code: 'no-url', sentence: 'The lock’s merchant had no webhook URL to send it to.' },
    );
    const stored = waitForEvents(urllessGateway, 'uplink', 1);
    const ack = { kind: 'ack', commandId: 7, result: 'ok', detail: '', highWindow: null } as const;
    await otherLock.send(testBytes(2, { body: ack }));
    await stored;
    const answered = await requestWhy(urllessGateway, `${formatMac(mac)} 1/2`);
    t.match(
      answered.steps.find(({ kind }) => kind === 'delivery'),
      { code: 'no-event' },
    );
    t.match(answered.steps.find(({ kind }) => kind === 'command')?.sentence, 'It answers command 7: ok.');
    const testWebhook = await requestWhy(urllessGateway, 'evt_test_0123');
    t.match(
      testWebhook.steps[0]?.sentence,
      /^This is the id of a test webhook, which was requested \(POST \/test_webhook/,
    );
  },
);

t.test('the tests above got every outcome', async (t) => {
  for (const outcome of OUTCOMES) t.ok(seenOutcomes.has(outcome), outcome);
});
