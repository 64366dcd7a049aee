/** `lockgate tail`: prints a gateway's events as they happen. */

import type { Command } from 'commander';
import type { EventJson } from '../../../gateway/console/wording/event-text.js';
import { LockgateError } from '../../../proto/errors.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { untilInterrupted } from '../../terminal/interrupt.js';
import { print, printNote } from '../../terminal/output.js';
import { addClientFlags, readMacText } from '../../terminal/shared-flags.js';
import { eventLines, hexLine } from './event-line.js';

interface Flags extends ConnectionFlags {
  readonly json?: boolean;
  readonly mac?: string;
  readonly hex?: boolean;
}

const HELP = `
With --json each ping and acknowledgement has its bytes in base64 (raw).

Example:
  $ lockgate tail --mac A4:C1:38:F0:E1:D2 --hex
  $ lockgate tail --json | jq .event`;

/** Adds the command to the program. */
export function addTailCommand(program: Command): void {
  addClientFlags(program.command('tail').description('Watch events live, one per line.'))
    .option('--mac <mac>', 'Only events of this lock, including refused CONNECTs and packets.')
    .option('--hex', 'Below each ping and acknowledgement, its bytes in hex, as "ping decode" takes them.')
    .addHelpText('after', HELP)
    .action(tail);
}

async function tail(flags: Flags): Promise<void> {
  const mac = flags.mac === undefined ? undefined : readMacText(flags.mac);
  const interrupted = untilInterrupted();
  try {
    const lines = await new GatewayClient(flags).listen('/events', interrupted.signal);
    if (!flags.json) printNote('Watching. Ctrl-C quits.');
    for await (const line of lines) {
      const event = JSON.parse(line) as EventJson;
      if (mac !== undefined && event.mac !== mac) continue;
      if (flags.json) {
        print(line);
        continue;
      }
      const [first = '', ...findings] = eventLines(event, process.stdout.isTTY ? process.stdout.columns : undefined);
      const hex = flags.hex ? hexLine(event) : undefined;
      for (const each of [first, ...(hex === undefined ? [] : [hex]), ...findings]) print(each);
    }
    if (!interrupted.signal.aborted) throw new LockgateError('gateway-down', 'the gateway closed the stream');
  } catch (error) {
    if (!interrupted.signal.aborted) throw error;
    process.exitCode = interrupted.exitCode;
  }
}
