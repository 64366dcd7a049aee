/** `lockgate config …`: the group, and its commands rotate-key and forget-secrets. */
import type { Command } from 'commander';
import type { SettingKey } from '../../../gateway/settings.js';
import type { ForgottenSecrets } from '../../../gateway/store/contract/secret-store.js';
import { LockgateError } from '../../../proto/errors.js';
import { formatMac } from '../../../proto/wire/mac.js';
import { localOwner } from '../../client.js';
import { print, printJson, printNote } from '../../terminal/output.js';
import { addClientFlags } from '../../terminal/shared-flags.js';
import { printTable } from '../../terminal/table.js';
import { CONFIG_FLAG, SETTING_FLAGS } from '../serve/serve.js';
import type { ConfirmFlags } from './confirm-clock.js';
import type { ShowFlags } from './listing.js';

type Flags = Readonly<Partial<Record<SettingKey, string>>> & { readonly json?: boolean; readonly yes?: boolean };

/**
 * Adds the group to the program. `show` and `confirm-clock` ask a gateway; `reset-operator-token`, `rotate-key` and
 * `forget-secrets` change the data folder.
 */
export function addConfigCommands(program: Command): void {
  const config = program
    .command('config')
    .description('Show the settings; confirm the system clock; replace the operator’s token or the encryption key.');
  addShow(config);
  addConfirmClock(config);
  config
    .command('reset-operator-token')
    .description('Replace the operator’s token. The old token stops working at once.')
    .option('--data <folder>', 'The data folder (default: ./data).')
    .option('--json', 'Print JSON for programs.')
    .addHelpText('after', '\nNeeds write access to the data folder. A running gateway uses the new token at once.')
    .addHelpText('after', '\nExample:\n  $ lockgate config reset-operator-token --data ./data')
    .action(async (flags: Flags) => {
      const { resetToken } = await import('./token-reset.js');
      await resetToken(flags);
    });
  addFolderFlags(
    config.command('rotate-key').description('Encrypt all secrets with a new key. The secrets do not change.'),
  )
    .addHelpText('after', '\nNo gateway may run on the data folder. Back up the new key separately from the store.')
    .addHelpText('after', '\nExample:\n  $ lockgate config rotate-key --data ./data')
    .action(rotate);
  addFolderFlags(
    config.command('forget-secrets').description('Continue after losing the key. All secrets become invalid.'),
  )
    .option('--yes', 'Confirm that webhook URLs are disabled, API keys are revoked, and locks need new secrets.')
    .addHelpText('after', '\nRefused if the key exists. Lists what needs a new secret.')
    .addHelpText('after', '\nExample:\n  $ lockgate config forget-secrets --data ./data --yes')
    .action(forget);
}

const SHOW_HELP = `
Shows the settings of the gateway that runs on the data folder, or that --gateway names. If no gateway runs, or if a
setting is given as a flag, shows what "lockgate serve" would use. Flags override the environment, which overrides
the file of --config, which overrides defaults.

With --write, writes these settings to a new settings file for "lockgate serve --config", with their meanings. Settings
with the default value are comments. Values that contain a secret, such as a password in a URL, are left out.

Exit codes: 0 shown or written, 2 a setting is wrong, 3 the given gateway can't be reached or refuses.

Example:
  $ lockgate config
  $ lockgate config show --mqtt-port 1884 --json
  $ lockgate config show --write lockgate.yaml`;

/** Adds `show`, which `lockgate config` without a subcommand runs. */
function addShow(config: Command): void {
  const show = config
    .command('show', { isDefault: true })
    .description('Show every setting, its effective value and its source.');
  addClientFlags(show);
  show.option('--write <file>', 'Write what "serve" would use to a new settings file; - for stdout.');
  show.option(...CONFIG_FLAG);
  for (const [flag, help] of SETTING_FLAGS) if (!flag.startsWith('--data ')) show.option(flag, help);
  show.addHelpText('after', SHOW_HELP).action(async (flags: ShowFlags) => {
    const { showConfig } = await import('./listing.js');
    await showConfig(flags);
  });
}

