/**
 * The "site", a test fixture: a gateway with two merchants, each with a lock that sent some pings, for tests of the
 * operations on a merchant's own data. The clocks do not advance, so that answers are the same in each run.
 */
import { DEFAULT_FAIRNESS } from '../../../../gateway/fairness/fairness-settings.js';
import type { Gateway, GatewayOptions } from '../../../../gateway/gateway.js';
import { SWEPT_METADATA } from '../../../../gateway/store/contract/deletion.js';
import type { Month } from '../../../../gateway/usage/month.js';
import { makeStatement, type StatementBasis } from '../../../../gateway/usage/statement.js';
import { eventId } from '../../../../gateway/webhooks/event-id.js';
import { Days, ManualClock, systemClock } from '../../../../proto/clock.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import type { Ping } from '../../../../proto/wire/ping.js';
import { openGateway, testBytes, testMac, waitForEvents } from '../../gateway/test-gateway.js';
import { TestLock } from '../../mqtt/test-lock.js';
import { memoryFolder, type Teardown } from '../../store/temp-folder.js';

/** What the site's clocks show. */
export const SITE_NOW_MS = Date.UTC(2026, 10, 20, 6, 30);

/** A month with statements. */
export const SITE_CLOSED_MONTH = '2026-10' as Month;

/** The store says that rows from before this time were deleted because of their age ("swept"). */
export const SITE_SWEPT_MS = SITE_NOW_MS - Days(90);

/** A merchant with a lock. */
export interface Subject {
  readonly merchant: string;
  readonly merchantId: number;
  /** A queued command to the lock. */
  readonly queuedCommand: number;
  /** A command to the lock that expired. */
  readonly expiredCommand: number;
  /** An active webhook URL, at whose address nothing listens. */
  readonly webhookId: number;
  /** A disabled webhook URL. */
  readonly disabledWebhookId: number;
  /** An open invitation. */
  readonly invitationId: number;
  /** One of the lock's events. */
  readonly event: string;
  /** The lock's MAC as `A4:C1:38:F0:E1:D2`. */
  readonly mac: string;
  /** An API key with every scope. */
  readonly key: string;
}

/** The gateway and its two merchants, which have the same data. */
export interface OwnDataSite {
  readonly gateway: Gateway;
  readonly folder: string;
  readonly amber: Subject;
  readonly basil: Subject;
}

const CELLULAR: Ping = {
  kind: 'cellular',
  reason: 'REASON_STATE_PING',
  lockState: 'locked',
  batteryPercent: 81,
  firmwareVersion: '2.4.1',
  ebikeVolts: null,
  tetherState: 'detached',
  position: null,
};

/** A period ping from a place. */
function periodPing(latitudeDegrees: number, longitudeDegrees: number): Ping {
  return {
    kind: 'gps',
    reason: 'REASON_PERIOD_TRACKING',
    lockState: 'locked',
    batteryPercent: 80,
    ebikeVolts: null,
    tetherState: 'detached',
    position: { latitudeDegrees, longitudeDegrees, uncertaintyMeters: 6 },
    speedMetersPerSecond: 0,
    directionDegrees: 0,
  };
}

/** What each lock sends: the second period ping is too soon, which is a finding. */
const PINGS: readonly Ping[] = [
  CELLULAR,
  periodPing(52.520008, 13.404954),
  periodPing(52.520108, 13.405954),
  { kind: 'close_connection', reason: 'REASON_CLOSE_CONNECTION', lockState: 'locked', batteryPercent: 80 },
];

