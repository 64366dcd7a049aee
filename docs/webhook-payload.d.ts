// Generated from gateway/webhooks/payload/schema.ts by `npm run gen`. Change the schema and run it again instead
// of editing this.

/** The body of a webhook for a ping, by its ping_type. Ignore unknown members: later versions may add some. */
export type WebhookPayload = CellularWebhook | GpsWebhook | CloseConnectionWebhook;

/** The body of any webhook. Only URLs that are set to get other events than pings get them; they have a type. */
export type WebhookEvent = WebhookPayload | CommandWebhook | PresenceWebhook | BatteryWebhook;

/** Why it was sent. A reason that this version doesn’t know comes as REASON_UNRECOGNIZED_ and its number. */
export type Reason =
  | 'REASON_THEFT'
  | 'REASON_PERIOD_TRACKING'
  | 'REASON_STATE_PING'
  | 'REASON_UNLOCKED_PING'
  | 'REASON_UNLOCKED_MOVEMENT'
  | 'REASON_GPS_PING'
  | 'REASON_CELL_PING'
  | 'REASON_NETWORK_PING'
  | 'REASON_RESET'
  | 'REASON_CLOSE_CONNECTION'
  | 'PHONE'
  | `REASON_UNRECOGNIZED_${number}`;

/** A cellular ping. With REASON_CELL_PING and PHONE it has a position: all three of its members. */
export interface CellularWebhook {
  /** Identifies the event. The same on every attempt, and the same as the header webhook-id. */
  event_id: string;
  /** The lock’s hardware address, upper-case hex with colons. */
  mac_addr: string;
  /** Determines the other members. */
  ping_type: 'cellular';
  /** Why it was sent. A reason that this version doesn’t know comes as REASON_UNRECOGNIZED_ and its number. */
  reason: Reason;
  /** When the lock made the ping, by its clock; if outside the years 1970–9999, when lockgate received it. */
  date: string;
  /** Whether the lock is locked; unknown if it doesn’t say. */
  lock_state: 'locked' | 'unlocked' | 'unknown';
  /** The lock’s battery, in percent; 0 to 100 in a sane lock. */
  battery_percent: number;
  /** The lock’s firmware version. Any text, also an empty one. */
  firmware_version: string;
  /** Voltage of the e-bike’s battery, in volts; null if no e-bike is connected. */
  ebike_voltage: number | null;
  /** Whether the tether is plugged into the lock; unknown if it doesn’t say. */
  tether_state: 'attached' | 'detached' | 'unknown';
  /** Degrees north, −90 to 90 in a sane ping. */
  latitude?: number;
  /** Degrees east, −180 to 180 in a sane ping. */
  longitude?: number;
  /** Radius around the position, in whole metres. */
  uncertainty?: number;
  /** When lockgate received the ping. */
  received_at: string;
  /** Counts the boots of the lock. */
  boot: number;
  /** Counts the messages of the lock since that boot. */
  sequence: number;
  /** The ping arrived over 60 s after the lock made it. */
  buffered: boolean;
  /** Sent by a test or a story (a scripted series of pings), not by a lock. */
  test: boolean;
  /** The lock is simulated. */
  simulated: boolean;
}

/** A GPS ping: the lock had a fix. */
export interface GpsWebhook {
  /** Identifies the event. The same on every attempt, and the same as the header webhook-id. */
  event_id: string;
  /** The lock’s hardware address, upper-case hex with colons. */
  mac_addr: string;
  /** Determines the other members. */
  ping_type: 'gps';
  /** Why it was sent. A reason that this version doesn’t know comes as REASON_UNRECOGNIZED_ and its number. */
  reason: Reason;
  /** When the lock made the ping, by its clock; if outside the years 1970–9999, when lockgate received it. */
  date: string;
  /** Whether the lock is locked; unknown if it doesn’t say. */
  lock_state: 'locked' | 'unlocked' | 'unknown';
  /** The lock’s battery, in percent; 0 to 100 in a sane lock. */
  battery_percent: number;
  /** Voltage of the e-bike’s battery, in volts; null if no e-bike is connected. */
  ebike_voltage: number | null;
  /** Whether the tether is plugged into the lock; unknown if it doesn’t say. */
  tether_state: 'attached' | 'detached' | 'unknown';
  /** Degrees north, −90 to 90 in a sane ping. */
  latitude: number;
  /** Degrees east, −180 to 180 in a sane ping. */
  longitude: number;
  /** Metres per second. */
  speed: number;
  /** Direction of the motion: degrees clockwise from north, [0, 360) in a sane ping. */
  direction: number;
  /** Radius around the position, in whole metres. */
  uncertainty: number;
  /** When lockgate received the ping. */
  received_at: string;
  /** Counts the boots of the lock. */
  boot: number;
  /** Counts the messages of the lock since that boot. */
  sequence: number;
  /** The ping arrived over 60 s after the lock made it. */
  buffered: boolean;
  /** Sent by a test or a story (a scripted series of pings), not by a lock. */
  test: boolean;
  /** The lock is simulated. */
  simulated: boolean;
}

