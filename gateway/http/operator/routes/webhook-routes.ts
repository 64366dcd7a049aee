/**
 * The operators' routes for webhooks (interfaces.md §3, §4): URLs, their signing secrets, test webhooks, deliveries,
 * resending.
 */
import { type Static, Type } from 'typebox';
import { Seconds } from '../../../../proto/clock.js';
import { LockgateError } from '../../../../proto/errors.js';
import { formatMac, type Mac } from '../../../../proto/wire/mac.js';
import { formatDate, isDatable } from '../../../../proto/wire/ping-json.js';
import { EVENT_TYPES } from '../../../store/contract/webhooks/merchant-event.js';
import { readGivenPing } from '../../../webhooks/test-ping.js';
import type { WebhookReading } from '../../../webhooks/webhook-settings.js';
import type { TestOutcome } from '../../../webhooks/webhook-test.js';
import { filterJson } from '../../shared/filter-json.js';
import { countOf, originOf, pick } from '../json/audit-terms.js';
import { DeliveriesAnswer, DeliveryQuery, readDeliveryQuery, showDeliveries } from '../json/delivery.js';
import { LimitsInput, limitsJson, limitsMembers, splitLimits } from '../json/webhook-limits.js';
import { readDate, readId } from '../query.js';
import { type OperatorParts, type Route, type RouteRequest, readMac, withBody } from '../routes.js';
import { Count, DateText, Described, Exact, MaybeText, MaybeTime, Name, OneOf, OrNull, Time } from '../schemas.js';
import { BacklogAnswer, backlogJson } from '../status.js';

const Headers = Type.Record(Type.String(), Type.String());
const MaybeNames = OrNull(Type.Array(Type.String()));
/** Which events a URL gets; null for all. */
const filterMembers = {
  events: Type.Array(OneOf(EVENT_TYPES)),
  reasons: MaybeNames,
  ping_types: MaybeNames,
  labels: OrNull(Headers),
};
/** A change of these members: an empty list or object removes that limit. */
const Filter = {
  events: Type.Optional(Type.Array(Type.String())),
  reasons: Type.Optional(Type.Array(Type.String())),
  ping_types: Type.Optional(Type.Array(Type.String())),
  labels: Type.Optional(Headers),
};
const NewWebhook = Exact({
  ...Filter,
  ...LimitsInput,
  url: Type.String(),
  merchant: Type.Optional(Name),
  headers: Type.Optional(Headers),
  ordered: Type.Optional(Type.Boolean()),
  since: Type.Optional(DateText),
});
const ChangedWebhook = Exact({
  ...Filter,
  ...LimitsInput,
  url: Type.Optional(Type.String()),
  set_headers: Type.Optional(Headers),
  remove_headers: Type.Optional(Type.Array(Type.String())),
  ordered: Type.Optional(Type.Boolean()),
  state: Type.Optional(OneOf(['active', 'disabled'])),
});
const Rotation = Exact({ grace_seconds: Type.Optional(Type.Number()) });
const Resend = Exact({ url_id: Type.Optional(Type.Integer()) });
const Test = Exact({
  url_id: Type.Optional(Type.Integer()),
  /** A ping as in traces, sent instead of the latest one; `received_at` is then its time of receipt. */
  ping: Type.Optional(Described('A ping, as in traces.')),
  received_at: Type.Optional(DateText),
});
const Recovery = Exact({
  since: DateText,
  until: Type.Optional(DateText),
  url_id: Type.Optional(Type.Integer()),
});

/** The members of a webhook URL in answers. */
export const webhook = {
  id: Type.Integer(),
  merchant: Type.String(),
  url: Type.String(),
  headers: Type.Array(Type.String({ description: 'A name; values are not shown.' })),
  ordered: Type.Boolean(),
  ...filterMembers,
  ...limitsMembers,
  state: OneOf(['active', 'disabled']),
  disabled_why: MaybeText,
  circuit: OneOf(['open', 'closed']),
  held_until: Type.Union([Time, Type.Null()], {
    description: 'The receiver asked for this by Retry-After: nothing is sent until then.',
  }),
  failing_since: MaybeTime,
  old_secrets_until: Type.Array(Time),
  created_at: Time,
};
const Tested = Type.Object({
  status: OneOf(['success', 'error']),
  event_id: Type.String(),
  deliveries: Type.Array(
    Type.Object({
      url_id: Type.Integer(),
      origin: Type.String(),
      status: OrNull(Type.Integer()),
      duration_ms: OrNull(Type.Number()),
      error: MaybeText,
    }),
  ),
});
/** What became of an event at a URL: `due`, so that it is sent now, or `on-its-way`, still in its first delivery. */
const Resent = Type.Object({ url_id: Type.Integer(), became: Type.String() });
/** How many events are sent again to a URL; null if it is disabled. */
const Recovered = Type.Object({ url_id: Type.Integer(), events: OrNull(Count) });

