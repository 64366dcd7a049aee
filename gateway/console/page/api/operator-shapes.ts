/**
 * The answers of the operators' interface, with the members that the page needs (docs/operator.md), and functions that
 * convert them into the types that the screens of both pages show (shapes.ts). Pure.
 */
import type {
  Backlog,
  Command,
  Delivery,
  Finding,
  Lock,
  LockDetail,
  Presence,
  Settings,
  WebhookUrl,
} from './shapes.js';

export type OperatorRole = 'read' | 'operate' | 'admin';

/** A session of the operators' page. */
export interface OperatorSession {
  readonly id: number;
  /** The name of the token that asked for it. */
  readonly token: string;
  readonly role: OperatorRole;
  readonly created_at: string;
  readonly expires_at: string;
  readonly address: string;
  /** The browser's `User-Agent`. */
  readonly agent: string | null;
  /** Whether it is the caller's. */
  readonly current: boolean;
}

/** A lock in the operators' answers and in their stream. */
export interface OperatorLock {
  readonly mac: string;
  readonly name: string | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly merchant: string;
  readonly simulated: boolean;
  readonly trouble: string;
  readonly presence: Presence;
  readonly since?: string;
  readonly due?: string | null;
  readonly state: {
    readonly received_at: string | null;
    readonly power_state: string;
    readonly power: Settings;
    readonly reason: string | null;
    readonly lock_state: string | null;
    readonly battery_percent: number | null;
    readonly firmware_version: string | null;
    readonly latitude: number | null;
    readonly longitude: number | null;
    /** Of the position, in metres. */
    readonly uncertainty: number | null;
    readonly position_date: string | null;
  } | null;
}

/** The lock as the screens show it. Called for each of thousands of locks, so it does without the slow `...rest`. */
export function lockOf(lock: OperatorLock): Lock {
  const { state } = lock;
  const { latitude = null, longitude = null, uncertainty } = state ?? {};
  const isPlaced = latitude !== null && longitude !== null;
  return {
    mac_addr: lock.mac,
    name: lock.name,
    labels: lock.labels,
    merchant: lock.merchant,
    simulated: lock.simulated,
    trouble: lock.trouble,
    presence: lock.presence,
    since: lock.since ?? null,
    due: lock.due ?? null,
    power_state: state?.power_state ?? null,
    lock_state: state?.lock_state ?? null,
    battery_percent: state?.battery_percent ?? null,
    firmware_version: state?.firmware_version ?? null,
    position: isPlaced
      ? { latitude, longitude, uncertainty: uncertainty ?? 0, date: state?.position_date ?? null }
      : null,
    last_reason: state?.reason ?? null,
    received_at: state?.received_at ?? null,
  };
}

/** One lock: as in lists, with the state that the gateway infers (`believed`) and the wanted settings (`twin`). */
export type OperatorLockDetail = OperatorLock & Pick<LockDetail, 'believed' | 'twin'>;

export function lockDetailOf(lock: OperatorLockDetail): LockDetail {
  return { ...lockOf(lock), believed: lock.believed, twin: lock.twin };
}

export type OperatorCommand = Omit<Command, 'mac_addr'> & { readonly mac: string };

/** The command that was made for one lock, or why none was. */
export type CommandOutcome =
  | OperatorCommand
  | { readonly mac: string; readonly error: { readonly code: string; readonly detail: string } };

export function commandOf({ mac, ...command }: OperatorCommand): Command {
  return { mac_addr: mac, ...command };
}

export interface OperatorFinding extends Pick<Finding, 'at' | 'rule' | 'severity' | 'message'> {
  readonly id: number;
  /** In lists about several locks. */
  readonly mac?: string;
  readonly uplink: { readonly boot: number; readonly sequence: number } | null;
}

export function findingOf({ id, mac, uplink, ...finding }: OperatorFinding): Finding {
  const { boot = null, sequence = null } = uplink ?? {};
  return { id: `finding:${id}`, ...finding, boot, sequence, ...(mac !== undefined && { mac_addr: mac }) };
}

export interface OperatorWebhook extends Pick<WebhookUrl, 'id' | 'state' | 'disabled_why' | 'failing_since'> {
  readonly url: string;
  readonly merchant: string;
  readonly backlog: Backlog | null;
}

/** The URL as the screens show it. `figures` is null: operators' screens load them by a call for each URL. */
export function webhookOf({ url, id, merchant, state, disabled_why, failing_since, backlog }: OperatorWebhook) {
  return { id, name: url, merchant, state, disabled_why, failing_since, backlog, figures: null };
}

export interface DeliveryAnswer extends Omit<Delivery, 'mac_addr'> {
  readonly mac: string;
  readonly url_id: number;
}

export function deliveryOf({ mac, url_id: _url, ...delivery }: DeliveryAnswer): Delivery {
  return { mac_addr: mac, ...delivery };
}

/** The members of `GET /status` that say what is wrong. */
export interface GatewayStatus {
  readonly reasons: readonly { readonly why: string }[];
  readonly notices_unread: number;
}

/** What is wrong with the gateway, in sentences. */
export function statusTroubles({ reasons, notices_unread: unread }: GatewayStatus): readonly string[] {
  const notices = `${unread} unread ${unread === 1 ? 'notice' : 'notices'}: lockgate notices`;
  return [...reasons.map(({ why }) => why), ...(unread > 0 ? [notices] : [])];
}
