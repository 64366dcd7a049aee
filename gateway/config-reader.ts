/**
 * Makes the gateway's {@link Config} from the texts of its settings, as given by flags, environment variables, the
 * settings file and defaults. A wrong text stops the start with one sentence, which says where it is, what it is and
 * what is expected.
 */
import { isIP } from 'node:net';
import { didYouMean } from '../proto/did-you-mean.js';
import { LockgateError } from '../proto/errors.js';
import { type Config, LOG_FORMATS, LOG_LEVELS } from './config.js';
import { readFairness } from './fairness/fairness-settings.js';
import { readMapTiles, type TileServerAddress } from './map/map-tiles.js';
import { readStreetFile, type StreetLines } from './map/street-lines.js';
import type { TlsFiles } from './mqtt/tls-identity.js';
import type { ResolvedSetting } from './resolved-settings.js';
import type { SettingKey } from './settings.js';
import { readStoreUrl, STORE_URL_FORM } from './store/store-url.js';
import { type AddressRange, isAllowedAddress, parseRange } from './webhooks/sending/address-rule.js';

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
    mqttTls: readTlsFiles(settingOf('mqttTlsCert'), settingOf('mqttTlsKey')),
    mqttPerAddress: readCount(settingOf('mqttPerAddress')),
    mqttProxies: readProxies(settingOf('mqttProxies')),
    lockUplinksPerSecond: readCount(settingOf('lockUplinksPerSecond')),
    lockUplinkBurst: readCount(settingOf('lockUplinkBurst'), 1),
    lockUplinksPerDay: readCount(settingOf('lockUplinksPerDay'), 0, 10),
    httpHost: settingOf('httpHost').text,
    httpPort: readPort(settingOf('httpPort')),
    httpCorsOrigin: readOrigins(settingOf('httpCorsOrigin')),
    consoleHosts: readHosts(settingOf('consoleHosts')),
    mapTiles: readTiles(settingOf('mapTiles'), settingOf('mapAttribution')),
    mapStreets: readStreets(settingOf('mapStreets')),
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
 * An uplink (a message of a lock) may be up to 30 days late (protocol.md §3), and a repeat is recognised only while the
 * original is stored.
 */
const MIN_KEEP_DAYS = 31;
/** A hundred years. */
const MAX_KEEP_DAYS = 36_500;

function readKeepDays(resolved: ResolvedSetting): number {
  const days = Number(resolved.text);
  if (/^\d{1,5}$/.test(resolved.text) && (days === 0 || (days >= MIN_KEEP_DAYS && days <= MAX_KEEP_DAYS))) return days;
  throw wrongSetting(resolved, `days, ${MIN_KEEP_DAYS} to ${MAX_KEEP_DAYS}, or 0 for ever`);
}

/** The error does not quote the URL: it may contain a password. */
function readStore({ text, place }: ResolvedSetting): string | null {
  if (text === '') return null;
  const url = readStoreUrl(text);
  if (url !== undefined) return url;
  throw new LockgateError('input-setting', `${place} is not the URL of a database: expected ${STORE_URL_FORM}`);
}

function readRanges({ text, place }: ResolvedSetting): AddressRange[] {
  const ranges = text.split(',').map((range) => range.trim());
  try {
    return ranges.filter((range) => range !== '').map(parseRange);
  } catch (error) {
    if (!(error instanceof LockgateError)) throw error;
    throw new LockgateError(error.code, `${place}: ${error.message}`);
  }
}

/**
 * Errors do not quote the URL: it may contain a password.
 *
 * @param allowed ranges that the operator allows besides public addresses
 */