/** Every route for webhooks. */
export const WEBHOOK_ROUTES: readonly Route[] = [
  {
    method: 'POST',
    path: '/webhooks',
    summary: 'Adds a webhook URL to a merchant; returns its signing secret, once.',
    operation: 'webhook.add',
    success: 201,
    answer: Type.Object({ ...webhook, secret: Type.String() }),
    audit: {
      object: (_request, answer) => String(answer?.id ?? ''),
      after: ({ body }, answer) => webhookDetails(answer ?? { ...(body as object), headers: undefined }),
    },
    ...withBody(
      NewWebhook,
      async ({ accounts, webhooks }, { since, events, reasons, ping_types: pingTypes, labels, ...others }) => {
        const [limits, body] = splitLimits(others);
        await webhooks.targets.check(body.url);
        const filter = { events, reasons, pingTypes, labels };
        const wanted = { ...body, ...limits, filter, sinceMs: readDate('since', since) };
        const { url, secret } = await accounts.addWebhookUrl(wanted);
        return { ...webhookJson(await webhooks.settings.read(url)), secret };
      },
    ),
  },
  {
    method: 'GET',
    path: '/webhooks',
    summary: 'Lists all webhook URLs.',
    operation: 'webhook.list',
    success: 200,
    answer: Type.Object({ webhooks: Type.Array(Type.Object({ ...webhook, backlog: OrNull(BacklogAnswer) })) }),
    handle: async ({ store, webhooks, figures }) => {
      const readings = (await store.listWebhookUrls()).map((url) => webhooks.settings.read(url));
      const { store: storeFigures, oldestAgeMs } = await figures.read();
      const backlogs = new Map(
        storeFigures?.backlogs.map((backlog) => [backlog.urlId, backlogJson(backlog, oldestAgeMs(backlog))]),
      );
      const listed = (await Promise.all(readings)).map((reading) => {
        return { ...webhookJson(reading), backlog: backlogs.get(reading.url.id) ?? null };
      });
      return { webhooks: listed };
    },
  },
  {
    method: 'POST',
    path: '/webhooks/:id',
    summary: 'Changes a webhook URL: its address, headers, ordering, limits, state, or which events it gets.',
    operation: 'webhook.set',
    success: 200,
    answer: Type.Object(webhook),
    audit: {
      object: urlIdOf,
      before: webhookBefore,
      after: ({ body }, answer) => ({
        ...webhookDetails(answer),
        set_headers: Object.keys((body as Static<typeof ChangedWebhook>).set_headers ?? {}),
      }),
    },
    body: ChangedWebhook,
    handle: changeWebhook,
  },
  {
    method: 'POST',
    path: '/devices/:mac/test-webhook',
    summary:
      'Sends a test webhook to the lock’s merchant and waits for the answers: its latest ping, or the given one.',
    operation: 'webhook.test',
    success: 200,
    answer: Tested,
    audit: {
      object: ({ params }) => formatMac(readMac(params.mac ?? '')),
      after: ({ body }, answer) => ({ ...pick(body, 'url_id'), ...pick(answer, 'status', 'event_id') }),
    },
    body: Test,
    handle: async (parts, { params, body }) => {
      return testJson(await sendTest(parts, readMac(params.mac ?? ''), body as Static<typeof Test>));
    },
  },
  {
    method: 'POST',
    path: '/webhooks/:id/remove',
    summary: 'Removes a URL and its deliveries.',
    operation: 'webhook.remove',
    success: 200,
    answer: Type.Object({ id: Type.Integer(), url: Type.String(), removed: Type.Literal(true) }),
    audit: { object: urlIdOf, before: webhookBefore },
    handle: async ({ webhooks }, { params }) => {
      const { id, url } = await webhooks.settings.remove(readId(params.id));
      return { id, url, removed: true };
    },
  },
  {
    method: 'POST',
    path: '/webhooks/:id/rotate-secret',
    summary: 'Gives a URL a new signing secret, with the old one valid for a while; returns it, once.',
    operation: 'webhook.rotate-secret',
    success: 200,
    answer: Type.Object({ ...webhook, secret: Type.String() }),
    audit: { object: urlIdOf, after: ({ body }) => pick(body, 'grace_seconds') },
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
    summary: 'Lists deliveries with their attempts, newest events first.',
    operation: 'delivery.list',
    success: 200,
    query: DeliveryQuery,
    answer: DeliveriesAnswer,
    handle: async (parts, { query }) => showDeliveries(parts, await readDeliveryQuery(parts, query)),
  },
  {
    method: 'POST',
    path: '/events/:id/resend',
    summary: 'Resends an event, to one URL or to all of its merchant’s.',
    operation: 'event.resend',
    success: 200,
    answer: Type.Object({ event_id: Type.String(), urls: Type.Array(Resent) }),
    audit: {
      object: ({ params }) => params.id ?? '',
      after: ({ body }, answer) => ({ ...pick(body, 'url_id'), urls: countOf(answer, 'urls') }),
    },
    body: Resend,
    handle: async ({ webhooks }, { params, body }) => {
      const { url_id: urlId } = body as { url_id?: number };
      const resent = await webhooks.redelivery.resend(params.id ?? '', urlId);
      return { event_id: params.id, urls: resent.map(({ urlId: id, became }) => ({ url_id: id, became })) };
    },
  },
  {
    method: 'POST',
    path: '/deliveries/recover',
    summary: 'Resends everything undelivered since a given time.',
    operation: 'delivery.recover',
    success: 200,
    answer: Type.Object({ urls: Type.Array(Recovered) }),
    audit: {
      object: ({ body }) => String((body as Static<typeof Recovery>).url_id ?? ''),
      after: ({ body }, answer) => ({ ...pick(body, 'since', 'until'), ...pick(answer, 'urls') }),
    },
    ...withBody(Recovery, async ({ webhooks }, { since, until, url_id: urlId }) => {
      // The schema requires `since`, so there is a date.
      const sinceMs = readDate('since', since) as number;
      const recovered = await webhooks.redelivery.recover({ sinceMs, untilMs: readDate('until', until), urlId });
      return { urls: recovered.map(({ urlId: id, events }) => ({ url_id: id, events })) };
    }),
  },
];

