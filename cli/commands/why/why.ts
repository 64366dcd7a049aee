/** `lockgate why`: explains what a lock did or did not do, and what followed. */
import type { Command } from 'commander';
import { LockgateError } from '../../../proto/errors.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { EXIT_CODE } from '../../terminal/exit-codes.js';
import { printJson, printNote, sanitizeLine } from '../../terminal/output.js';
import { addClientFlags } from '../../terminal/shared-flags.js';
import { printWhy, type WhyJson } from './print.js';

interface WhyFlags extends ConnectionFlags {
  readonly json?: boolean;
  readonly at?: string;
  readonly url?: string;
}

const HELP = `
Ids, and the commands that print them:
  evt_…                      an event: a ping, and its delivery to each webhook URL
  evt_…/1, or --url 1        the event’s delivery to URL 1        (webhook deliveries, webhook list)
  MAC 41/12                  an uplink, by boot and sequence      (device show)
  finding:12                 a finding                            (device show)
  command:7                  a command                            (command list)
  quarantine:3               a quarantined uplink                 (device show)
  MAC                        a lock now: why it is silent, or is not
  MAC --at TIME              a lock at a time: a date, a time of day as in tail, or 2h for two hours ago

Times are by the gateway’s clock, which may be sped up; delivery times are wall-clock times.

Exit codes: 0 explained, 1 nothing has this id, 2 the command line is wrong, 3 the gateway can’t be reached or refuses.

Example:
  $ lockgate why evt_A4C138F0E1D2_1_41_12_9f3a2c1b00d4e5f6
  $ lockgate why A4:C1:38:F0:E1:D2 --at 2026-11-21T10:00Z
  $ lockgate why finding:12 --json`;

/** Adds the command to the program. */
export function addWhyCommand(program: Command): void {
  addClientFlags(program.command('why').description('Explain what a lock did or did not do, and what followed.'))
    .argument('<id...>', 'What to explain; see below.')
    .option('--at <time>', 'With a MAC: explain the lock’s state at this time.')
    .option('--url <id>', 'With an event: explain its delivery to this webhook URL.')
    .addHelpText('after', HELP)
    .action(why);
}

async function why(words: readonly string[], flags: WhyFlags): Promise<void> {
  const id = words.join(' ');
  if (flags.url !== undefined && !/^evt_[^/@]+$/.test(id))
    throw new LockgateError('input-why', '--url requires an event’s id, evt_…');
  const query = new URLSearchParams({ id: flags.url === undefined ? id : `${id}/${flags.url}` });
  if (flags.at !== undefined) query.set('at', flags.at);
  try {
    const answer = await new GatewayClient(flags).get<WhyJson>(`/why?${query}`);
    if (flags.json) printJson(answer);
    else printWhy(answer);
  } catch (error) {
    if (!(error instanceof LockgateError) || !NOT_FOUND.test(error.code)) throw error;
    printNote(sanitizeLine(`lockgate: ${error.message}`));
    process.exitCode = EXIT_CODE.negativeAnswer;
  }
}

/** Codes for an unknown id. `no-such-route` is not one: it means that the gateway’s version has no `why`. */
const NOT_FOUND = /^no-such-(?!route)/;
