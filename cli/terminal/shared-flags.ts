/** Flags and arguments that many commands share: which gateway to talk to, and MACs in any spelling. */
import type { Command } from 'commander';
import { LockgateError } from '../../proto/errors.js';
import { formatMac, type Mac, parseMac } from '../../proto/wire/mac.js';

/** Adds the flags that say which gateway to talk to, and `--json`. */
export function withConnection(command: Command): Command {
  return withGateway(command).option('--json', 'Print JSON for programs.');
}

/** As {@link withConnection}, for a command that prints JSON anyway. */
export function withGateway(command: Command): Command {
  return command
    .option(
      '--gateway <url>',
      'The gateway’s operator interface [LOCKGATE_GATEWAY] (default: that of the data folder).',
    )
    .option('--token <token>', 'The operator’s token [LOCKGATE_TOKEN] (default: the one in the data folder).')
    .option('--data <folder>', 'The gateway’s data folder [LOCKGATE_DATA] (default: ./data).');
}

/** A MAC in any common spelling. @throws LockgateError `input-mac` */
export function readMac(text: string): Mac {
  const mac = parseMac(text);
  if (!mac.ok) throw new LockgateError('input-mac', mac.error.message);
  return mac.value;
}

/** Normalised to `A4:C1:38:F0:E1:D2`. @throws LockgateError as {@link readMac} */
export function readMacText(text: string): string {
  return formatMac(readMac(text));
}