function urlIdOf({ params }: RouteRequest): string {
  return String(readId(params.id));
}

/** What the audit log records: only the origin of the address, the names of headers, the subjects of certificates. */
function webhookDetails(webhookMembers: object | undefined) {
  const { url, ca, ...others } = (webhookMembers ?? {}) as { readonly url?: unknown; readonly ca?: unknown };
  const origin = originOf(url);
  return {
    ...(origin !== undefined && { origin }),
    ...pick(others, 'merchant', 'headers', 'ordered', 'state', ...Object.keys(Filter), 'rate', 'timeout_seconds'),
    ...(typeof ca === 'object' && { ca }),
  };
}

/** What the audit log records of a URL before a change. */
async function webhookBefore({ store, webhooks }: OperatorParts, { params }: RouteRequest) {
  const url = (await store.listWebhookUrls()).find(({ id }) => id === readId(params.id));
  return url === undefined ? null : webhookDetails(webhookJson(await webhooks.settings.read(url)));
}

async function changeWebhook({ webhooks }: OperatorParts, { params, body }: RouteRequest) {
  const { set_headers: setHeaders, remove_headers: removeHeaders, ...others } = body as Static<typeof ChangedWebhook>;
  const { events, reasons, ping_types: pingTypes, labels, ...unfiltered } = others;
  const [limits, plainMembers] = splitLimits(unfiltered);
  if (plainMembers.url !== undefined) await webhooks.targets.check(plainMembers.url);
  const filter = { events, reasons, pingTypes, labels };
  const wanted = { ...plainMembers, ...limits, setHeaders, removeHeaders, filter };
  return webhookJson(await webhooks.settings.set(readId(params.id), wanted));
}

/** Sends a test webhook: with the lock's latest ping, or with the ping of the request. */
async function sendTest({ webhooks, wallClock }: OperatorParts, mac: Mac, options: Static<typeof Test>) {
  const { url_id: urlId, ping, received_at: receivedAt } = options;
  if (ping === undefined) return await webhooks.tester.test(mac, urlId);
  const receivedAtMs = readDate('received_at', receivedAt) ?? wallClock.now();
  if (!isDatable(receivedAtMs))
    throw new LockgateError('input-date', `received_at is ${JSON.stringify(receivedAt)}: expected a year from 1970 on`);
  return await webhooks.tester.testGiven(mac, { uplink: readGivenPing(ping), receivedAtMs }, urlId);
}

/** The outcome of a test, in the form in which `POST /test_webhook` answers merchants (interfaces.md §2). */
function testJson({ eventId, deliveries }: TestOutcome) {
  return {
    status: deliveries.every(({ error }) => error === null) ? 'success' : 'error',
    event_id: eventId,
    deliveries: deliveries.map(({ urlId, origin, status, durationMs, error }) => {
      return { url_id: urlId, origin, status, duration_ms: durationMs, error };
    }),
  };
}

/** The JSON of a webhook URL. Custom headers may contain credentials, so only their names are shown. */
export function webhookJson({ url, isCircuitOpen, heldUntilMs, oldSecretsUntilMs }: WebhookReading) {
  return {
    id: url.id,
    merchant: url.merchantName,
    url: url.url,
    headers: Object.keys(url.headersSealed),
    ordered: url.ordered,
    ...filterJson(url),
    ...limitsJson(url),
    state: url.state,
    disabled_why: url.disabledWhy,
    circuit: isCircuitOpen ? 'open' : 'closed',
    held_until: heldUntilMs === null ? null : formatDate(heldUntilMs),
    failing_since: url.failingSinceMs === null ? null : formatDate(url.failingSinceMs),
    old_secrets_until: oldSecretsUntilMs.map(formatDate),
    created_at: formatDate(url.createdAtMs),
  };
}
