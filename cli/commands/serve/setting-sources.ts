/** The settings of `serve` from flags, environment and the settings file, and what SIGHUP rereads of them. */
import type { Logger } from 'pino';
import { readConfig } from '../../../gateway/config-reader.js';
import {
  type ResolvedSetting,
  resolveSettings,
  SETTINGS_FILE_VARIABLE,
  settingName,
} from '../../../gateway/resolved-settings.js';
import type { SettingKey } from '../../../gateway/settings.js';
import { LockgateError } from '../../../proto/errors.js';

/** The values of setting flags, by the keys of the settings table. */
export type SettingFlags = Readonly<Partial<Record<SettingKey, string>>>;

/** The settings as flags, and the name of the settings file. */
type Sources = SettingFlags & { readonly config?: string | undefined };

/** The settings file that a flag or the environment names; undefined for none. */
export function settingsFile({ config }: Sources): string | undefined {
  return config ?? (process.env[SETTINGS_FILE_VARIABLE] || undefined);
}

/**
 * The settings from flags, the environment, the settings file and defaults. Their values are not checked yet.
 *
 * @throws LockgateError `input-setting` if the settings file is wrong
 */
export async function settingsFrom(flags: Sources): Promise<ResolvedSetting[]> {
  const file = settingsFile(flags);
  if (file === undefined) return resolveSettings(flags, process.env);
  // Loads the parser of YAML, which a gateway without a settings file does not need.
  const { readSettingsFile } = await import('../../../gateway/settings-file.js');
  return resolveSettings(flags, process.env, readSettingsFile(file));
}

/**
 * Rereads the settings file, if there is one. The log's level changes at once, also in `inUse`; the log names the
 * settings that change at the next start. A wrong file changes nothing.
 */
export async function rereadSettings(flags: Sources, inUse: ResolvedSetting[], log: Logger): Promise<void> {
  const file = settingsFile(flags);
  if (file === undefined) return;
  try {
    const settings = await settingsFrom(flags);
    const { logLevel } = readConfig(settings);
    const changed = settings.filter((each, index) => each.text !== inUse[index]?.text);
    log.level = logLevel;
    inUse.splice(0, inUse.length, ...inUse.map((each, index) => (isLive(each) ? (settings[index] ?? each) : each)));
    const applied = changed.filter(isLive).map(({ setting }) => settingName(setting));
    const waiting = changed.filter((each) => !isLive(each)).map(({ setting }) => settingName(setting));
    log.info({ event: 'settings-read', file, applied }, `reread ${file}`);
    if (waiting.length > 0)
      log.warn({ event: 'settings-wait', settings: waiting }, `${waiting.join(', ')}: changed at the next start`);
  } catch (error) {
    if (!(error instanceof LockgateError)) throw error;
    log.error({ event: 'settings-wrong' }, `${error.message}; the previous settings stay in use`);
  }
}

/** Whether a setting changes without a restart. */
function isLive({ setting }: ResolvedSetting): boolean {
  return setting.key === 'logLevel';
}
