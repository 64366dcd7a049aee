/** Flags that many commands share (the gateway to talk to, `--json`), and parsers of MACs. */
import type { Command } from 'commander';
import { LockgateError } from '../../proto/errors.js';
import { formatMac, type Mac, parseMac } from '../../proto/wire/mac.js';

/** Adds the flags of {@link addGatewayFlags} and `--json`. */
export function addClientFlags(command: Command): Command {
  return addGatewayFlags(command).option('--json', 'Print JSON for programs.');
}

/** Adds the flags that name the gateway and its token. */
export function addGatewayFlags(command: Command): Command {
  return command
    .option(
      '--gateway <url>',
      'The gateway’s operator interface [LOCKGATE_GATEWAY] (default: that of the data folder).',
    )
    .option(
      '--token <token>',
      'The operator’s token [LOCKGATE_TOKEN, or the file LOCKGATE_TOKEN_FILE] (default: the one in the data folder).',
    )
    .option('--data <folder>', 'The gateway’s data folder [LOCKGATE_DATA] (default: ./data).');
}

/** Parses a MAC in any common spelling. @throws LockgateError `input-mac` */
export function readMac(text: string): Mac {
  const mac = parseMac(text);
  if (!mac.ok) throw new LockgateError('input-mac', mac.error.message);
  return mac.value;
}

/** Parses a MAC and spells it as `A4:C1:38:F0:E1:D2`. @throws LockgateError as {@link readMac} */
export function readMacText(text: string): string {
  return formatMac(readMac(text));
}
