/**
 * The answers of the gateway's HTTP interface, with the members that the pages show (docs/http.md). Dates are RFC 3339.
 * Types only.
 */

export interface Position {
  readonly latitude: number;
  readonly longitude: number;
  /** In metres. */
  readonly uncertainty: number;
  readonly date: string | null;
}

/**
 * What a lock's connection, or its silence, means: `asleep` is silent as its settings explain, `late` longer than they
 * explain.
 */
export type Presence = 'online' | 'asleep' | 'late' | 'low-battery' | 'airplane' | 'never-seen';

/** A lock, as it is in lists and streams. */
export interface Lock {
  readonly mac_addr: string;
  readonly name: string | null;
  readonly labels: Readonly<Record<string, string>>;
  /** The lock's merchant; only in answers to operators. */
  readonly merchant?: string;
  readonly simulated: boolean;
  /** `none`, or what needs attention most, such as `theft`. */
  readonly trouble: string;
  readonly presence: Presence;
  /** Since when the lock has had this presence. */
  readonly since: string | null;
  /** When a lock that is asleep is expected next. */
  readonly due: string | null;
  readonly power_state: string | null;
  readonly lock_state: string | null;
  readonly battery_percent: number | null;
  readonly firmware_version: string | null;
  readonly position: Position | null;
  readonly last_reason: string | null;
  readonly received_at: string | null;
}

/** A lock's power settings; those that are unknown are missing. */
export interface Settings {
  readonly mode?: string;
  readonly ride_tracking?: boolean;
  readonly airplane?: boolean;
  readonly recovery?: boolean;
  /** When a lock in mode HIGH stays connected: `from` and `to` are HH:MM of the day. */
  readonly high_window?: { readonly from: string; readonly to: string; readonly utc_offset_minutes: number };
}

export interface LockDetail extends Lock {
  /** The lock's state as the gateway infers it from the lock's messages; null before the first one. */
  readonly believed: {
    readonly power_state: string;
    readonly power_state_since: string | null;
    /** Whether the lock has dropped messages, so that its state may be another one. */
    readonly is_doubtful: boolean;
    readonly connected: boolean;
    readonly connected_since: string | null;
    readonly offline_since: string | null;
    /** How many messages of the lock the state was inferred from. */
    readonly messages: number;
    readonly power: Settings;
  } | null;
  /** The settings that commands asked for, those that the lock reported, and the names of those that differ. */
  readonly twin: {
    readonly wanted: Settings;
    readonly reported: Settings | null;
    readonly differs: readonly string[];
  };
}

/** A ping, with the same members as in a webhook's body. */
export interface Ping {
  readonly event_id: string;
  readonly mac_addr: string;
  readonly ping_type: 'cellular' | 'gps' | 'close_connection';
  readonly reason: string;
  readonly date: string;
  readonly received_at: string;
  readonly lock_state: string;
  readonly battery_percent: number;
  /** A ping with a position has all of latitude, longitude and uncertainty. */
  readonly latitude?: number;
  readonly longitude?: number;
  /** In metres. */
  readonly uncertainty?: number;
  /** In metres a second. */
  readonly speed?: number;
  /** How often the lock had booted, and the number of the message since then. */
  readonly boot: number;
  readonly sequence: number;
  /** Whether it arrived more than a minute after the lock made it. */
  readonly buffered: boolean;
}

/** A lock's power states and connections in a span of time, oldest first. */
export interface LockHistory {
  readonly states: readonly { readonly state: string; readonly since: string }[];
  readonly connections: readonly {
    readonly from: string;
    readonly to: string | null;
    /** Why it ended, such as `closed` or `dropped`; null while it lasts. */
    readonly cause: string | null;
  }[];
}

/** A lock's GPS pings as a GeoJSON feature, oldest first; without a geometry (null) if there are none. */
export interface Track {
  readonly geometry:
    | { readonly type: 'LineString'; readonly coordinates: readonly (readonly [longitude: number, latitude: number])[] }
    // One position only: the page draws no line.
    | { readonly type: 'Point' }
    | null;
}

export interface Finding {
  readonly id: string;
  /** In lists about several locks. */
  readonly mac_addr?: string;
  readonly at: string;
  readonly rule: string;
  readonly severity: 'violation' | 'warning';
  readonly message: string;
  readonly boot: number | null;
  readonly sequence: number | null;
}

export interface Command {
  readonly id: number;
  readonly mac_addr: string;
  readonly type: string;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly state: 'queued' | 'sent' | 'done' | 'rejected' | 'failed' | 'expired' | 'cancelled';
  readonly detail: string;
  /** What a queued command waits for; null once it was sent. */
  readonly waits: { readonly for: string; readonly text: string; readonly due_at: string | null } | null;
  readonly asked_by: string;
  readonly created_at: string;
  readonly expires_at: string;
  readonly finished_at: string | null;
}

