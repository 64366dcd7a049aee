/** The operator's routes for webhooks (interfaces.md §3, §4): URLs, their secrets, deliveries, sending again. */
import { type Static, Type } from 'typebox';
import { Seconds } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import type { Mac } from '../../proto/mac.js';
import { isDatable, toDate } from '../../proto/ping-json.js';
import { readGivenPing } from '../webhooks/test-ping.js';
import type { WebhookReading } from '../webhooks/webhook-settings.js';
import type { TestOutcome } from '../webhooks/webhook-test.js';
import { readDeliveryQuery, showDeliveries } from './delivery-json.js';
import { readDate, readId } from './query.js';
import { type OperatorParts, type Route, readMac, withBody } from './routes.js';

const Headers = Type.Record(Type.String(), Type.String());
const NewWebhook = Type.Object({
  url: Type.String(),
  merchant: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
  headers: Type.Optional(Headers),
  ordered: Type.Optional(Type.Boolean()),
  since: Type.Optional(Type.String()),
});
const ChangedWebhook = Type.Object({
  url: Type.Optional(Type.String()),
  set_headers: Type.Optional(Headers),
  remove_headers: Type.Optional(Type.Array(Type.String())),
  ordered: Type.Optional(Type.Boolean()),
  state: Type.Optional(Type.Union([Type.Literal('active'), Type.Literal('disabled')])),
});
const Rotation = Type.Object({ grace_seconds: Type.Optional(Type.Number()) });
const Resend = Type.Object({ url_id: Type.Optional(Type.Integer()) });
const Test = Type.Object({
  url_id: Type.Optional(Type.Integer()),
  /** A ping as traces have it, to send instead of the latest; `received_at` is then when it counts as received. */
  ping: Type.Optional(Type.Object({})),
  received_at: Type.Optional(Type.String()),
});
const Recovery = Type.Object({
  since: Type.String(),
  until: Type.Optional(Type.String()),
  url_id: Type.Optional(Type.Integer()),
});

/** Every route for webhooks. */
export const WEBHOOK_ROUTES: readonly Route[] = [
  {
    method: 'POST',
    path: '/webhooks',
    summary: 'Adds a webhook URL to a merchant; answers its signing secret, once.',
    success: 201,
    ...withBody(NewWebhook, async ({ accounts, webhooks }, { since, ...body }) => {
      const { url, secret } = await accounts.addWebhookUrl({ ...body, sinceMs: readDate('since', since) });
      return { ...webhookJson(await webhooks.settings.read(url)), secret };
    }),
  },
  {
    method: 'GET',
    path: '/webhooks',
    summary: 'All webhook URLs.',
    success: 200,
    handle: async ({ store, webhooks }) => {
      const readings = (await store.listWebhookUrls()).map((url) => webhooks.settings.read(url));
      return { webhooks: (await Promise.all(readings)).map(webhookJson) };
    },
  },
  {
    method: 'POST',
    path: '/webhooks/:id',
    summary: 'Changes a webhook URL: address, headers, order, active or disabled.',
    success: 200,
    ...change(),
  },
  {
    method: 'POST',
    path: '/devices/:mac/test-webhook',
    summary:
      'Sends a test webhook to the lock’s merchant and waits for the answers: its latest ping, or the given one.',
    success: 200,
    body: Test,
    handle: async (parts, { params, body }) => {
      return testJson(await test(parts, readMac(params.mac ?? ''), body as Static<typeof Test>));
    },
  },
  {
    method: 'POST',
    path: '/webhooks/:id/remove',
    summary: 'Ends a URL’s deliveries and forgets them.',
    success: 200,
    handle: async ({ webhooks }, { params }) => {
      const { id, url } = await webhooks.settings.remove(readId(params.id));
      return { id, url, removed: true };
    },
  },
  {
    method: 'POST',
    path: '/webhooks/:id/rotate-secret',
    summary: 'Gives a URL a new signing secret, beside the old one for a while; answers it, once.',
    success: 200,
    body: Rotation,
    handle: async ({ webhooks }, { params, body }) => {
      const { grace_seconds: grace } = body as { grace_seconds?: number };
      const graceMs = grace === undefined ? undefined : Seconds(grace);
      const { reading, secret } = await webhooks.settings.rotateSecret(readId(params.id), graceMs);
      return { ...webhookJson(reading), secret };
    },
  },
  {
    method: 'GET',
    path: '/deliveries',
    summary: 'Deliveries with their attempts, the newest events first.',
    success: 200,
    handle: async (parts, { query }) => showDeliveries(parts, await readDeliveryQuery(parts, query)),
  },
  {
    method: 'POST',
    path: '/events/:id/resend',
    summary: 'Sends an event again, to one URL or to all of its merchant’s.',
    success: 200,
    body: Resend,
    handle: async ({ webhooks }, { params, body }) => {
      const { url_id: urlId } = body as { url_id?: number };
      const resent = await webhooks.redelivery.resend(params.id ?? '', urlId);
      return { event_id: params.id, urls: resent.map((each) => ({ url_id: each.urlId, became: each.became })) };
    },
  },
  {
    method: 'POST',
    path: '/deliveries/recover',
    summary: 'Sends everything again that was not delivered since a time.',
    success: 200,
    ...withBody(Recovery, async ({ webhooks }, { since, until, url_id: urlId }) => {
      const sinceMs = readDate('since', since) as number;
      const recovered = await webhooks.redelivery.recover({ sinceMs, untilMs: readDate('until', until), urlId });
      return { urls: recovered.map((each) => ({ url_id: each.urlId, events: each.events })) };
    }),
  },
];

