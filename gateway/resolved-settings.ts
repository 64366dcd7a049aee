/**
 * Finds where each setting's value comes from: a flag overrides the environment, which overrides the settings file,
 * which overrides the default. The texts are not checked here (config-reader.ts does that). Also describes the settings
 * in use, for `lockgate config` and the log.
 */
import { didYouMean } from '../proto/did-you-mean.js';
import { SETTINGS, type Setting, type SettingKey } from './settings.js';
import { shownStoreUrl } from './store/store-url.js';

/** The sources of a setting's value. */
export const SETTING_SOURCES = ['flag', 'environment', 'file', 'default'] as const;

export type SettingSource = (typeof SETTING_SOURCES)[number];

/** A setting with the text of its value, not checked yet, and its source. */
export interface ResolvedSetting {
  readonly setting: Setting;
  readonly text: string;
  readonly source: SettingSource;
  /** Where the text is, for error messages: a flag, a variable, or a line of the settings file. */
  readonly place: string;
}

/** The texts of a settings file, each with its place for error messages, such as `lockgate.yaml, line 3: keep_days`. */
export type FileSettings = ReadonlyMap<SettingKey, { readonly text: string; readonly place: string }>;

/** The text of every setting and its source. An empty variable, or an empty value in the file, counts as missing. */
export function resolveSettings(
  flags: Readonly<Partial<Record<SettingKey, string | undefined>>>,
  environment: Readonly<Record<string, string | undefined>>,
  file: FileSettings = new Map(),
): ResolvedSetting[] {
  return SETTINGS.map((setting) => {
    const { key, flag, environment: variable } = setting;
    const fromFlag = flags[key];
    if (fromFlag !== undefined) return { setting, text: fromFlag, source: 'flag', place: flag };
    const fromEnvironment = environment[variable];
    if (fromEnvironment !== undefined && fromEnvironment !== '')
      return { setting, text: fromEnvironment, source: 'environment', place: variable };
    const fromFile = file.get(key);
    if (fromFile !== undefined && fromFile.text !== '') return { setting, ...fromFile, source: 'file' };
    return { setting, text: setting.default, source: 'default', place: flag };
  });
}

/** The environment variable that names the settings file, if no flag does. */
export const SETTINGS_FILE_VARIABLE = 'LOCKGATE_CONFIG';

/** The name of a setting in the settings file, in JSON and in the log: `mqtt_port` for `--mqtt-port`. */
export function settingName({ flag }: Pick<Setting, 'flag'>): string {
  return flag.replace(/^--/, '').replaceAll('-', '_');
}

/** Variables that only the CLI reads. */
const OTHER_VARIABLES = [
  ...['LOCKGATE_GATEWAY', 'LOCKGATE_TOKEN', 'LOCKGATE_TOKEN_FILE', 'LOCKGATE_WEBHOOK_SECRET'],
  SETTINGS_FILE_VARIABLE,
];

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
 * be a secret of the receiver, as with chat services. The tile server's URL is shown without its query, which may have
 * a key, and the store's without its password.
 */
export function shownText({ setting, text }: Pick<ResolvedSetting, 'setting' | 'text'>): string {
  if (setting.key === 'store' && text !== '') return shownStoreUrl(text);
  if (setting.key === 'mapTiles') return text.replace(/\?.*/s, '?…');
  if (setting.key !== 'notifyUrl' || !URL.canParse(text)) return text;
  const { origin, pathname, search } = new URL(text);
  return pathname === '/' && search === '' ? origin : `${origin}/…`;
}

/** A setting in the JSON of `lockgate config` and `GET /config`. */
export interface SettingInForce {
  /** The name as in the settings file and the log: `mqtt_port` for `--mqtt-port`. */
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
      key: settingName(setting),
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
