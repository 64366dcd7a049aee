/** `lockgate trace check`: name and help. options.ts has the flags; check.ts does the work and is loaded on demand. */
import type { Command } from 'commander';
import { FILES_ARGUMENT } from '../command-line.js';
import { addCheckOptions, type CheckFlags } from './options.js';

const HELP = `
A baseline has known findings: the output of --json, or a list of findings. A finding is known by rule, lock, boot and
sequence, or by its line if it is not about an uplink.

If a line can’t be read, the report has what was found before it, and the error. Members that the format does not have
are notes, which change no exit code.

--require takes ids of rows of the certificate, separated by commas (docs/certificate.md), such as theft-gps-mid, or
theft-gps for any state. All files together must show each row, and no rule that belongs to it may be broken.

Exit codes: 0 no violations, 1 violations (or warnings, with --fail-on warning) or a required row that was not seen,
2 a file can’t be read.

Example:
  $ lockgate trace check field/*.jsonl.gz --coverage
  $ lockgate trace check truth.jsonl --world truth.jsonl
  $ lockgate trace check ride.jsonl --json --fail-on warning --ignore clock-ahead
  $ lockgate trace check bench/*.jsonl --require theft-cellular-mid,theft-gps-mid
  $ lockgate trace check fleet.jsonl.gz --baseline known.json --format html > report.html`;

/** Adds the command to its group. */
export function addCheckCommand(trace: Command): void {
  const command = trace
    .command('check')
    .description('Check traces against the protocol’s rules. Needs no gateway.')
    .argument(...FILES_ARGUMENT);
  addCheckOptions(command)
    .addHelpText('after', HELP)
    .action(async (files: string[], flags: CheckFlags) => {
      const { checkTraces } = await import('./check.js');
      await checkTraces(files, flags);
    });
}
