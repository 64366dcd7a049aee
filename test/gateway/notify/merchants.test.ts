/**
 * Merchants are notified when one of their webhook URLs fails, is disabled, or works again. The messages go to a notify
 * URL, which operators set for each merchant (interfaces.md §3). Retries and limits of sending are the same for
 * operators and are tested in operators.test.ts. Texts with “canary” are secrets, which no message may contain.
 */
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormatsModule from 'ajv-formats';
import t from 'tap';
import { notificationSchemaText } from '../../../gateway/notify/schema.js';
import { FAILURES_TO_OPEN } from '../../../gateway/webhooks/url/circuit.js';
import { Minutes, Seconds } from '../../../proto/clock.js';
import { Webhook } from '../../clients/webhook-libraries.js';
import { callOperator } from '../../helpers/cli/operator-call.js';
import { openNotifying, receivedTypes, waitForOutcomes } from '../../helpers/gateway/notify-setup.js';
import { testBytes, testMac, waitForEvents } from '../../helpers/gateway/test-gateway.js';
import { testReceiver } from '../../helpers/gateway/test-receiver.js';
import { eventually, setUpWebhooks } from '../../helpers/gateway/webhook-setup.js';
import { connectedLock } from '../../helpers/mqtt/test-lock.js';
import { tempFolder } from '../../helpers/store/temp-folder.js';

// The package's types say that the function is the module's default export; Node loads the function itself.
const addFormats = addFormatsModule as unknown as (ajv: Ajv2020) => void;

/** The id of the first merchant. */
const MERCHANT_ID = 1;

/** The part of a merchant's answer that the tests read: the signing secret, which is shown once. */
interface MerchantJson {
  readonly notify_secret?: string;
}

t.test(
  'a merchant gets one message each time its URL fails, works, is disabled, enabled or removed, without secrets',
  async (t) => {
    const {
      gateway,
      receiver: hooks,
      urlId,
      clock,
    } = await setUpWebhooks(t, { headers: { 'x-key': 'header-canary' } });
    const notified = await testReceiver(t);
    const set = await callOperator(gateway, 'POST', '/merchants/Amber', { notify_url: notified.url });
    const { notify_secret: secret = '' } = set.body as MerchantJson;
    t.match(set, {
      status: 200,
      body: { notify_url: notified.url, notify: { state: 'new' }, notify_secret: /^whsec_/ },
    });
    const lock = await connectedLock(t, gateway, testMac());
    const bystander = await testReceiver(t);
    await callOperator(gateway, 'POST', '/merchants', { name: 'Birch', notify_url: bystander.url });
    hooks.answer = (_request, response) => void response.writeHead(500).end();
    const opened = waitForEvents(gateway, 'circuit', 1);
    for (let sequence = 1; sequence <= FAILURES_TO_OPEN; sequence += 1) await lock.send(testBytes(sequence));
    await opened;
    await notified.waitForRequests(1);
    await waitForOutcomes(gateway, MERCHANT_ID);
    hooks.answer = (_request, response) => void response.writeHead(204).end();
    clock.advance(Seconds(5));
    await notified.waitForRequests(2);
    await waitForOutcomes(gateway, MERCHANT_ID);
    // 410 means that the URL is gone: the gateway disables it.
    hooks.answer = (_request, response) => void response.writeHead(410).end();
    const disabled = waitForEvents(gateway, 'url-disabled', 1);
    await lock.send(testBytes(50));
    await disabled;
    await notified.waitForRequests(3);
    await gateway.webhooks.settings.set(urlId, { state: 'active' });
    await notified.waitForRequests(4);
    await gateway.webhooks.settings.set(urlId, { state: 'disabled' });
    await notified.waitForRequests(5);
    await gateway.webhooks.settings.remove(urlId);
    await notified.waitForRequests(6);
    await waitForOutcomes(gateway, MERCHANT_ID);
    t.same(receivedTypes(notified), [
      'webhook.failing',
      'webhook.working',
      'webhook.disabled',
      'webhook.enabled',
      'webhook.disabled',
      'webhook.removed',
    ]);
    const origin = new URL(hooks.url).origin;
    t.match(notified.requests[0]?.json, {
      webhook_id: urlId,
      origin,
      text: `Webhook URL ${urlId} (${origin}) fails: the receiver answered 500.`,
      resolved_at: null,
    });
    t.match(notified.requests[2]?.json, { text: /is disabled: the receiver answered 410/ });
    t.match(notified.requests[4]?.json, { text: /is disabled: disabled by the operator/ });
    const ajv = new Ajv2020();
    addFormats(ajv);
    const isValid = ajv.compile(JSON.parse(notificationSchemaText()));
    for (const { headers, body, json } of notified.requests) {
      t.ok(isValid(json), JSON.stringify(isValid.errors));
      t.same(new Webhook(secret).verify(body, headers as Record<string, string>), json);
      t.notMatch(body, /header-canary|\/hook|Birch/);
    }
    t.equal(bystander.requests.length, 0, 'another merchant is not notified');
  },
);

