/**
 * The settings of the gateway: one table of key, flag, environment variable, default, unit and meaning. A flag
 * overrides the environment, which overrides the default. A wrong value stops the start with one sentence.
 */
import { isIP } from 'node:net';
import { didYouMean } from '../proto/did-you-mean.js';
import { LockgateError } from '../proto/errors.js';
import { type MapTiles, readMapTiles } from './console/map-tiles.js';
import { FAIRNESS_SETTINGS, type Fairness, type FairnessKey, readFairness } from './fairness/fairness-settings.js';
import type { TlsFiles } from './mqtt/tls-identity.js';
import { readStoreUrl, STORE_URL_FORM, shownStoreUrl } from './store/store-url.js';
import { type AddressRange, isAllowedAddress, parseRange } from './webhooks/sending/address-rule.js';

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
  /** The street tiles of the console's maps; null for none. */
  readonly mapTiles: MapTiles | null;
  /** Origins whose pages may call from a browser. */
  readonly httpCorsOrigin: readonly string[];
  /** What one merchant, or one unauthenticated address, may do and store; the defaults if absent. */
  readonly fairness?: Fairness;
  readonly operatorHost: string;
  readonly operatorPort: number;
  readonly allowWebhookRange: readonly AddressRange[];
  /** Where notices are sent; null for nowhere. */
  readonly notifyUrl: string | null;
  /** How long pings, findings and deliveries are stored, in days; 0 for ever. */
  readonly keepDays: number;
  readonly logFormat: LogFormat;
  readonly logLevel: LogLevel;
}

/** From the least serious level to the most serious. */
const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'fatal'] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];

const LOG_FORMATS = ['auto', 'pretty', 'json'] as const;

/** Lines for people, or JSON for programs; `auto` is pretty on a terminal and JSON elsewhere. */
export type LogFormat = (typeof LOG_FORMATS)[number];

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
    meaning: 'Images of streets that browsers load for the console’s map from this server; empty: none are loaded.',
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
    meaning: 'Where notices are sent as signed JSON when they open and when they end; empty: nowhere.',
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

/** The sources of a setting's value. */
export const SETTING_SOURCES = ['flag', 'environment', 'default'] as const;

export type SettingSource = (typeof SETTING_SOURCES)[number];

/** A setting with the text of its value, not checked yet, and its source. */
export interface ResolvedSetting {
  readonly setting: Setting;
  readonly text: string;
  readonly source: SettingSource;
}

/** The text of every setting and its source. */
export function resolveSettings(
  flags: Readonly<Partial<Record<SettingKey, string | undefined>>>,
  environment: Readonly<Record<string, string | undefined>>,
): ResolvedSetting[] {
  return SETTINGS.map((setting) => {
    const fromFlag = flags[setting.key];
    if (fromFlag !== undefined) return { setting, text: fromFlag, source: 'flag' };
    const fromEnvironment = environment[setting.environment];
    if (fromEnvironment !== undefined && fromEnvironment !== '')
      return { setting, text: fromEnvironment, source: 'environment' };
    return { setting, text: setting.default, source: 'default' };
  });
}

/** Variables that only the CLI reads. */
const OTHER_VARIABLES = ['LOCKGATE_GATEWAY', 'LOCKGATE_TOKEN', 'LOCKGATE_TOKEN_FILE', 'LOCKGATE_WEBHOOK_SECRET'];

/**
 * A sentence for each environment variable that looks like a misspelt setting, which would otherwise have no effect.
 * Other variables are ignored: for a service called lockgate, Kubernetes sets `LOCKGATE_SERVICE_HOST`.
 */
export function misspeltVariables(environment: Readonly<Record<string, string | undefined>>): string[] {
  const names = [...SETTINGS.map((setting) => setting.environment), ...OTHER_VARIABLES];
  return Object.keys(environment)
    .filter((name) => /^LOCKGATE_./i.test(name) && !names.includes(name))
    .sort()
    .map((name) => ({ name, suggestion: didYouMean(name, names) }))
    .filter(({ suggestion }) => suggestion !== '')
    .map(({ name, suggestion }) => `the environment has ${name}, which is not a setting.${suggestion}`);
}

/**
 * The text of a setting for people, the log and `GET /config`. Of the notify URL only the origin is shown: its path may
 * be a secret of the receiver, as with chat services. The store's URL is shown without its password.
 */
function shownText({ setting, text }: Pick<ResolvedSetting, 'setting' | 'text'>): string {
  if (setting.key === 'store' && text !== '') return shownStoreUrl(text);
  if (setting.key !== 'notifyUrl' || !URL.canParse(text)) return text;
  const { origin, pathname, search } = new URL(text);
  return pathname === '/' && search === '' ? origin : `${origin}/…`;
}

