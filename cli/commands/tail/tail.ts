/** `lockgate tail`: prints a gateway's events as they happen. */

import { type Command, InvalidArgumentError } from 'commander';
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
  readonly merchant?: string;
  readonly kind?: readonly string[];
  readonly reason?: readonly string[];
  readonly hex?: boolean;
}

const HELP = `
With --json each event has its kind (event), and each ping and acknowledgement its bytes in base64 (raw).

Example:
  $ lockgate tail --mac A4:C1:38:F0:E1:D2 --hex
  $ lockgate tail --merchant "Amber Bikes" --kind finding,presence
  $ lockgate tail --reason REASON_THEFT --json | jq .mac`;

/** Adds the command to the program. */
export function addTailCommand(program: Command): void {
  addClientFlags(program.command('tail').description('Watch events live, one per line.'))
    .option('--mac <mac>', 'Only events of this lock, including refused CONNECTs and packets.')
    .option('--merchant <name>', 'Only events of this merchant, its locks and its webhook URLs.')
    .option('--kind <names>', 'Only these kinds of events, separated by commas, such as ping,refused.', readNames)
    .option('--reason <names>', 'Only pings with these reasons, separated by commas.', readNames)
    .option('--hex', 'Below each ping and acknowledgement, its bytes in hex, as "ping decode" takes them.')
    .addHelpText('after', HELP)
    .action(tail);
}

async function tail(flags: Flags): Promise<void> {
  const mac = flags.mac === undefined ? undefined : readMacText(flags.mac);
  const interrupted = untilInterrupted();
  try {
    const lines = await new GatewayClient(flags).listen(`/events${queryOf(flags, mac)}`, interrupted.signal);
    if (!flags.json) printNote('Watching. Ctrl-C quits.');
    for await (const line of lines) {
      const event = JSON.parse(line) as EventJson;
      if (flags.json) {
        print(line);
        continue;
      }
      const [first = '', ...findings] = eventLines(event, process.stdout.isTTY ? process.stdout.columns : undefined);
      const hex = flags.hex ? hexLine(event) : undefined;
      // A ping has its findings: with --kind, their lines are shown if they are wanted too.
      if (flags.kind !== undefined && !flags.kind.includes('finding')) findings.length = 0;
      for (const each of [first, ...(hex === undefined ? [] : [hex]), ...findings]) print(each);
    }
    if (!interrupted.signal.aborted) throw new LockgateError('gateway-down', 'the gateway closed the stream');
  } catch (error) {
    if (!interrupted.signal.aborted) throw error;
    process.exitCode = interrupted.exitCode;
  }
}

/** The query that selects the events. */
function queryOf({ merchant, kind = [], reason = [] }: Flags, mac: string | undefined): string {
  const query = new URLSearchParams();
  if (mac !== undefined) query.set('mac', mac);
  if (merchant !== undefined) query.set('merchant', merchant);
  for (const each of kind) query.append('kind', each);
  for (const each of reason) query.append('reason', each);
  return query.size === 0 ? '' : `?${query}`;
}

/** Names separated by commas. */
function readNames(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim());
  if (names.every((name) => name !== '')) return names;
  throw new InvalidArgumentError('Expected names separated by commas.');
}
