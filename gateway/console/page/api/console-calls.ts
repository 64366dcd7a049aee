/**
 * The calls that the screens of both pages make. The merchants' page (merchant.ts) and the operators' page
 * (operator.ts) implement them with their own interface and return the same types, so a screen need not know on which
 * page it is. Types only.
 */
import type { Page } from './http.js';
import type {
  Command,
  Delivery,
  DeliveryHour,
  Finding,
  LockDelivery,
  LockDetail,
  LockHistory,
  Ping,
  Track,
  WebhookFigures,
  WebhookUrl,
  Why,
} from './shapes.js';

/** Every call rejects with an ApiFailure. Dates are RFC 3339. */
export interface ConsoleApi {
  /** Names a lock; null takes its name away. */
  readonly rename: (mac: string, name: string | null) => Promise<unknown>;
  readonly lock: (mac: string) => Promise<LockDetail>;
  readonly history: (mac: string, query: { readonly from: string }) => Promise<LockHistory>;
  readonly pings: (mac: string, query: { readonly from: string; readonly limit: number }) => Promise<Page<Ping>>;
  readonly track: (mac: string, query: { readonly from: string }) => Promise<Track>;
  readonly findings: (mac: string, query: { readonly limit: number }) => Promise<Page<Finding>>;
  /** @param id a ping's event id, or `command:7`, `finding:12` and the like */
  readonly why: (id: string) => Promise<Why>;
  readonly commands: (query: { readonly mac_addr: string; readonly limit: number }) => Promise<Page<Command>>;
  /** @param key a merchant's call that is repeated with the same key sends one command; operators' calls ignore it */
  readonly sendCommand: (mac: string, command: Readonly<Record<string, unknown>>, key: string) => Promise<Command>;
  readonly cancelCommand: (id: number) => Promise<Command>;
  readonly webhooks: () => Promise<{ readonly data: readonly WebhookUrl[] }>;
  /** How the newest attempts of one URL went. */
  readonly webhookFigures: (url: WebhookUrl) => Promise<WebhookFigures>;
  /** The deliveries of a lock's events, received from this time on, to these URLs (`webhooks`). */
  readonly lockDeliveries: (
    mac: string,
    query: { readonly from: string; readonly urls: readonly WebhookUrl[] },
  ) => Promise<readonly LockDelivery[]>;
  readonly deliveries: (
    id: number,
    query: { readonly state: string; readonly limit: number },
  ) => Promise<Page<Delivery>>;
  /** The last 24 hours of a URL, oldest first. */
  readonly deliveryHours: (id: number) => Promise<{ readonly data: readonly DeliveryHour[] }>;
  /** Sends one event to a URL again. @param id that of the URL @param event the id of the event */
  readonly resend: (id: number, event: string) => Promise<unknown>;
  /** Sends everything again that the URL has not accepted. */
  readonly recover: (id: number) => Promise<unknown>;
  /** The newest findings about all locks of the page, newest first. */
  readonly newestFindings: () => Promise<Page<Finding>>;
  /** What is wrong with the gateway itself, in sentences; merchants do not see it. */
  readonly gatewayTroubles?: () => Promise<readonly string[]>;
}