/** Starts the site. */
export async function ownDataSite(test: Teardown, options: GatewayOptions = {}): Promise<OwnDataSite> {
  const folder = memoryFolder(test);
  const machine = { wall: () => SITE_NOW_MS, monotonic: () => SITE_NOW_MS, after: systemClock.after };
  const clocks = { runClock: new ManualClock(SITE_NOW_MS), machine, httpBudgetClock: new ManualClock() };
  // Request budgets do not refill, since their clock does not advance. 2,000 is more calls than any test makes.
  const fairness = { ...DEFAULT_FAIRNESS, requests: { perSecond: 50, burst: 2_000 } };
  const gateway = await openGateway(test, folder, { ...clocks, ...options }, { fairness });
  const amber = await addSubject(test, gateway, 'Amber', 1);
  const basil = await addSubject(test, gateway, 'Basil', 2);
  for (const { merchantId } of [amber, basil]) {
    const make = (basis: StatementBasis): string => JSON.stringify(makeStatement(basis));
    await gateway.store.usage.close(merchantId, SITE_CLOSED_MONTH, SITE_NOW_MS, make);
  }
  await gateway.store.writeMetadata(SWEPT_METADATA, String(SITE_SWEPT_MS));
  return { gateway, folder, amber, basil };
}

/** The role of each merchant's first user. */
const dashboardRole = 'owner' as const;

/** Adds a merchant with a lock that sends its pings, one second apart, the last a second before the site's time. */
async function addSubject(test: Teardown, gateway: Gateway, merchant: string, number: number): Promise<Subject> {
  const { id: merchantId } = await gateway.accounts.addMerchant(merchant);
  const mac = testMac(number);
  const { secret } = await gateway.accounts.addDevice({ mac, merchant });
  const lock = await TestLock.connect(test, gateway.mqttPort, mac, secret);
  for (const [index, body] of PINGS.entries())
    await lock.send(testBytes(index + 1, { timeMs: SITE_NOW_MS + (index - PINGS.length) * 1_000, body }));
  // The gateway reports the lock as asleep only after it has seen that the connection is closed.
  const ended = waitForEvents(gateway, 'disconnected', 1);
  await lock.client.endAsync();
  await ended;
  const emptyFields = {
    firstName: null,
    lastName: null,
    email: null,
    phone: null,
    userStatus: null,
    passwordHash: null,
  };
  // user-calls.ts computes these ids in the same way.
  const users = ['ada', 'bo', 'cy'].map((username, index) => {
    return { ...emptyFields, id: BigInt(merchantId * 10 + index + 1), username, ...(index === 0 && { dashboardRole }) };
  });
  await gateway.store.people.addUsers(merchantId, users, SITE_NOW_MS);
  const { apiKeys, invitations } = gateway.merchants;
  const { text: key } = await apiKeys.create(merchant, 'test');
  const { invitation } = await invitations.create(merchantId, { username: 'zoe', role: 'staff' });
  const { id: deviceId } = (await gateway.store.findDevice(mac))?.device ?? { id: 0 };
  const commandTerms = { expiresAtMs: SITE_NOW_MS + Days(1), notBeforeMs: null, askedBy: 'the site' };
  const command = { type: 'lock' } as const;
  const queued = await gateway.commands.sendTo(
    { deviceId, merchantId, mac },
    { ...commandTerms, command, confirmsAirplane: false },
  );
  const [expired] = await gateway.store.commands.add([
    {
      ...commandTerms,
      deviceId,
      merchantId,
      command,
      createdAtMs: SITE_NOW_MS - Days(2),
      expiresAtMs: SITE_NOW_MS - Days(1),
    },
  ]);
  await gateway.store.commands.expire([expired?.id ?? 0], SITE_NOW_MS - Days(1));
  const url = 'http://127.0.0.1:9/secret-path';
  const webhookId = (await gateway.accounts.addWebhookUrl({ merchant, url })).url.id;
  const disabledWebhookId = (await gateway.accounts.addWebhookUrl({ merchant, url })).url.id;
  await gateway.webhooks.settings.set(disabledWebhookId, { state: 'disabled' });
  const [newest] = await gateway.store.readUplinks(deviceId, 1);
  const event = newest === undefined ? '' : eventId(newest);
  const webhooks = { webhookId, disabledWebhookId, event };
  const ids = {
    merchantId,
    invitationId: invitation.id,
    ...webhooks,
    queuedCommand: queued.id,
    expiredCommand: expired?.id ?? 0,
  };
  return { merchant, ...ids, mac: formatMac(mac), key };
}