/** The explanation of `why`, step by step; `rests_on` names what a step's sentence is concluded from. */
export interface Why {
  /** What is explained. */
  readonly about: Readonly<Record<string, unknown>>;
  readonly steps: readonly { readonly sentence: string; readonly rests_on: string; readonly at: string | null }[];
}

export interface WebhookUrl {
  readonly id: number;
  /** For merchants the URL's origin, for operators the complete URL. */
  readonly name: string;
  /** The URL's merchant; only in answers to operators. */
  readonly merchant?: string;
  readonly state: string;
  readonly disabled_why: string | null;
  readonly failing_since: string | null;
  /** How many events wait for the URL; null if that is not counted. Only in answers to operators. */
  readonly backlog?: Backlog | null;
  /** Null if they must be loaded by a further call (`webhookFigures`). */
  readonly figures: WebhookFigures | null;
}

/** How many events a URL has not accepted. */
export interface Backlog {
  /** Not sent yet: the URL has not reached them. */
  readonly behind: number;
  /** Waiting for a retry, or for an earlier event of their lock. */
  readonly pending: number;
  /** Given up after the last attempt. */
  readonly dead: number;
  /** The age of the oldest of them; null if there is none. */
  readonly oldest_seconds: number | null;
}

/** How the newest attempts went. */
export interface WebhookFigures {
  readonly attempts: number;
  /** From 0 to 1; null without an attempt. */
  readonly success_rate: number | null;
  readonly p95_ms: number | null;
  readonly last_success_at: string | null;
  readonly last_error: { readonly at: string; readonly status: number | null; readonly error: string } | null;
}

export interface Delivery {
  readonly event_id: string;
  readonly mac_addr: string;
  /** `ping`, `command`, `presence` or `battery`. */
  readonly type: string;
  /** Null for other events than pings, and if the stored ping is damaged. */
  readonly reason: string | null;
  readonly received_at: string;
  /**
   * `dead`: given up; `kept`: not sent while the URL was disabled; `damaged`: not sent, since the stored ping does not
   * match its checksum.
   */
  readonly state: 'pending' | 'delivered' | 'dead' | 'kept' | 'damaged';
  readonly next_attempt_at: string | null;
  readonly attempts: readonly {
    readonly number: number;
    readonly at: string;
    readonly status: number | null;
    /** Null if the address is not allowed. */
    readonly duration_ms: number | null;
    readonly error: string | null;
    /** The start of the receiver's answer; only in answers to operators. */
    readonly answer?: string | null;
  }[];
}

/** A delivery of one of the lock's events. */
export interface LockDelivery {
  /** The URL's origin, followed by its id if several URLs have the same origin. */
  readonly target: string;
  readonly delivery: Delivery;
}

/** What became of the events that were received in an hour. */
export interface DeliveryHour {
  readonly from: string;
  readonly delivered: number;
  readonly failed_attempts: number;
  readonly dead: number;
  readonly waiting: number;
  /** Whether the counts are extrapolated, since the hour had very many events. */
  readonly estimated: boolean;
}

/** `viewer` reads; `staff` also sends commands, names locks and resends webhooks; `owner` may do everything. */
export type DashboardRole = 'owner' | 'staff' | 'viewer';

/** A session of the dashboard. */
export interface Session {
  readonly id: number;
  readonly merchant: string;
  readonly username: string;
  readonly role: DashboardRole;
  readonly created_at: string;
  readonly expires_at: string;
  readonly address: string;
  /** The browser's `User-Agent`. */
  readonly agent: string | null;
  /** Whether it is the caller's. */
  readonly current: boolean;
}

export interface ApiKey {
  readonly id: string;
  readonly name: string;
  readonly state: 'active' | 'expired' | 'revoked';
  readonly created_at: string;
  readonly last_used_at: string | null;
  readonly expires_at: string | null;
  readonly scopes: readonly string[];
}

export interface User {
  readonly id: string;
  readonly username: string;
  readonly email: string | null;
  readonly dashboard: DashboardRole | null;
  readonly has_password: boolean;
}

export interface Invitation {
  readonly id: number;
  readonly username: string | null;
  readonly dashboard: DashboardRole;
  readonly expires_at: string;
}

/** What an invitation offers. */
export interface InvitationOffer {
  readonly merchant: string;
  /** Null if the invited person chooses it. */
  readonly username: string | null;
  readonly dashboard: DashboardRole;
}

export interface LockUsage {
  /** YYYY-MM. */
  readonly month: string;
  readonly mac_addr: string;
  readonly simulated: boolean;
  readonly messages: number;
  readonly connections: number;
  readonly bytes: number;
}

export interface StatementMonth {
  readonly month: string;
  readonly closed_at: string;
}
