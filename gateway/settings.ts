/**
 * The table of the gateway's settings: key, flag, environment variable, default, unit and meaning of each. `lockgate
 * config` and `serve --help` show these texts; config-reader.ts checks the values.
 */
import type { Config } from './config.js';
import { FAIRNESS_SETTINGS, type FairnessKey } from './fairness/fairness-settings.js';

/** The key of a setting in {@link SETTINGS}. */
export type SettingKey =
  | Exclude<keyof Config, 'mqttTls' | 'fairness'>
  | 'mqttTlsCert'
  | 'mqttTlsKey'
  | 'mapAttribution'
  | FairnessKey;

/** A row of {@link SETTINGS}. */
export interface Setting {
  readonly key: SettingKey;
  readonly flag: string;
  readonly environment: string;
  readonly default: string;
  readonly unit: string;
  readonly meaning: string;
}

/** Every setting. */
export const SETTINGS: readonly Setting[] = Object.freeze([
  {
    key: 'data',
    flag: '--data',
    environment: 'LOCKGATE_DATA',
    default: './data',
    unit: 'folder',
    meaning: 'The folder of the store, the key and the operator’s token.',
  },
  {
    key: 'store',
    flag: '--store',
    environment: 'LOCKGATE_STORE',
    default: '',
    unit: 'URL',
    meaning: 'A PostgreSQL database for the store, as postgres://HOST/DATABASE; empty: SQLite in the data folder.',
  },
  {
    key: 'keyFile',
    flag: '--key-file',
    environment: 'LOCKGATE_KEY_FILE',
    default: '',
    unit: 'file',
    meaning: 'The key that secrets are encrypted with, created at the first start; empty: `key` in the data folder.',
  },
  {
    key: 'mqttHost',
    flag: '--mqtt-host',
    environment: 'LOCKGATE_MQTT_HOST',
    default: '127.0.0.1',
    unit: 'address',
    meaning: 'Where locks connect without TLS. It carries secrets in clear text, so it is loopback by default.',
  },
  {
    key: 'mqttPort',
    flag: '--mqtt-port',
    environment: 'LOCKGATE_MQTT_PORT',
    default: '1883',
    unit: 'port',
    meaning: 'MQTT without TLS; 0 lets the system choose.',
  },
  {
    key: 'mqttTlsHost',
    flag: '--mqtt-tls-host',
    environment: 'LOCKGATE_MQTT_TLS_HOST',
    default: '0.0.0.0',
    unit: 'address',
    meaning: 'Where locks connect over TLS, if there is a certificate; by default every address of the machine.',
  },
  {
    key: 'mqttTlsPort',
    flag: '--mqtt-tls-port',
    environment: 'LOCKGATE_MQTT_TLS_PORT',
    default: '8883',
    unit: 'port',
    meaning: 'MQTT over TLS; 0 lets the system choose.',
  },
  {
    key: 'mqttTlsCert',
    flag: '--mqtt-tls-cert',
    environment: 'LOCKGATE_MQTT_TLS_CERT',
    default: '',
    unit: 'file (PEM)',
    meaning: 'The certificate, with its chain; enables TLS. SIGHUP rereads it.',
  },
  {
    key: 'mqttTlsKey',
    flag: '--mqtt-tls-key',
    environment: 'LOCKGATE_MQTT_TLS_KEY',
    default: '',
    unit: 'file (PEM)',
    meaning: 'The certificate’s private key, without a passphrase.',
  },
  {
    key: 'mqttPerAddress',
    flag: '--mqtt-per-address',
    environment: 'LOCKGATE_MQTT_PER_ADDRESS',
    default: '0',
    unit: 'connections',
    meaning: 'How many MQTT connections one address may have; 0 for any number, since networks share addresses.',
  },
  {
    key: 'mqttProxies',
    flag: '--mqtt-proxies',
    environment: 'LOCKGATE_MQTT_PROXIES',
    default: '',
    unit: 'address ranges, separated by commas',
    meaning:
      'Balancers in front of the MQTT ports. Their connections must begin with a PROXY protocol header (v1, v2).',
  },
  {
    key: 'lockUplinksPerSecond',
    flag: '--lock-uplinks-per-second',
    environment: 'LOCKGATE_LOCK_UPLINKS_PER_SECOND',
    default: '200',
    unit: 'uplinks/s',
    meaning: 'How many uplinks one lock may send, sustained; 0 for any number. Beyond it the lock is read more slowly.',
  },
  {
    key: 'lockUplinkBurst',
    flag: '--lock-uplink-burst',
    environment: 'LOCKGATE_LOCK_UPLINK_BURST',
    default: '2000',
    unit: 'uplinks',
    meaning: 'How many uplinks of one lock may arrive at once, 1 or more.',
  },
  {
    key: 'lockUplinksPerDay',
    flag: '--lock-uplinks-per-day',
    environment: 'LOCKGATE_LOCK_UPLINKS_PER_DAY',
    default: '200000',
    unit: 'uplinks',
    meaning: 'How many uplinks one lock may send in a day; 0 for any number. Beyond it the lock is read at that rate.',
  },
  {
    key: 'httpHost',
    flag: '--http-host',
    environment: 'LOCKGATE_HTTP_HOST',
    default: '127.0.0.1',
    unit: 'address',
    meaning: 'Where merchants connect without TLS. Put a TLS proxy in front of it.',
  },
  {
    key: 'httpPort',
    flag: '--http-port',
    environment: 'LOCKGATE_HTTP_PORT',
    default: '8080',
    unit: 'port',
    meaning: 'The merchants’ HTTP interface; 0 lets the system choose.',
  },
  {
    key: 'httpCorsOrigin',
    flag: '--http-cors-origin',
    environment: 'LOCKGATE_HTTP_CORS_ORIGIN',
    default: '',
    unit: 'origins, separated by commas',
    meaning: 'Origins whose pages may call the merchants’ interface, such as https://example.com.',
  },
  {
    key: 'consoleHosts',
    flag: '--console-hosts',
    environment: 'LOCKGATE_CONSOLE_HOSTS',
    default: '',
    unit: 'host names, separated by commas',
    meaning: 'Names under which browsers reach the console through a proxy, such as locks.example.com.',
  },
  {
    key: 'mapTiles',
    flag: '--map-tiles',
    environment: 'LOCKGATE_MAP_TILES',
    default: '',
    unit: 'URL with {z}, {x} and {y}',
    meaning: 'Where the gateway fetches images of streets for the console’s map; empty: it shows no streets.',
  },
  {
    key: 'mapAttribution',
    flag: '--map-attribution',
    environment: 'LOCKGATE_MAP_ATTRIBUTION',
    default: '',
    unit: 'text',
    meaning: 'Whose map the tiles are, such as © OpenStreetMap contributors, shown on the map; empty: their host.',
  },
  {
    key: 'mapStreets',
    flag: '--map-streets',
    environment: 'LOCKGATE_MAP_STREETS',
    default: '',
    unit: 'GeoJSON file',
    meaning: 'Lines of streets that the console’s map draws, read at the start; empty: it draws none.',
  },
  {
    key: 'httpPerAddress',
    flag: '--http-per-address',
    environment: 'LOCKGATE_HTTP_PER_ADDRESS',
    default: '1000',
    unit: 'connections',
    meaning: 'How many of a port’s 2,000 HTTP connections one address may have; 0 for any number. Proxies are exempt.',
  },
  {
    key: 'trustedProxies',
    flag: '--trusted-proxies',
    environment: 'LOCKGATE_TRUSTED_PROXIES',
    default: '',
    unit: 'address ranges, separated by commas',
    meaning: 'Proxies in front of the HTTP ports whose X-Forwarded-For and X-Forwarded-Proto are trusted.',
  },
  ...FAIRNESS_SETTINGS,
  {
    key: 'operatorHost',
    flag: '--operator-host',
    environment: 'LOCKGATE_OPERATOR_HOST',
    default: '127.0.0.1',
    unit: 'address',
    meaning: 'Where the operator’s interface listens.',
  },
  {
    key: 'operatorPort',
    flag: '--operator-port',
    environment: 'LOCKGATE_OPERATOR_PORT',
    default: '8081',
    unit: 'port',
    meaning: 'The operator’s interface, which the CLI uses; 0 lets the system choose.',
  },
  {
    key: 'allowWebhookRange',
    flag: '--allow-webhook-range',
    environment: 'LOCKGATE_ALLOW_WEBHOOK_RANGE',
    default: '',
    unit: 'address ranges, separated by commas',
    meaning: 'Address ranges that webhooks may be sent to in addition to public addresses, such as 127.0.0.0/8.',
  },
  {
    key: 'notifyUrl',
    flag: '--notify-url',
    environment: 'LOCKGATE_NOTIFY_URL',
    default: '',
    unit: 'URL',
    meaning:
      'The URL that gets a signed POST for each notice of a problem, and again when the problem ends; empty: none.',
  },
  {
    key: 'keepDays',
    flag: '--keep-days',
    environment: 'LOCKGATE_KEEP_DAYS',
    default: '400',
    unit: 'days',
    meaning: 'How long pings, findings and deliveries are stored: 31 or more, or 0 for unlimited.',
  },
  {
    key: 'logFormat',
    flag: '--log-format',
    environment: 'LOCKGATE_LOG_FORMAT',
    default: 'auto',
    unit: 'auto, pretty or json',
    meaning: 'The log’s format on stderr: readable lines or JSON Lines; auto is pretty on a terminal.',
  },
  {
    key: 'logLevel',
    flag: '--log-level',
    environment: 'LOCKGATE_LOG_LEVEL',
    default: 'info',
    unit: 'debug, info, warn, error or fatal',
    meaning: 'The minimum level of the log; debug includes every connection.',
  },
] as const satisfies readonly Setting[]);
