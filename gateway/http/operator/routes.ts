/**
 * The types of the operators' routes, and the routes for the gateway and single locks. Bodies are validated before a
 * handler gets them; a handler refuses a request by throwing a LockgateError. JSON members are snake_case, as
 * everywhere in lockgate.
 */
import { type Static, type TObject, type TSchema, Type } from 'typebox';
import type { Clock } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import { decodeUplink } from '../../../proto/wire/codec.js';
import { formatMac, type Mac, parseMac } from '../../../proto/wire/mac.js';
import { isPingUplink } from '../../../proto/wire/ping.js';
import { formatDate, isDatable, pingToJson } from '../../../proto/wire/ping-json.js';
import type { Accounts } from '../../accounts/accounts.js';
import type { MerchantParts } from '../../accounts/merchant-parts.js';
import type { OperatorTokens } from '../../accounts/operator-tokens.js';
import type { Audit } from '../../audit/audit.js';
import type { RecordedClocks } from '../../clocks/recorded-clocks.js';
import type { Commands } from '../../commands/commands.js';
import { readTwin } from '../../commands/twin.js';
import { parseDeviceState } from '../../locks/device-state.js';
import type { Locks } from '../../locks/locks.js';
import type { Figures } from '../../metrics/figures.js';
import { budgetText } from '../../mqtt/budget/budget-events.js';
import type { UplinkBudgets } from '../../mqtt/budget/uplink-budgets.js';
import type { RefusalRecorder } from '../../mqtt/refusals/refusal-recorder.js';
import type { Notices } from '../../notices/notices.js';
import type { Notifier } from '../../notify/notifier.js';
import type { SettingInForce } from '../../resolved-settings.js';
import type { Refusal } from '../../store/contract/devices/refusal-store.js';
import { noSuchDevice } from '../../store/contract/errors.js';
import type { QuarantinedMessage } from '../../store/contract/log/log-entry.js';
import type { StoredUplink } from '../../store/contract/log/stored-uplink.js';
import type { Store } from '../../store/contract/store.js';
import { addCounts, countsJson, ZERO_USAGE } from '../../usage/counts.js';
import type { Usage } from '../../usage/usage.js';
import { eventId } from '../../webhooks/event-id.js';
import type { Webhooks } from '../../webhooks/webhooks.js';
import { believedJson } from '../merchant/own-data/lock-json.js';
import { type AuditTerms, pick } from './json/audit-terms.js';
import { deviceJson } from './json/device.js';
import { findingJson } from './json/event.js';
import { DeviceDetailAnswer, Exact, LabelMap, MacText, Name, NewDeviceAnswer } from './schemas.js';
import { type Status, StatusAnswer } from './status.js';

/** Maximum number of rows of each list of `GET /devices/:mac`: uplinks, findings, quarantined (invalid) messages. */
const MAX_SHOWN_ROWS = 20;

export interface OperatorParts {
  readonly store: Store;
  readonly accounts: Accounts;
  readonly webhooks: Webhooks;
  readonly commands: Commands;
  readonly usage: Usage;
  /** Merchants' keys and users. */
  readonly merchants: MerchantParts;
  /** Operators' named tokens. */
  readonly operatorTokens: OperatorTokens;
  readonly notices: Notices;
  readonly notifier: Notifier;
  readonly audit: Audit;
  /** Each lock's budget of uplinks. */
  readonly budgets: UplinkBudgets;
  readonly locks: Locks;
  /** What the broker recently refused of each lock. */
  readonly refusals: RefusalRecorder;
  /** The effective settings and the source of each. */
  readonly settings: () => Promise<readonly SettingInForce[]>;
  /** The run's clock: the time of locks, which a simulation may let run faster than the wall clock. */
  readonly clock: Clock;
  /** The system clock, and the time that the gateway trusts. */
  readonly clocks: Pick<RecordedClocks, 'reading' | 'confirm' | 'speed'>;
  /** The wall clock, by which credentials expire. */
  readonly wallClock: Clock;
  /** The status of the gateway itself. */
  readonly status: () => Promise<Status>;
  /** The numbers that `GET /metrics` shows. */
  readonly figures: Figures;
}

/** The description of a route. Streams (streams.ts) and metrics (routes/health-routes.ts) are described by it too. */
export interface RouteTerms {
  /** Its name in the OpenAPI document (document.ts) and its action in the audit log, such as `device.set`. */
  readonly operation: string;
  readonly path: string;
  readonly summary: string;
  /** The query string; by default it must be empty. */
  readonly query?: TObject;
  /** The body's schema; undefined for a route without a body. */
  readonly body?: TSchema;
  /** The handler validates the body, with better error messages than a schema gives. */
  readonly isBodyCheckedByHandler?: true;
  /** The answer's schema, if it is JSON. */
  readonly answer: TSchema;
}

/** The common part of routes that answer JSON. */
interface AnsweringTerms extends RouteTerms {
  readonly success: 200 | 201;
  /** The limit of the body in bytes, if it is not MAX_BODY_BYTES (shared/limits.ts). */
  readonly bodyLimit?: number;
  readonly handle: (parts: OperatorParts, request: RouteRequest) => Promise<unknown>;
}

/** A route that changes nothing. */
export interface ReadingRoute extends AnsweringTerms {
  readonly method: 'GET';
}

/** A route that changes something, recorded in the audit log. */
export interface ChangingRoute extends AnsweringTerms {
  readonly method: 'POST' | 'PATCH' | 'DELETE';
  readonly audit: AuditTerms<OperatorParts, RouteRequest>;
}

export type Route = ReadingRoute | ChangingRoute;

/** A query string; a repeated member is a list. */
export type Query = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface RouteRequest {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Query;
  readonly body: unknown;
}

