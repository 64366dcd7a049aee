import type { Command } from 'commander';
import type { SettingKey } from '../../gateway/config.js';
import type { Forgotten } from '../../gateway/store/secret-store.js';
import { LockgateError } from '../../proto/errors.js';
import { formatMac } from '../../proto/mac.js';
import { note, print, printJson, printTable } from '../output.js';

type Flags = Readonly<Partial<Record<SettingKey, string>>> & { readonly json?: boolean; readonly yes?: boolean };

/** `lockgate config rotate-key|forget-secrets`: work on a data folder, with no gateway running on it. */
export function addConfigCommands(program: Command): void {
  const config = program.command('config').description('The key of a data folder, for whoever owns the folder.');
  withPlace(config.command('rotate-key').description('Encrypt all secrets under a new key; locks keep theirs.'))
    .addHelpText('after', '\nNo gateway may run on the folder. Back the new key up, apart from the store.')
    .addHelpText('after', '\nExample:\n  $ lockgate config rotate-key --data ./data')
    .action(rotate);
  withPlace(config.command('forget-secrets').description('Go on without a key that is lost: every secret ends.'))
    .option(
      '--yes',
      'It is meant: webhook URLs are disabled, API keys end, and no lock can connect before it has a new secret.',
    )
    .addHelpText('after', '\nRefused where the key is there. Lists who needs a new secret.')
    .addHelpText('after', '\nExample:\n  $ lockgate config forget-secrets --data ./data --yes')
    .action(forget);
}

function withPlace(command: Command): Command {
  return command
    .option('--data <folder>', 'The data folder (default: ./data).')
    .option('--key-file <file>', 'The key’s file (default: key in the data folder).')
    .option('--json', 'One JSON document.');
}

async function placeOf(flags: Flags) {
  const { readConfig, resolveSettings } = await import('../../gateway/config.js');
  const { data, keyFile } = readConfig(resolveSettings({ data: flags.data, keyFile: flags.keyFile }, process.env));
  return { data, keyFile };
}

async function rotate(flags: Flags): Promise<void> {
  const { rotateKey } = await import('../../gateway/key-change.js');
  const { count, file } = await rotateKey(await placeOf(flags));
  if (flags.json) return printJson({ rotated: true, secrets: count, key_file: file });
  print(`A new key is in ${file}; ${count} secrets and header values are under it.`);
  note('Back it up, apart from the store. Backups of the store from before need the key from before.');
}

async function forget(flags: Flags): Promise<void> {
  if (flags.yes !== true)
    throw new LockgateError(
      'input-confirmation',
      'every webhook URL and API key would end and every lock be shut out until it has a new one: say --yes if meant',
    );
  const { forgetSecrets } = await import('../../gateway/key-change.js');
  const forgotten = await forgetSecrets(await placeOf(flags));
  if (flags.json) printJson(forgottenJson(forgotten));
  else printForgotten(forgotten);
}

function forgottenJson({ urls, locks, phones, apiKeys }: Forgotten) {
  return {
    webhooks: urls,
    locks: locks.map(formatMac),
    phones: phones.map(({ mac, name }) => ({ mac: formatMac(mac), name })),
    api_keys: apiKeys,
  };
}

function printForgotten({ urls, locks, phones, apiKeys }: Forgotten): void {
  const rows = [
    ...urls.map(({ id, merchant, headers }) => {
      const lost = headers.length > 0 ? `, with new values for ${headers.join(', ')}` : '';
      return {
        who: `webhook URL ${id} (${merchant})`,
        how: `webhook rotate-secret ${id} --now, then set --enable${lost}`,
      };
    }),
    ...locks.map((mac) => ({ who: `lock ${formatMac(mac)}`, how: `device rotate-secret ${formatMac(mac)}` })),
    ...phones.map(({ mac, name }) => {
      return { who: `phone ${name} of ${formatMac(mac)}`, how: `device phone add ${formatMac(mac)} …` };
    }),
    ...apiKeys.map(({ id, merchant, name }) => {
      return {
        who: `API key ${id}, ${name} (${merchant})`,
        how: `key create ${JSON.stringify(name)} --merchant ${JSON.stringify(merchant)}`,
      };
    }),
  ];
  if (rows.length === 0) print('A new key is there. Nothing rested on the old one.');
  else
    printTable(rows, [
      { title: 'NEEDS A NEW SECRET', show: ({ who }) => who },
      { title: 'HOW', show: ({ how }) => how },
    ]);
}