/** A setting in the JSON of `lockgate config` and `GET /config`. */
export interface SettingInForce {
  /** The flag without its leading dashes and with underscores, as in the log. */
  readonly key: string;
  readonly flag: string;
  readonly environment: string;
  /** The value in use. */
  readonly value: string;
  /** The text that was given. `value` may differ, for example if the system chose a port. */
  readonly given: string;
  readonly source: SettingSource;
  readonly default: string;
  readonly unit: string;
  readonly meaning: string;
}

/**
 * The settings for `lockgate config` and `GET /config`.
 *
 * @param chosen the values that the system chose, such as ports
 */
export function settingsInForce(
  resolved: readonly ResolvedSetting[],
  chosen: Readonly<Partial<Record<SettingKey, string | number | undefined>>> = {},
): SettingInForce[] {
  return resolved.map((each) => {
    const { setting, source } = each;
    const text = shownText(each);
    const { key, flag, environment, unit, meaning } = setting;
    return {
      key: flag.replace(/^--/, '').replaceAll('-', '_'),
      flag,
      environment,
      value: String(chosen[key] ?? text),
      given: text,
      source,
      default: setting.default,
      unit,
      meaning,
    };
  });
}

/** The settings as values. @throws LockgateError `input-setting` or `input-range` if a value is wrong */
export function readConfig(resolved: readonly ResolvedSetting[]): Config {
  const settingOf = (key: SettingKey): ResolvedSetting => {
    const found = resolved.find(({ setting }) => setting.key === key);
    if (found === undefined) throw new Error(`no setting ${key}`);
    return found;
  };
  return {
    data: settingOf('data').text,
    store: readStore(settingOf('store')),
    keyFile: settingOf('keyFile').text || null,
    mqttHost: settingOf('mqttHost').text,
    mqttPort: readPort(settingOf('mqttPort')),
    mqttTlsHost: settingOf('mqttTlsHost').text,
    mqttTlsPort: readPort(settingOf('mqttTlsPort')),
    mqttTls: readTlsFiles(settingOf('mqttTlsCert').text, settingOf('mqttTlsKey').text),
    mqttPerAddress: readCount(settingOf('mqttPerAddress')),
    lockUplinksPerSecond: readCount(settingOf('lockUplinksPerSecond')),
    lockUplinkBurst: readCount(settingOf('lockUplinkBurst'), 1),
    lockUplinksPerDay: readCount(settingOf('lockUplinksPerDay'), 0, 10),
    httpHost: settingOf('httpHost').text,
    httpPort: readPort(settingOf('httpPort')),
    httpCorsOrigin: readOrigins(settingOf('httpCorsOrigin')),
    consoleHosts: readHosts(settingOf('consoleHosts')),
    mapTiles: readTiles(settingOf('mapTiles'), settingOf('mapAttribution')),
    httpPerAddress: readCount(settingOf('httpPerAddress')),
    trustedProxies: readProxies(settingOf('trustedProxies')),
    fairness: readFairness((key) => readLimit(settingOf(key))),
    operatorHost: settingOf('operatorHost').text,
    operatorPort: readPort(settingOf('operatorPort')),
    allowWebhookRange: readRanges(settingOf('allowWebhookRange')),
    notifyUrl: readNotifyUrl(settingOf('notifyUrl'), readRanges(settingOf('allowWebhookRange'))),
    keepDays: readKeepDays(settingOf('keepDays')),
    logFormat: readChoice(settingOf('logFormat'), LOG_FORMATS),
    logLevel: readChoice(settingOf('logLevel'), LOG_LEVELS),
  };
}

/**
 * An uplink may be up to 30 days late (protocol.md §3), and a repeat is recognised only while the original is stored.
 */
const MIN_KEEP_DAYS = 31;
const MAX_KEEP_DAYS = 36_500;

function readKeepDays(resolved: ResolvedSetting): number {
  const days = Number(resolved.text);
  if (/^\d{1,5}$/.test(resolved.text) && (days === 0 || (days >= MIN_KEEP_DAYS && days <= MAX_KEEP_DAYS))) return days;
  throw wrongSetting(resolved, `days, ${MIN_KEEP_DAYS} to ${MAX_KEEP_DAYS}, or 0 for ever`);
}

/** The error does not quote the URL: it may contain a password. */
function readStore({ setting, text, source }: ResolvedSetting): string | null {
  if (text === '') return null;
  const url = readStoreUrl(text);
  if (url !== undefined) return url;
  const where = source === 'environment' ? setting.environment : setting.flag;
  throw new LockgateError('input-setting', `${where} is not the URL of a database: expected ${STORE_URL_FORM}`);
}

function readRanges({ text }: ResolvedSetting): AddressRange[] {
  return text
    .split(',')
    .map((range) => range.trim())
    .filter((range) => range !== '')
    .map(parseRange);
}