function readNotifyUrl(resolved: ResolvedSetting, allowed: readonly AddressRange[]): string | null {
  const { text, place } = resolved;
  if (text === '') return null;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
    throw new LockgateError('input-setting', `${place} is no http or https URL without a user name and a password`);
  // A URL has an IPv6 address in brackets: [::1].
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  if (isIP(host) !== 0 && !isAllowedAddress(host, allowed))
    throw new LockgateError(
      'input-setting',
      `${place} is at an address that is not public: allow its range by --allow-webhook-range`,
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

/** The error does not quote the URL: it may contain a key. */
function readTiles({ text, place }: ResolvedSetting, { text: attribution }: ResolvedSetting): TileServerAddress | null {
  if (text === '') return null;
  const tiles = readMapTiles(text, attribution);
  if (tiles !== undefined) return tiles;
  const expected = 'the http or https URL of tiles, such as https://tiles.example.com/{z}/{x}/{y}.png';
  throw new LockgateError('input-setting', `${place} is not ${expected}`);
}

function readStreets({ text, place }: ResolvedSetting): StreetLines | null {
  if (text === '') return null;
  try {
    return readStreetFile(text);
  } catch (error) {
    if (!(error instanceof LockgateError)) throw error;
    const expected = 'a GeoJSON file with the lines of streets';
    throw new LockgateError(error.code, `${place} is ${JSON.stringify(text)}: expected ${expected}; ${error.message}`);
  }
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
  // For a choice, the unit lists what may be chosen. The suggestion is a sentence of its own, with a leading space.
  const { unit } = resolved.setting;
  const suggestion = didYouMean(resolved.text, choices);
  throw wrongSetting(resolved, suggestion === '' ? unit : `${unit}.${suggestion}`);
}

function wrongSetting({ text, place }: ResolvedSetting, expected: string): LockgateError {
  return new LockgateError('input-setting', `${place} is ${JSON.stringify(text)}: expected ${expected}`);
}

function readTlsFiles(certificate: ResolvedSetting, key: ResolvedSetting): TlsFiles | null {
  if (certificate.text === '' && key.text === '') return null;
  if (certificate.text !== '' && key.text !== '') return { certificate: certificate.text, key: key.text };
  const [given, missing] = certificate.text === '' ? ['key', 'certificate'] : ['certificate', 'key'];
  const place = (certificate.text === '' ? key : certificate).place;
  throw new LockgateError('input-setting', `a TLS ${given} is set by ${place}, but no ${missing}: TLS needs both`);
}

/** The maximum of limits without a natural one: more than any gateway can need, and exact as a number. */
const MAX_LIMIT = 10 ** 12;

/**
 * Minimum and maximum of some limits for merchants; others are from 0 to MAX_LIMIT. A pet can't exceed the 1 MiB of a
 * request's body; a burst of 0 would refuse every request.
 */
const LIMIT_RANGES: Readonly<Partial<Record<SettingKey, readonly [min: number, max: number]>>> = {
  merchantPetBytes: [256, 1024 * 1024],
  merchantRequestsBurst: [1, MAX_LIMIT],
  merchantBytesBurst: [1024, MAX_LIMIT],
  merchantHashesBurst: [1, MAX_LIMIT],
  strangerRequestsBurst: [1, MAX_LIMIT],
};

/** Reads a limit of what one merchant, or one unauthenticated address, may do or store. */
function readLimit(resolved: ResolvedSetting): number {
  const [min, max] = LIMIT_RANGES[resolved.setting.key] ?? [0, MAX_LIMIT];
  const limit = Number(resolved.text);
  if (/^\d{1,13}$/.test(resolved.text) && limit >= min && limit <= max) return limit;
  throw wrongSetting(resolved, `a whole number, ${min.toLocaleString('en')} to ${max.toLocaleString('en')}`);
}

/** Reads a number of connections or uplinks, from `min` to one of `maxDigits` digits. */
function readCount(resolved: ResolvedSetting, min = 0, maxDigits = 7): number {
  const count = Number(resolved.text);
  if (/^\d+$/.test(resolved.text) && resolved.text.length <= maxDigits && count >= min) return count;
  throw wrongSetting(resolved, `a whole number, ${min} or more, of at most ${maxDigits} digits`);
}
