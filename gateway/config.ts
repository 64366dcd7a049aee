/**
 * The checked values of the gateway's settings, as the parts of the gateway use them. settings.ts describes each
 * setting for people; config-reader.ts makes a {@link Config} from the texts of flags and environment variables.
 */
import type { Fairness } from './fairness/fairness-settings.js';
import type { TileServerAddress } from './map/map-tiles.js';
import type { StreetLines } from './map/street-lines.js';
import type { TlsFiles } from './mqtt/tls-identity.js';
import type { AddressRange } from './webhooks/sending/address-rule.js';

/** The values of all settings, checked. */
export interface Config {
  /** The data folder. */
  readonly data: string;
  /** The URL of the database with the store; null or absent for SQLite in the data folder. */
  readonly store?: string | null | undefined;
  /** The file of the store's key; null for `key` in the data folder. */
  readonly keyFile: string | null;
  readonly mqttHost: string;
  readonly mqttPort: number;
  readonly mqttTlsHost: string;
  readonly mqttTlsPort: number;
  /** Files in PEM; null without TLS. */
  readonly mqttTls: TlsFiles | null;
  /** Connections that one address may have; 0 for any number. */
  readonly mqttPerAddress: number;
  /** Balancers in front of MQTT, whose connections begin with a PROXY protocol header. */
  readonly mqttProxies: readonly AddressRange[];
  /** Uplinks that one lock may send in a second, sustained; 0 for any number. */
  readonly lockUplinksPerSecond: number;
  /** Uplinks of one lock that may arrive at once; at least 1. */
  readonly lockUplinkBurst: number;
  /** Uplinks that one lock may send in a day; 0 for any number. */
  readonly lockUplinksPerDay: number;
  readonly httpHost: string;
  readonly httpPort: number;
  /** Connections to one HTTP port that one address may have; 0 for any number. */
  readonly httpPerAddress: number;
  /** Proxies whose `X-Forwarded-For` counts. */
  readonly trustedProxies: readonly AddressRange[];
  /** Further names under which the console is reached: those of proxies. */
  readonly consoleHosts: readonly string[];
  /** Where the street tiles of the console's maps come from; null for none. */
  readonly mapTiles: TileServerAddress | null;
  /** The lines of streets that the console's maps draw; null for none. */
  readonly mapStreets: StreetLines | null;
  /** Origins whose pages may call from a browser. */
  readonly httpCorsOrigin: readonly string[];
  /** What one merchant, or one unauthenticated address, may do and store; the defaults if absent. */
  readonly fairness?: Fairness;
  readonly operatorHost: string;
  readonly operatorPort: number;
  /** Addresses, besides public ones, to which webhooks and notices may be sent. */
  readonly allowWebhookRange: readonly AddressRange[];
  /** Where notices are sent; null for nowhere. */
  readonly notifyUrl: string | null;
  /** How long pings, findings and deliveries are stored, in days; 0 for ever. */
  readonly keepDays: number;
  readonly logFormat: LogFormat;
  readonly logLevel: LogLevel;
}

/** From the least serious level to the most serious. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'fatal'] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

export const LOG_FORMATS = ['auto', 'pretty', 'json'] as const;

/** Lines for people, or JSON for programs; `auto` is pretty on a terminal and JSON elsewhere. */
export type LogFormat = (typeof LOG_FORMATS)[number];