/** The error does not quote the URL: it may contain a password. */
function readNotifyUrl(resolved: ResolvedSetting, allowed: readonly AddressRange[]): string | null {
  const { setting, text, source } = resolved;
  if (text === '') return null;
  const where = source === 'environment' ? setting.environment : setting.flag;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
    throw new LockgateError('input-setting', `${where} is no http or https URL without a user name and a password`);
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  if (isIP(host) !== 0 && !isAllowedAddress(host, allowed))
    throw new LockgateError(
      'input-setting',
      `${where} is at an address that is not public: allow its range by --allow-webhook-range`,
    );
  url.hash = '';
  return url.href;
}

function readOrigins(resolved: ResolvedSetting): string[] {
  const origins = resolved.text
    .split(',')
    .map((origin) => origin.trim())
    .filter((origin) => origin !== '');
  for (const origin of origins)
    if (!URL.canParse(origin) || new URL(origin).origin !== origin)
      throw wrongSetting(resolved, 'origins such as https://example.com, separated by commas');
  return origins;
}

/** A host name, or an IPv4 address; without a port. */
const HOST_NAME = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/i;

function readHosts(resolved: ResolvedSetting): string[] {
  const hosts = resolved.text
    .split(',')
    .map((host) => host.trim())
    .filter((host) => host !== '');
  if (!hosts.every((host) => HOST_NAME.test(host)))
    throw wrongSetting(resolved, 'host names such as locks.example.com, without a port, separated by commas');
  return hosts;
}

function readTiles(resolved: ResolvedSetting, { text: attribution }: ResolvedSetting): MapTiles | null {
  if (resolved.text === '') return null;
  const tiles = readMapTiles(resolved.text, attribution);
  if (tiles !== undefined) return tiles;
  throw wrongSetting(resolved, 'the http or https URL of tiles, such as https://tiles.example.com/{z}/{x}/{y}.png');
}

function readProxies(resolved: ResolvedSetting): AddressRange[] {
  const ranges = resolved.text.split(/[\s,]+/).filter((range) => range !== '');
  try {
    return ranges.map(parseRange);
  } catch (error) {
    if (!(error instanceof LockgateError)) throw error;
    throw wrongSetting(resolved, 'address ranges such as 10.0.0.0/8 or fd00::/8, separated by commas');
  }
}

function readPort(resolved: ResolvedSetting): number {
  const port = Number(resolved.text);
  if (/^\d{1,5}$/.test(resolved.text) && port <= 65535) return port;
  throw wrongSetting(resolved, 'a port, 0 to 65535');
}

function readChoice<Choice extends string>(resolved: ResolvedSetting, choices: readonly Choice[]): Choice {
  const choice = choices.find((each) => each === resolved.text);
  if (choice !== undefined) return choice;
  const meant = didYouMean(resolved.text, choices);
  throw wrongSetting(resolved, meant === '' ? resolved.setting.unit : `${resolved.setting.unit}.${meant}`);
}

function wrongSetting({ setting, text, source }: ResolvedSetting, expected: string): LockgateError {
  const where = source === 'environment' ? setting.environment : setting.flag;
  return new LockgateError('input-setting', `${where} is ${JSON.stringify(text)}: expected ${expected}`);
}

function readTlsFiles(certificate: string, key: string): TlsFiles | null {
  if (certificate === '' && key === '') return null;
  if (certificate !== '' && key !== '') return { certificate, key };
  const [set, missing] = certificate === '' ? ['key', 'certificate'] : ['certificate', 'key'];
  throw new LockgateError('input-setting', `a TLS ${set} is set, but no ${missing}: TLS needs both`);
}

/** Minimum and maximum of settings. A pet can't exceed the 1 MiB of a body; a burst of 0 would refuse every request. */
const LIMITS: Readonly<Partial<Record<SettingKey, readonly [min: number, max: number]>>> = {
  merchantPetBytes: [256, 1024 * 1024],
  merchantRequestsBurst: [1, 10 ** 12],
  merchantBytesBurst: [1024, 10 ** 12],
  merchantHashesBurst: [1, 10 ** 12],
  strangerRequestsBurst: [1, 10 ** 12],
};

function readLimit(resolved: ResolvedSetting): number {
  const [min, max] = LIMITS[resolved.setting.key] ?? [0, 10 ** 12];
  const limit = Number(resolved.text);
  if (/^\d{1,13}$/.test(resolved.text) && limit >= min && limit <= max) return limit;
  throw wrongSetting(resolved, `a whole number, ${min.toLocaleString('en')} to ${max.toLocaleString('en')}`);
}

function readCount(resolved: ResolvedSetting, min = 0, maxDigits = 7): number {
  const count = Number(resolved.text);
  if (/^\d+$/.test(resolved.text) && resolved.text.length <= maxDigits && count >= min) return count;
  throw wrongSetting(resolved, `a whole number, ${min} or more, of at most ${maxDigits} digits`);
}
