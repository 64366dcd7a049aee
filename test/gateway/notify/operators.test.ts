/**
 * Notices (the gateway's reports of problems) are sent to the operators' notify URL: once when a notice opens and once
 * when it ends, signed, never to an internal address, retried, and also after a crash (interfaces.md §3, §4). Most
 * tests raise notices by emitting the gateway's events; the one with a kill gets its notice from a merchant's URL that
 * answers 410. Merchants' notifications are in merchants.test.ts.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormatsModule from 'ajv-formats';
import t from 'tap';
import { RecipientSender } from '../../../gateway/notify/recipient-sender.js';
import { notificationSchemaText } from '../../../gateway/notify/schema.js';
import { FLAP_HOLD, FLAP_WINDOW } from '../../../gateway/store/contract/notify/notification-store.js';
import { openStore, sqliteUrl } from '../../../gateway/store/open-store.js';
import { Minutes, Seconds } from '../../../proto/clock.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { Webhook } from '../../clients/webhook-libraries.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { GatewayChild } from '../../helpers/gateway/gateway-child.js';
import {
  openNotifying,
  receivedIds,
  receivedTypes,
  setUpNotify,
  waitForOutcomes,
} from '../../helpers/gateway/notify-setup.js';
import { testBytes, testMac } from '../../helpers/gateway/test-gateway.js';
import { testReceiver } from '../../helpers/gateway/test-receiver.js';
import { eventually } from '../../helpers/gateway/webhook-setup.js';
import { root } from '../../helpers/house/our-files.js';
import { TestLock } from '../../helpers/mqtt/test-lock.js';

// The package's types say that the function is the module's default export; Node loads the function itself.
const addFormats = addFormatsModule as unknown as (ajv: Ajv2020) => void;

// Payloads of the gateway's events about webhook URLs. `disabled` opens a notice and
// `enabled` ends it; `circuit` does either.
const disabled = (urlId: number) => ({ atMs: 0, urlId, why: 'gone' });
const enabled = (urlId: number) => ({ atMs: 0, urlId, state: 'active' as const });
/** A change of a URL's circuit: open while the URL has failed many times and gets only single attempts. */
const circuit = (urlId: number, state: 'opened' | 'closed') => ({ atMs: 0, urlId, state, why: 'it answered 500' });

