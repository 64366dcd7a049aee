/**
 * `lockgate config show`: prints the settings of a running gateway, or those that `serve` would use, or writes the
 * latter to a settings file.
 */
import { writeFileSync } from 'node:fs';
import type { SettingInForce } from '../../../gateway/resolved-settings.js';
import type { SettingKey } from '../../../gateway/settings.js';
import { LockgateError } from '../../../proto/errors.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { print, printJson, printNote, sanitizeLine } from '../../terminal/output.js';
import { type Column, printTable } from '../../terminal/table.js';

/** The flags of `config show`: those that name a gateway, and those of all settings. */
export type ShowFlags = ConnectionFlags &
  Readonly<Partial<Record<SettingKey, string>>> & {
    readonly json?: boolean;
    /** The settings file to read. */
    readonly config?: string;
    /** The settings file to write. */
    readonly write?: string;
  };

/** A running gateway and its settings. */
interface RunningGateway {
  readonly origin: string;
  readonly settings: readonly SettingInForce[];
}

const COLUMNS: readonly Column<SettingInForce>[] = [
  { title: 'SETTING', show: ({ flag }) => flag },
  { title: 'VALUE', show: ({ value }) => (value === '' ? '–' : value) },
  { title: 'FROM', show: fromText },
  { title: 'UNIT', show: ({ unit }) => unit, optional: true },
  { title: 'MEANING', show: ({ meaning }) => meaning, optional: true },
];

/**
 * Prints the settings.
 *
 * @throws LockgateError `input-setting` or `input-range` for a wrong setting; `input-config` if both a gateway and a
 * setting are given; `gateway-…` if the given gateway can't be reached or refuses
 */
export async function showConfig(flags: ShowFlags): Promise<void> {
  const { gateway, token, json, data, write, ...settingFlags } = flags;
  const hasSettings = Object.keys(settingFlags).length > 0 || write !== undefined;
  if (hasSettings && (gateway !== undefined || token !== undefined))
    throw new LockgateError('input-config', 'give a gateway or settings, not both');
  if (write !== undefined) return await writeSettings(write, { ...settingFlags, data }, json === true);
  const running = hasSettings ? undefined : await askGateway(flags);
  const { settingsInForce } = await import('../../../gateway/resolved-settings.js');
  const settings = running?.settings ?? settingsInForce(await localSettings({ ...settingFlags, data }));
  if (json === true) return printJson({ running: running !== undefined, gateway: running?.origin ?? null, settings });
  printNote(running === undefined ? '"lockgate serve" would use:' : `The gateway at ${running.origin} uses:`);
  printTable(settings, COLUMNS);
}

/**
 * The gateway that the flags name or that runs on the data folder; undefined if none runs there.
 *
 * @throws LockgateError if a gateway was named and can't be reached
 */
async function askGateway(flags: ConnectionFlags): Promise<RunningGateway | undefined> {
  const { LOCKGATE_GATEWAY, LOCKGATE_TOKEN, LOCKGATE_TOKEN_FILE } = process.env;
  const named = [flags.gateway, flags.token, LOCKGATE_GATEWAY, LOCKGATE_TOKEN, LOCKGATE_TOKEN_FILE];
  const isNamed = named.some((each) => (each ?? '') !== '');
  try {
    const client = new GatewayClient(flags);
    return { ...(await client.get<{ settings: SettingInForce[] }>('/config')), origin: client.origin };
  } catch (error) {
    // A missing token also means that no gateway runs there: it writes its token to the data folder at its start.
    const isDown = error instanceof LockgateError && ['gateway-down', 'gateway-token'].includes(error.code);
    if (isDown && !isNamed) return undefined;
    throw error;
  }
}

/** The settings that `serve` would use here, checked. */
async function localSettings(flags: Readonly<Partial<Record<SettingKey | 'config', string | undefined>>>) {
  const { readConfig } = await import('../../../gateway/config-reader.js');
  const { misspeltVariables } = await import('../../../gateway/resolved-settings.js');
  const { settingsFrom } = await import('../serve/setting-sources.js');
  const resolved = await settingsFrom(flags as Readonly<Partial<Record<SettingKey | 'config', string>>>);
  // Throws for a wrong setting, as `serve` would.
  readConfig(resolved);
  for (const sentence of misspeltVariables(process.env)) printNote(sanitizeLine(`Warning: ${sentence}`));
  return resolved;
}

/**
 * Writes a settings file that only its owner can read, since other secrets may be added to it by hand.
 *
 * @throws LockgateError `input-file` if the file exists or can't be written
 */
async function writeSettings(
  file: string,
  flags: Readonly<Partial<Record<SettingKey | 'config', string | undefined>>>,
  isJson: boolean,
): Promise<void> {
  const { settingName } = await import('../../../gateway/resolved-settings.js');
  const { hasSecret, settingsFileText } = await import('../../../gateway/settings-file.js');
  const settings = await localSettings(flags);
  const leftOut = settings.filter(hasSecret).map(({ setting }) => settingName(setting));
  const text = settingsFileText(settings);
  if (file === '-') return isJson ? printJson({ text, left_out: leftOut }) : print(text.trimEnd());
  try {
    writeFileSync(file, text, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    const isThere = (error as NodeJS.ErrnoException).code === 'EEXIST';
    const why = isThere ? 'it exists; name a new file' : (error as Error).message;
    throw new LockgateError('input-file', `${file} can't be written: ${why}`);
  }
  if (isJson) return printJson({ written: file, left_out: leftOut });
  print(`Wrote ${file}. Use it with: lockgate serve --config ${file}`);
  if (leftOut.length > 0) printNote(`Left out, because they contain secrets: ${leftOut.join(', ')}.`);
}

function fromText({ source, environment }: SettingInForce): string {
  return source === 'environment' ? environment : source;
}