/** The lock disconnects from the network. */
export interface CloseConnectionWebhook {
  /** Identifies the event. The same on every attempt, and the same as the header webhook-id. */
  event_id: string;
  /** The lock’s hardware address, upper-case hex with colons. */
  mac_addr: string;
  /** Determines the other members. */
  ping_type: 'close_connection';
  /** Always this reason. */
  reason: 'REASON_CLOSE_CONNECTION';
  /** When the lock made the ping, by its clock; if outside the years 1970–9999, when lockgate received it. */
  date: string;
  /** Whether the lock is locked; unknown if it doesn’t say. */
  lock_state: 'locked' | 'unlocked' | 'unknown';
  /** The lock’s battery, in percent; 0 to 100 in a sane lock. */
  battery_percent: number;
  /** When lockgate received the ping. */
  received_at: string;
  /** Counts the boots of the lock. */
  boot: number;
  /** Counts the messages of the lock since that boot. */
  sequence: number;
  /** The ping arrived over 60 s after the lock made it. */
  buffered: boolean;
  /** Sent by a test or a story (a scripted series of pings), not by a lock. */
  test: boolean;
  /** The lock is simulated. */
  simulated: boolean;
}

/** A command to a lock has ended. */
export interface CommandWebhook {
  /** Identifies the event. The same on every attempt, and the same as the header webhook-id. */
  event_id: string;
  /** Determines the other members. Pings have ping_type instead. */
  type: 'command';
  /** The lock’s hardware address, upper-case hex with colons. */
  mac_addr: string;
  /** When it happened, by lockgate’s clock. */
  date: string;
  /** The id of the command. */
  command_id: number;
  /** The type of the command. */
  command: 'unlock' | 'lock' | 'siren' | 'locate-gps' | 'locate-cell' | 'set-power' | 'reset';
  /** The parameters of the command, by its type. */
  parameters: Record<string, unknown>;
  /** How it ended. A command that expired may still be answered: a second event then says so. */
  state: 'done' | 'rejected' | 'failed' | 'expired' | 'cancelled';
  /** The lock’s reason; empty if there is none. */
  detail: string;
  /** Who asked for it. */
  asked_by: string;
  /** When lockgate accepted it. */
  created_at: string;
  /** When it was first sent to the lock; null if it never was. */
  first_sent_at: string | null;
  /** How often it was sent. */
  sent_count: number;
  /** Always false. */
  test: boolean;
  /** The lock is simulated. */
  simulated: boolean;
}

/** A lock is late, or back. */
export interface PresenceWebhook {
  /** Identifies the event. The same on every attempt, and the same as the header webhook-id. */
  event_id: string;
  /** Determines the other members. Pings have ping_type instead. */
  type: 'presence';
  /** The lock’s hardware address, upper-case hex with colons. */
  mac_addr: string;
  /** When it happened, by lockgate’s clock. */
  date: string;
  /** late: silent although it should have connected; back: no longer late. */
  presence: 'late' | 'back';
  /** Since when it is late; of a lock that is back, since when it was. */
  late_since: string;
  /** Always false. */
  test: boolean;
  /** The lock is simulated. */
  simulated: boolean;
}

/** The battery of a lock is low, or charged again. */
export interface BatteryWebhook {
  /** Identifies the event. The same on every attempt, and the same as the header webhook-id. */
  event_id: string;
  /** Determines the other members. Pings have ping_type instead. */
  type: 'battery';
  /** The lock’s hardware address, upper-case hex with colons. */
  mac_addr: string;
  /** When it happened, by lockgate’s clock. */
  date: string;
  /** low: below 10 %, so the lock only reports thefts; charged: no longer. */
  battery: 'low' | 'charged';
  /** The charge that the lock reported. */
  battery_percent: number;
  /** Always false. */
  test: boolean;
  /** The lock is simulated. */
  simulated: boolean;
}