t.test('a notice is sent once when it opens and once when it ends, signed, as the schema says', async (t) => {
  const { gateway, receiver } = await setUpNotify(t);
  const { body } = await callOperator(gateway, 'POST', '/notices/rotate-secret', { grace_seconds: 0 });
  const { notify_secret: secret } = body as { notify_secret: string };
  gateway.events.emit('url-disabled', disabled(3));
  await gateway.notices.writePending();
  await receiver.waitForRequests(1);
  gateway.events.emit('url-disabled', disabled(3));
  await gateway.notices.writePending();
  gateway.events.emit('url-changed', enabled(3));
  await gateway.notices.writePending();
  await receiver.waitForRequests(2);
  t.match(
    receiver.requests.map(({ json }) => json),
    [
      {
        type: 'notice.opened',
        notice_id: 1,
        kind: 'url-disabled',
        subject: '3',
        text: 'URL 3 is disabled: gone',
        opened_at: /^20.*Z$/,
        resolved_at: null,
      },
      { type: 'notice.resolved', notice_id: 1, text: 'Resolved: URL 3 is disabled: gone', resolved_at: /^20.*Z$/ },
    ],
  );
  const [opened, resolved] = receivedIds(receiver);
  t.match(opened, /^ntf_[\w-]{22}_opened$/);
  t.match(resolved, /^ntf_[\w-]{22}_ended$/);
  const ajv = new Ajv2020();
  addFormats(ajv);
  const isValid = ajv.compile(JSON.parse(notificationSchemaText()));
  for (const { headers, body: text, json } of receiver.requests) {
    t.same(new Webhook(secret).verify(text, headers as Record<string, string>), json, 'standardwebhooks verifies it');
    t.equal(json.message_id, headers['webhook-id']);
    t.ok(isValid(json), JSON.stringify(isValid.errors));
    t.match(headers, { 'content-type': 'application/json', 'user-agent': /^lockgate\// });
  }
  t.throws(
    () => new Webhook(`whsec_${'A'.repeat(44)}`).verify(receiver.requests[0]?.body ?? '', {}),
    'standardwebhooks refuses a message without a signature',
  );
  t.equal(
    readFileSync(path.join(root, 'docs/notification.schema.json'), 'utf8'),
    notificationSchemaText(),
    'the committed file has the present schema: “npm run gen” writes it',
  );
  t.match((await callOperator(gateway, 'GET', '/notices')).body, {
    sending: { origin: new URL(receiver.url).origin, state: 'working', pending: 0, dead: 0, last_error: null },
  });
});

t.test('a notice that opens and ends again and again is sent again only when it stays open', async (t) => {
  const { gateway, receiver, clock } = await setUpNotify(t);
  const changeCircuit = async (state: 'opened' | 'closed') => {
    gateway.events.emit('circuit', circuit(4, state));
    await gateway.notices.writePending();
  };
  await changeCircuit('opened');
  await receiver.waitForRequests(1);
  await changeCircuit('closed');
  await waitForOutcomes(gateway);
  for (let round = 0; round < 5; round += 1) {
    await changeCircuit('opened');
    await changeCircuit('closed');
  }
  await changeCircuit('opened');
  clock.advance(FLAP_HOLD - Minutes(1));
  // Recipient 0: the operators.
  t.equal(await gateway.store.notifications.readDue(0, clock.now()), null, 'nothing is due while it flaps');
  t.same(receivedTypes(receiver), ['notice.opened', 'notice.resolved']);
  clock.advance(Minutes(2));
  await receiver.waitForRequests(3);
  await changeCircuit('closed');
  await receiver.waitForRequests(4);
  t.same(receivedTypes(receiver).slice(2), ['notice.opened', 'notice.resolved'], 'it stayed open, and is sent again');
  t.equal(new Set(receivedIds(receiver)).size, 4, 'each message has its own id');
  t.ok(
    FLAP_WINDOW > FLAP_HOLD,
    'the time in which an opening counts as a repetition is longer than the time for which it is held back',
  );
});

t.test(
  'a refused message is retried under its id with the delays of webhooks, before later ones, and shown',
  async (t) => {
    const { gateway, receiver, clock } = await setUpNotify(t);
    receiver.answer = (_request, response) => void response.writeHead(500).end();
    gateway.events.emit('url-disabled', disabled(3));
    await gateway.notices.writePending();
    /** The time until the next attempt, ms, once the last attempt's outcome is stored. */
    const nextDelay = async (): Promise<number> => {
      await eventually('the outcome is stored', async () => {
        const dueAtMs = await gateway.store.notifications.nextDueAtMs(0);
        return dueAtMs !== null && dueAtMs > clock.now();
      });
      return ((await gateway.store.notifications.nextDueAtMs(0)) ?? 0) - clock.now();
    };
    const delays: number[] = [];
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      await receiver.waitForRequests(attempt);
      const delay = await nextDelay();
      delays.push(delay);
      if (attempt < 3) clock.advance(delay);
    }
    t.same(delays, [Seconds(5), Minutes(5), Minutes(30)]);
    gateway.events.emit('url-changed', enabled(3));
    await gateway.notices.writePending();
    const { body } = await callOperator(gateway, 'GET', '/status');
    t.match(body, {
      notices_sending: {
        state: 'failing',
        pending: 1,
        last_error: { status: 500, error: 'the receiver answered 500' },
      },
    });
    await eventually('a notice about the notify URL', async () => {
      await gateway.notices.writePending();
      return (await gateway.notices.list({ limit: 9, kind: 'notify-failing' })).length > 0;
    });
    t.match(await gateway.notices.list({ limit: 9, kind: 'notify-failing' }), [{ subject: 'operator', count: 1 }]);
    t.equal(receiver.requests.length, 3, 'that notice is not sent');
    receiver.answer = (_request, response) => void response.writeHead(204).end();
    clock.advance(Minutes(30));
    await receiver.waitForRequests(5);
    t.same(receivedTypes(receiver), [...Array(4).fill('notice.opened'), 'notice.resolved']);
    t.equal(new Set(receivedIds(receiver)).size, 2, 'retries have the id of the first attempt');
    await eventually('the notice is over', async () => {
      await gateway.notices.writePending();
      const [notice] = await gateway.notices.list({ limit: 9, kind: 'notify-failing' });
      return notice?.resolvedAtMs !== null;
    });
    t.equal(receiver.requests.length, 5, 'its end is not sent either');
  },
);

t.test('an address that is not allowed gets nothing, and a message answered with 410 is given up', async (t) => {
  const { gateway, receiver, folder } = await setUpNotify(t);
  receiver.answer = (_request, response) => void response.writeHead(410).end();
  gateway.events.emit('url-disabled', disabled(3));
  await gateway.notices.writePending();
  await eventually('it is given up', async () => (await gateway.store.notifications.countMessages(0)).dead === 1);
  t.same(await gateway.store.notifications.countMessages(0), { pending: 0, dead: 1 });
  await gateway.close();
  // The start can't refuse a name: names are looked up for each connection. This one has an internal address.
  const lookUp = ((_name: string, _options: unknown, done: (error: null, found: object[]) => void) =>
    done(null, [{ address: '10.1.2.3', family: 4 }])) as never;
  const { gateway: second } = await openNotifying(t, folder, 'http://intranet.example/hook', { lookUp });
  second.events.emit('url-disabled', disabled(5));
  await second.notices.writePending();
  await eventually('the attempt is refused', async () => (await second.notifier.read(0))[0]?.lastError != null);
  t.match(await second.notifier.read(0), [{ lastError: { error: 'the address is not allowed', status: null } }]);
  t.match(await callOperator(second, 'POST', '/notices/test', {}), {
    status: 200,
    body: { origin: 'http://intranet.example', status: null, duration_ms: null, error: 'the address is not allowed' },
  });
});

t.test(
  'a notice raised before a kill -9 is sent after the restart, under the id of the interrupted attempt',
  async (t) => {
    const receiver = await testReceiver(t);
    const merchant = await testReceiver(t);
    merchant.answer = (_request, response) => void response.writeHead(410).end();
    // The first attempt is open when the gateway is killed.
    receiver.answer = () => undefined;
    const child = await GatewayChild.create(t);
    Object.assign(child.options, { notifyUrl: receiver.url });
    await child.start();
    await child.post('/merchants', { name: 'Amber' });
    await child.addWebhook(merchant.url);
    const secret = await child.addLock(formatMac(testMac()));
    const lock = await TestLock.connect(t, child.mqttPort, testMac(), secret);
    await lock.send(testBytes(1));
    // A busy machine may cause other notices: that the event loop was blocked.
    const requests = () => receiver.requests.filter(({ json }) => json.kind === 'url-disabled');
    await eventually('the first attempt', () => requests().length === 1);
    await child.kill();
    receiver.answer = (_request, response) => void response.writeHead(204).end();
    await child.start();
    await eventually('the second attempt', () => requests().length === 2);
    const [first, second] = requests();
    t.match(first?.json, { type: 'notice.opened', kind: 'url-disabled', subject: '1' });
    t.equal(second?.body, first?.body);
    t.equal(second?.headers['webhook-id'], first?.headers['webhook-id']);
    const limitSeconds = 10;
    await child.stop(limitSeconds);
    t.equal(requests().length, 2, 'the notice is sent only once');
  },
);

t.test('a message that is accepted while the gateway stops is not sent again after the start', async (t) => {
  const { gateway, folder, receiver } = await setUpNotify(t);
  let accept: () => void = () => undefined;
  receiver.answer = (_request, response) => {
    accept = () => void response.writeHead(204).end();
  };
  gateway.events.emit('url-disabled', disabled(3));
  await gateway.notices.writePending();
  await receiver.waitForRequests(1);
  const { stop } = RecipientSender.prototype;
  t.teardown(() => {
    RecipientSender.prototype.stop = stop;
  });
  RecipientSender.prototype.stop = function (this: RecipientSender, grace) {
    // The answer comes when the sender is stopping.
    accept();
    return stop.call(this, grace);
  };
  await gateway.close();
  const store = await openStore(sqliteUrl(folder));
  t.teardown(() => store.close());
  t.equal((await store.notifications.countMessages(0)).pending, 0);
});

t.test('without a notify URL nothing is queued, and such notices are not sent once there is a URL', async (t) => {
  const { gateway, folder, receiver } = await setUpNotify(t);
  receiver.answer = (_request, response) => void response.writeHead(500).end();
  gateway.events.emit('url-disabled', disabled(3));
  await gateway.notices.writePending();
  await receiver.waitForRequests(1);
  await gateway.close();
  const withoutUrl = await openNotifying(t, folder, null);
  withoutUrl.gateway.events.emit('url-disabled', disabled(6));
  await withoutUrl.gateway.notices.writePending();
  t.match((await callOperator(withoutUrl.gateway, 'GET', '/notices')).body, { sending: null });
  t.match(await callOperator(withoutUrl.gateway, 'POST', '/notices/test', {}), {
    status: 409,
    body: { code: 'no-notify-url' },
  });
  await withoutUrl.gateway.close();
  const requestCount = receiver.requests.length;
  receiver.answer = (_request, response) => void response.writeHead(204).end();
  const reopened = await openNotifying(t, folder, receiver.url);
  reopened.clock.advance(Seconds(6));
  await receiver.waitForRequests(requestCount + 1);
  await eventually('nothing is queued any more', async () => {
    return (await reopened.gateway.store.notifications.countMessages(0)).pending === 0;
  });
  const sent = receiver.requests.slice(requestCount).map(({ json }) => json);
  t.match(
    sent,
    [
      { type: 'notice.opened', subject: '3' },
      { type: 'notice.resolved', subject: '3' },
    ],
    'the notice queued earlier is retried',
  );
  t.equal(sent.length, 2, 'and no other is sent');
});