function change(): Pick<Route, 'body' | 'handle'> {
  const handle = async ({ webhooks }: OperatorParts, { params, body }: Parameters<Route['handle']>[1]) => {
    const { set_headers: setHeaders, remove_headers: removeHeaders, ...rest } = body as Record<string, never>;
    return webhookJson(await webhooks.settings.set(readId(params.id), { ...rest, setHeaders, removeHeaders }));
  };
  return { body: ChangedWebhook, handle };
}

async function test({ webhooks, wallClock }: OperatorParts, mac: Mac, wishes: Static<typeof Test>) {
  const { url_id: urlId, ping, received_at: receivedAt } = wishes;
  if (ping === undefined) return await webhooks.tester.test(mac, urlId);
  const receivedAtMs = readDate('received_at', receivedAt) ?? wallClock.now();
  if (!isDatable(receivedAtMs))
    throw new LockgateError('input-date', `received_at is ${JSON.stringify(receivedAt)}: expected a year from 1970 on`);
  return await webhooks.tester.testGiven(mac, { uplink: readGivenPing(ping), receivedAtMs }, urlId);
}

/** As `POST /test_webhook` answers (interfaces.md §2). */
function testJson({ eventId, deliveries }: TestOutcome) {
  return {
    status: deliveries.every(({ error }) => error === null) ? 'success' : 'error',
    event_id: eventId,
    deliveries: deliveries.map(({ urlId, origin, status, durationMs, error }) => {
      return { url_id: urlId, origin, status, duration_ms: durationMs, error };
    }),
  };
}

/** Custom headers may carry a merchant's credentials, so only their names are shown. */
function webhookJson({ url, isCircuitOpen, oldSecretsUntilMs }: WebhookReading) {
  return {
    id: url.id,
    merchant: url.merchantName,
    url: url.url,
    headers: Object.keys(url.headersSealed),
    ordered: url.ordered,
    state: url.state,
    disabled_why: url.disabledWhy,
    circuit: isCircuitOpen ? 'open' : 'closed',
    failing_since: url.failingSinceMs === null ? null : toDate(url.failingSinceMs),
    old_secrets_until: oldSecretsUntilMs.map(toDate),
    created_at: toDate(url.createdAtMs),
  };
}
