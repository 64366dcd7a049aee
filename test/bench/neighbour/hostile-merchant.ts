/**
 * The hostile client of the bench's row `neighbour` is also a merchant: this makes one for a flood, with an object of
 * each kind that a path can name, so that each route does its full work.
 */
import { systemClock } from '../../../proto/clock.js';
import { formatMac, parseMac } from '../../../proto/wire/mac.js';
import { testBytes } from '../../helpers/gateway/test-gateway.js';
import { callMerchantApi } from '../../helpers/http/merchant-call.js';
import type { Subject } from '../../helpers/http/own-data/site.js';
import { siteUserId } from '../../helpers/http/own-data/user-calls.js';
import { TestLock } from '../../helpers/mqtt/test-lock.js';
import { lockMac } from '../load/many-locks.js';
import type { Resources } from '../resources.js';
import type { ServeSetup } from '../serve-setup.js';

/** What the hostile merchant calls with, and what its paths name. */
export interface HostileMerchant {
  readonly key: string;
  readonly token: string;
  readonly subject: Subject;
}

/** How many locks a hostile merchant has, and how many pings one of them sends. */
const LOCKS = 200;
const PINGS = 200;
/** Numbers of locks that no other part of the bench uses. */
const FIRST_LOCK = 500_000;
/** Nothing listens there, so that events wait for it. */
const DEAD_URL = 'http://127.0.0.1:9/hostile';

/** Makes the merchant with this number. */
export async function makeHostileMerchant(
  resources: Resources,
  { client, httpPort, mqttPort }: ServeSetup,
  number: number,
): Promise<HostileMerchant> {
  const merchant = `Neighbour ${number}`;
  const { id: merchantId } = await client.post<{ id: number }>('/merchants', { name: merchant });
  const { key } = await client.post<{ key: string }>('/keys', { name: 'flood', merchant });
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const form = { key, body: 'grant_type=client_credentials', headers };
  const { access_token: token } = (await callMerchantApi({ httpPort }, '/oauth/token', form)).body as {
    access_token: string;
  };
  const webhookId = (await client.post<{ id: number }>('/webhooks', { merchant, url: DEAD_URL })).id;
  const macs = Array.from({ length: LOCKS }, (_, index) => lockMac(FIRST_LOCK + number * LOCKS + index));
  const imported = await client.post<{ devices: { mac: string; secret: string }[] }>('/devices/import', {
    merchant,
    devices: macs.map((mac) => ({ mac, name: `Lock ${mac}`, labels: { city: 'Hamburg' } })),
  });
  const [sendingLock = { mac: '', secret: '' }] = imported.devices;
  const parsed = parseMac(sendingLock.mac);
  if (!parsed.ok) throw new Error(parsed.error.message);
  const lock = await TestLock.connect(resources, mqttPort, parsed.value, sendingLock.secret);
  const bytes = Array.from({ length: PINGS }, (_, index) => testBytes(index + 1, { timeMs: systemClock.now() }));
  await Promise.all(bytes.map((ping) => lock.send(ping)));
  await lock.client.endAsync();
  const mac = formatMac(parsed.value);
  const events = await callMerchantApi({ httpPort }, '/v1/events?limit=1', { key });
  const event = (events.body as { data: { event_id: string }[] }).data[0]?.event_id ?? '';
  const commands = await callMerchantApi({ httpPort }, `/v1/locks/${mac}/commands`, { key, body: { type: 'unlock' } });
  const queuedCommand = (commands.body as { id: number }).id;
  const users = ([1, 2, 3] as const).map((user) => ({
    id: Number(siteUserId({ merchantId }, user)),
    username: `u${user}`,
  }));
  await callMerchantApi({ httpPort }, '/v2/user/createWithList', { key, body: users });
  const invited = await callMerchantApi({ httpPort }, '/v1/invitations', { key, body: { dashboard: 'viewer' } });
  const invitationId = Number((invited.body as { id: number | string }).id);
  // There is no disabled URL and no expired command; calls about them name the others.
  const ids = {
    merchantId,
    invitationId,
    webhookId,
    disabledWebhookId: webhookId,
    queuedCommand,
    expiredCommand: queuedCommand,
  };
  return { key, token, subject: { merchant, mac, key, event, ...ids } };
}
