/**
 * The settings file: YAML, one setting per line, such as `keep_days: 90`. {@link settingsFileText} writes it from the
 * table of settings, {@link readSettingsFile} reads it. Flags and environment variables override what it says.
 */
import { readFileSync, statSync } from 'node:fs';
import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, type YAMLMap } from 'yaml';
import { didYouMean } from '../proto/did-you-mean.js';
import { LockgateError } from '../proto/errors.js';
import { type FileSettings, type ResolvedSetting, settingName, shownText } from './resolved-settings.js';
import { SETTINGS, type SettingKey } from './settings.js';

/** All settings, each with a long comment, take some 10 KB. */
const MAX_FILE_BYTES = 256 * 1024;

/**
 * Reads a settings file. The values are not checked here (config-reader.ts does that).
 *
 * @throws LockgateError `input-setting` with file and line, if it can't be read, is no YAML, or names no setting
 */
export function readSettingsFile(file: string): FileSettings {
  const text = readText(file);
  const lines = new LineCounter();
  const placeAt = (offset: number): string => `${file}, line ${lines.linePos(offset).line}`;
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [wrong] = document.errors;
  if (wrong !== undefined) throw wrongFile(`${placeAt(wrong.pos[0])}: ${wrong.message}`);
  const { contents } = document;
  if (contents === null || (isScalar(contents) && contents.value === null)) return new Map();
  if (!isMap<Node, Node>(contents))
    throw wrongFile(`${placeAt(contents.range[0])}: expected lines such as keep_days: 90`);
  return readEntries(contents, placeAt);
}

function readEntries(entries: YAMLMap<Node, Node>, placeAt: (offset: number) => string): FileSettings {
  const settings = new Map<SettingKey, { text: string; place: string }>();
  const names = SETTINGS.map(settingName);
  for (const { key, value } of entries.items) {
    const name = isScalar(key) ? String(key.source ?? key.value) : '';
    const place = placeAt(key.range?.[0] ?? 0);
    const setting = SETTINGS[names.indexOf(name)];
    if (setting === undefined)
      throw wrongFile(`${place}: ${JSON.stringify(name)} is not a setting.${didYouMean(name, names)}`);
    const text = value === null ? '' : valueText(value);
    if (text === undefined) throw wrongFile(`${place}: ${name} has an unsuitable value: expected one value, or a list`);
    settings.set(setting.key, { text, place: `${place}: ${name}` });
  }
  return settings;
}

/** A value’s text as typed, so that 007 stays 007; a list becomes a text with commas. Undefined for other values. */
function valueText(value: Node): string | undefined {
  if (isScalar(value)) return value.value === null ? '' : String(value.source ?? value.value);
  if (!isSeq<Node>(value)) return undefined;
  const texts = value.items.map((item) => (isScalar(item) ? String(item.source ?? item.value) : undefined));
  return texts.includes(undefined) ? undefined : texts.join(',');
}

function readText(file: string): string {
  try {
    if (statSync(file).size <= MAX_FILE_BYTES) return readFileSync(file, 'utf8');
  } catch (error) {
    throw wrongFile(`the settings file ${file} can't be read: ${(error as Error).message}`);
  }
  throw wrongFile(
    `the settings file ${file} is larger than ${MAX_FILE_BYTES / 1024} KiB: expected a few lines of YAML`,
  );
}

function wrongFile(sentence: string): LockgateError {
  return new LockgateError('input-setting', sentence);
}

const HEAD = `# Settings of lockgate, for "lockgate serve --config FILE". Flags and environment variables override them.
# A line that begins with # has no effect; it shows the default. Paths are relative to the folder where serve starts.
`;

/**
 * The text of a settings file with these settings: all of them with their meaning, those with their default value as a
 * comment. A value with a secret, such as a password in a URL, is left out.
 */
export function settingsFileText(resolved: readonly ResolvedSetting[]): string {
  const entries = resolved.map((each) => {
    const { setting, text } = each;
    const name = settingName(setting);
    const comment = `# ${setting.meaning}\n# ${setting.unit}; ${setting.environment}\n`;
    if (hasSecret(each)) return `${comment}# ${name}: (not written, because it contains a secret)\n`;
    return `${comment}${text === setting.default ? '# ' : ''}${name}: ${yamlText(text)}\n`;
  });
  return [HEAD, ...entries].join('\n');
}

/** Whether a value contains a secret: then it differs from the text that `lockgate config` and the log show. */
export function hasSecret(resolved: ResolvedSetting): boolean {
  return shownText(resolved) !== resolved.text;
}

/** A text as a YAML value, in quotes unless it is a plain word or number. */
function yamlText(text: string): string {
  return /^[A-Za-z0-9./][A-Za-z0-9._/-]*$/.test(text) ? text : JSON.stringify(text);
}