t.test('a URL is reported as failing after three failures of one event, and then as disabled', async (t) => {
  const { gateway, receiver: hooks, clock, urlId } = await setUpWebhooks(t);
  const notified = await testReceiver(t);
  await gateway.notifier.setMerchantUrl(MERCHANT_ID, notified.url);
  hooks.answer = (_request, response) => void response.writeHead(500).end();
  const lock = await connectedLock(t, gateway, testMac());
  const nextAttempt = () => waitForEvents(gateway, 'delivery', 1);
  let attempted = nextAttempt();
  await lock.send(testBytes(1));
  await attempted;
  for (const delay of [Seconds(5), Minutes(5)]) {
    attempted = nextAttempt();
    await eventually('the retry waits', () => clock.nextDueMs !== undefined && clock.nextDueMs <= clock.now() + delay);
    clock.advance(delay);
    await attempted;
  }
  await notified.waitForRequests(1);
  await waitForOutcomes(gateway, MERCHANT_ID);
  await gateway.webhooks.settings.set(urlId, { state: 'disabled' });
  await notified.waitForRequests(2);
  await waitForOutcomes(gateway, MERCHANT_ID);
  t.same(receivedTypes(notified), ['webhook.failing', 'webhook.disabled']);
});

t.test(
  'a URL that was disabled before the notify URL was set is reported, and its message survives a restart',
  async (t) => {
    const folder = tempFolder(t);
    const operatorsUrl = null;
    const first = await openNotifying(t, folder, operatorsUrl);
    const hooks = await testReceiver(t);
    const notified = await testReceiver(t);
    await first.gateway.accounts.addMerchant('Amber');
    const { url } = await first.gateway.accounts.addWebhookUrl({ url: hooks.url });
    await first.gateway.webhooks.settings.set(url.id, { state: 'disabled' });
    notified.answer = (_request, response) => void response.writeHead(503).end();
    await first.gateway.notifier.setMerchantUrl(MERCHANT_ID, notified.url);
    await notified.waitForRequests(1);
    await first.gateway.close();
    notified.answer = (_request, response) => void response.writeHead(204).end();
    const second = await openNotifying(t, folder, operatorsUrl);
    second.clock.advance(Minutes(1));
    await notified.waitForRequests(2);
    t.same(receivedTypes(notified), ['webhook.disabled', 'webhook.disabled']);
    t.equal(notified.requests[0]?.body, notified.requests[1]?.body, 'the refused message is sent again');
    await second.gateway.webhooks.settings.set(url.id, { state: 'active' });
    await notified.waitForRequests(3);
    t.equal(receivedTypes(notified)[2], 'webhook.enabled');
    await waitForOutcomes(second.gateway, MERCHANT_ID);
    const cleared = await callOperator(second.gateway, 'POST', '/merchants/Amber', { notify_url: '' });
    t.match(cleared, { status: 200, body: { notify_url: null, notify: null } });
    t.same(await second.gateway.store.notifications.readRecipients(), []);
  },
);

t.test(
  'operators set and test a merchant’s notify URL and rotate its secret; wrong input is refused, changes are audited',
  async (t) => {
    const operatorsUrl = null;
    const { gateway } = await openNotifying(t, tempFolder(t), operatorsUrl);
    const notified = await testReceiver(t);
    const call = (path: string, body: object) => callOperator(gateway, 'POST', path, body);
    t.match(await call('/merchants', { name: 'Amber', notify_url: 'ftp://x' }), {
      status: 400,
      body: { code: 'input-url' },
    });
    t.match(await call('/merchants', { name: 'Amber', notify_url: 'http://10.0.0.1/x' }), {
      status: 400,
      body: { code: 'input-webhook-address', detail: /--allow-webhook-range/, errors: [{ pointer: '/notify_url' }] },
    });
    t.same((await gateway.store.listMerchants()).length, 0, 'a refused URL adds no merchant');
    const added = await call('/merchants', { name: 'Amber', notify_url: notified.url });
    t.match(added, { status: 201, body: { notify_url: notified.url, notify_secret: /^whsec_/ } });
    const again = await call('/merchants/Amber', { notify_url: `${notified.url}?path-canary` });
    t.notOk('notify_secret' in (again.body as object), 'the secret stays, and is not shown again');
    t.match(await call('/merchants/Birch', { notify_url: notified.url }), { status: 404 });
    const rotated = await call('/merchants/Amber/rotate-notify-secret', { grace_seconds: 60 });
    t.match(rotated, { status: 200, body: { notify_secret: /^whsec_/, old_secrets_until: [/^20/] } });
    t.match(await call('/merchants/Amber/rotate-notify-secret', { grace_seconds: -1 }), { status: 400 });
    for (let count = 0; count < 3; count += 1) await call('/merchants/Amber/rotate-notify-secret', {});
    // Five secrets are valid during their grace periods, and that is the limit.
    t.match(await call('/merchants/Amber/rotate-notify-secret', {}), { status: 409, body: { code: 'notify-secrets' } });
    t.match(await call('/merchants/Amber/test-notify', {}), {
      status: 200,
      body: { origin: new URL(notified.url).origin, status: 204, error: null },
    });
    const [testMessage] = notified.requests;
    t.match(testMessage?.json, { type: 'test' });
    const secrets = [added, rotated].map(({ body }) => (body as MerchantJson).notify_secret ?? '');
    const { body = '', headers } = testMessage ?? {};
    for (const secret of secrets)
      t.same(
        new Webhook(secret).verify(body, headers as Record<string, string>),
        testMessage?.json,
        'the message is signed with old secrets too, until they expire',
      );
    const entries = (await callOperator(gateway, 'GET', '/audit?action=merchant')).body;
    const text = JSON.stringify(entries);
    for (const action of ['add', 'set', 'rotate-notify-secret', 'test-notify']) t.match(text, `merchant.${action}`);
    t.notMatch(text, /whsec_|path-canary/);
    t.match(text, new URL(notified.url).origin);
  },
);