const NewDevice = Exact({
  mac: MacText,
  merchant: Type.Optional(Name),
  simulated: Type.Optional(Type.Boolean()),
  name: Type.Optional(Type.String()),
  labels: Type.Optional(LabelMap),
});

/** Makes the body and the handler of a route, so that the handler gets the validated body with its type. */
export function withBody<Body extends TSchema>(
  body: Body,
  handle: (parts: OperatorParts, body: Static<Body>) => Promise<unknown>,
): Pick<AnsweringTerms, 'body' | 'handle'> {
  return { body, handle: (parts, request) => handle(parts, request.body as Static<Body>) };
}

/** Routes for the gateway and single locks. Which role each needs is in roles.ts. */
export const ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/status',
    operation: 'status.show',
    summary: 'The gateway’s version, ports, store, connections, locks, webhook URLs and disk.',
    success: 200,
    answer: StatusAnswer,
    handle: async ({ status }) => await status(),
  },
  {
    method: 'POST',
    path: '/devices',
    operation: 'device.add',
    summary: 'Adds a lock to a merchant; returns its secret, once.',
    success: 201,
    answer: NewDeviceAnswer,
    audit: {
      object: ({ body }) => formatMac(readMac((body as Static<typeof NewDevice>).mac)),
      after: ({ body }, answer) => pick(answer ?? body, 'merchant', 'simulated'),
    },
    ...withBody(NewDevice, async (parts, body) => {
      const { device, secret } = await parts.accounts.addDevice({ ...body, mac: readMac(body.mac) });
      return { ...deviceJson({ device, state: null }, parts, parts.clock.now()), secret };
    }),
  },
  {
    method: 'GET',
    path: '/devices/:mac',
    operation: 'device.show',
    summary: 'One lock: its latest state, twin, uplinks, refusals and quarantined messages.',
    success: 200,
    answer: DeviceDetailAnswer,
    handle: async (parts, { params }) => showDevice(parts, readMac(params.mac ?? '')),
  },
];

/** Reads a MAC in any common spelling. @throws LockgateError `input-mac` */
export function readMac(text: string): Mac {
  const mac = parseMac(text);
  if (!mac.ok) throw new LockgateError('input-mac', mac.error.message);
  return mac.value;
}

/** The lock's usage in the current month, summed over all merchants that had it. */
async function usageJson(usage: Usage, mac: Mac) {
  const { month } = usage.meter;
  const rows = await usage.read({ mac, month });
  return { month, ...countsJson(rows.reduce(addCounts, ZERO_USAGE)) };
}

/** The answer to `GET /devices/:mac`: the lock with its recent history and its twin (wanted and reported settings). */
async function showDevice(parts: OperatorParts, mac: Mac): Promise<unknown> {
  const { store, usage, clock, budgets, refusals } = parts;
  const reading = await store.findDevice(mac);
  if (reading === null) throw noSuchDevice(mac);
  const nowMs = clock.now();
  const state = reading.state === null ? null : parseDeviceState(reading.state);
  const belief = state?.belief;
  const [uplinks, phoneUplinks, findings, quarantine, refused, twin] = await Promise.all([
    store.readUplinks(reading.device.id, MAX_SHOWN_ROWS),
    store.readUplinks(reading.device.id, MAX_SHOWN_ROWS, 'phone'),
    store.readFindings(reading.device.id, MAX_SHOWN_ROWS),
    store.readQuarantine(reading.device.id, MAX_SHOWN_ROWS),
    refusals.read(reading.device.id),
    readTwin(store.commands, reading.device.id, belief, nowMs),
  ]);
  return {
    ...deviceJson(reading, parts, nowMs),
    believed: believedJson({ state }),
    usage: await usageJson(usage, mac),
    twin,
    over_budget: overBudgetJson(budgets, reading.device.id),
    uplinks: uplinks.map(uplinkJson),
    phone_uplinks: phoneUplinks.map(uplinkJson),
    findings: findings.map(({ id, finding }) => ({ id, ...findingJson(finding) })),
    refusals: refused.map(refusalJson),
    quarantine: quarantine.map(quarantineJson),
  };
}

/** Which uplink budgets of a lock are exceeded: the lock's own, or that of its phones. */
function overBudgetJson(budgets: UplinkBudgets, deviceId: number) {
  return budgets.overOf(deviceId).map(({ source, limit, sinceMs }) => {
    return { source, limit, since: formatDate(sinceMs), why: budgetText(budgets.limits, limit, source) };
  });
}

function refusalJson({ firstAtMs, lastAtMs, ...refusal }: Refusal) {
  return { ...refusal, first_at: formatDate(firstAtMs), last_at: formatDate(lastAtMs) };
}

function uplinkJson(stored: StoredUplink) {
  const { boot, sequence, receivedAtMs, buffered, bytes } = stored;
  const head = { received_at: formatDate(receivedAtMs), boot, sequence, buffered };
  const decoded = stored.isDamaged ? undefined : decodeUplink(bytes);
  // A damaged uplink is only marked, so that the other uplinks are still shown.
  if (decoded?.ok !== true) return { ...head, date: null, damaged: true };
  const uplink = decoded.value;
  const date = isDatable(uplink.timeMs) ? formatDate(uplink.timeMs) : null;
  if (isPingUplink(uplink)) return { ...head, date, event_id: eventId(stored), ping: pingToJson(uplink.body) };
  return { ...head, date, ack: uplink.body };
}

function quarantineJson({ id, receivedAtMs, code, message, bytes }: QuarantinedMessage) {
  return { id, received_at: formatDate(receivedAtMs), code, message, raw: bytes.toString('base64') };
}