const CLOCK_HELP = `
If the system clock jumps ahead by more than a day, the gateway does not trust it at first. Until the clock is
confirmed, no history is deleted, no month is closed and nothing expires; pings are stored and delivered as usual. Fresh
pings of five locks, or of all if there are fewer, confirm the clock automatically. To confirm it yourself, check the
date and run this command. This can't be undone.

Exit codes: 0 confirmed, or nothing to confirm; 3 the gateway can't be reached or refuses.

Example:
  $ lockgate config confirm-clock --dry-run
  $ lockgate config confirm-clock`;

function addConfirmClock(config: Command): void {
  addClientFlags(config.command('confirm-clock').description('Confirm that the system clock is right after a jump.'))
    .option('--dry-run', 'Only show the system clock and the last trusted time.')
    .addHelpText('after', CLOCK_HELP)
    .action(async (flags: ConfirmFlags) => {
      const { confirmClock } = await import('./confirm-clock.js');
      await confirmClock(flags);
    });
}

/** Adds the flags of commands that work on the data folder without a gateway. */
function addFolderFlags(command: Command): Command {
  return command
    .option('--data <folder>', 'The data folder (default: ./data).')
    .option('--key-file <file>', 'The file with the key (default: key in the data folder).')
    .option('--json', 'Print JSON for programs.');
}

/** The data folder and the key file that the flags, the environment or the defaults name. */
async function folderAndKeyFile(flags: Flags) {
  const { readConfig } = await import('../../../gateway/config-reader.js');
  const { resolveSettings } = await import('../../../gateway/resolved-settings.js');
  const { data, keyFile } = readConfig(resolveSettings({ data: flags.data, keyFile: flags.keyFile }, process.env));
  return { data, keyFile };
}

async function rotate(flags: Flags): Promise<void> {
  const { rotateKey } = await import('../../../gateway/data-folder/key-change.js');
  // `onModesCorrected` gets a sentence if other users of the machine could read files of the folder until now.
  const { count, file } = await rotateKey(await folderAndKeyFile(flags), {
    who: localOwner(),
    onModesCorrected: printNote,
  });
  if (flags.json) return printJson({ rotated: true, secrets: count, key_file: file });
  print(`The new key is in ${file}; ${count} secrets and header values are encrypted with it.`);
  printNote('Back it up separately from the store. Older backups of the store need the old key.');
}

async function forget(flags: Flags): Promise<void> {
  if (flags.yes !== true)
    throw new LockgateError(
      'input-confirmation',
      'every webhook URL and API key becomes invalid, and locks need new secrets to connect: confirm with --yes',
    );
  const { forgetSecrets } = await import('../../../gateway/data-folder/key-change.js');
  const forgotten = await forgetSecrets(await folderAndKeyFile(flags), {
    who: localOwner(),
    onModesCorrected: printNote,
  });
  if (flags.json) printJson(forgottenJson(forgotten));
  else printForgotten(forgotten);
}

/**
 * What needs a new secret, as JSON. A notify URL gets the gateway's notices, such as that a webhook URL was disabled.
 * `notified` has the merchants that lost theirs; null stands for the operators' own, which needs only a new secret.
 */
function forgottenJson({ urls, locks, phones, apiKeys, notified }: ForgottenSecrets) {
  return {
    webhooks: urls,
    locks: locks.map(formatMac),
    phones: phones.map(({ mac, name }) => ({ mac: formatMac(mac), name })),
    api_keys: apiKeys,
    notify_urls: notified.map((merchant) => ({ merchant })),
  };
}

/** Prints what needs a new secret, and the command that gives it one. */
function printForgotten({ urls, locks, phones, apiKeys, notified }: ForgottenSecrets): void {
  const rows = [
    ...urls.map(({ id, merchant, headers }) => {
      const lost = headers.length > 0 ? `, with new values for ${headers.join(', ')}` : '';
      return {
        who: `webhook URL ${id} (${merchant})`,
        how: `webhook rotate-secret ${id} --now, then set --enable${lost}`,
      };
    }),
    ...notified.map((merchant) =>
      merchant === null
        ? { who: 'the operators’ notify URL', how: 'notices rotate-secret --now' }
        : {
            who: `the notify URL of ${merchant}, which was removed`,
            how: `merchant set ${JSON.stringify(merchant)} --notify-url …`,
          },
    ),
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
  if (rows.length === 0) print('A new key was created. No secret depended on the old key.');
  else
    printTable(rows, [
      { title: 'NEEDS A NEW SECRET', show: ({ who }) => who },
      { title: 'HOW', show: ({ how }) => how },
    ]);
}
