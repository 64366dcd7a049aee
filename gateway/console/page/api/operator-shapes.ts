/**
 * What the operators' interface answers, as far as the page needs it (docs/operator.md), and how it becomes what the
 * screens show, which both pages share. Pure.
 */
import type { Lock, Presence, Settings } from './shapes.js';

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
    readonly uncertainty: number | null;
    readonly position_date: string | null;
  } | null;
}

/** The lock as the screens show it. */
export function lockOf({ mac, state, since, due, ...lock }: OperatorLock): Lock {
  const { name, labels, merchant, simulated, trouble, presence } = lock;
  const { latitude = null, longitude = null, uncertainty } = state ?? {};
  const isPlaced = latitude !== null && longitude !== null;
  return {
    ...{ mac_addr: mac, name, labels, merchant, simulated, trouble, presence },
    since: since ?? null,
    due: due ?? null,
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
