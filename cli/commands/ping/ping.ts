/**
 * `lockgate ping decode|encode`: flags and help. uplink-text.ts does the work and is loaded on demand. An uplink is a
 * message of a lock: a ping, or the acknowledgement of a command.
 */
import { type Command, Option } from 'commander';
import type { DecodeFlags, EncodeFlags } from './uplink-text.js';

/** Adds the group to the program. */
export function addPingCommands(program: Command): void {
  const ping = program.command('ping').description('Decode and encode a single uplink.');
  ping
    .command('decode')
    .description('Decode the bytes of an uplink, and show their size on the air.')
    .argument('[bytes]', 'Hex or base64 (default: standard input).')
    .addOption(
      new Option('--from <form>', 'The encoding of the bytes, if they are ambiguous.').choices(['hex', 'base64']),
    )
    .option('--json', 'Print JSON for programs.')
    .addHelpText(
      'after',
      '\nExample:\n  $ lockgate ping decode 0829100e18b8b4acbc9f344a0408011051\n' +
        '  $ xxd -p uplink.bin | lockgate ping decode --json',
    )
    .action(async (bytes: string | undefined, flags: DecodeFlags) => {
      const { decodePing } = await import('./uplink-text.js');
      await decodePing(bytes, flags);
    });
  ping
    .command('encode')
    .description('Encode the JSON of an uplink; its size on the air goes to stderr.')
    .argument('[json]', 'A ping or an acknowledgement, as in traces (default: standard input).')
    .addOption(
      new Option('--to <form>', 'The encoding of the printed bytes.').choices(['hex', 'base64']).default('hex'),
    )
    .option('--json', 'Print JSON for programs.')
    .addHelpText(
      'after',
      '\nExample:\n  $ lockgate ping encode \'{"ping_type":"close_connection","lock_state":"locked",' +
        '"battery_percent":81,"boot":41,"sequence":14,"date":"2026-11-20T06:00:51.000Z"}\'',
    )
    .action(async (json: string | undefined, flags: EncodeFlags) => {
      const { encodePing } = await import('./uplink-text.js');
      await encodePing(json, flags);
    });
}
