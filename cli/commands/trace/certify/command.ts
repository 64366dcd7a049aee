/** `lockgate trace certify`: flags and help. certify.ts does the work and is loaded on demand. */
import { type Command, Option } from 'commander';
import type { CertifyFlags } from './certify.js';

const HELP = `
Each row is a requirement of the specification or the protocol, many of them for one state of the power model.
docs/certificate.md lists them, and says what to do with a lock so that each is seen. The verdicts are:
  PASS      the traces show that it holds, and no rule of the row was broken
  FAIL      a rule of the row was broken
  NOT SEEN  nothing in the traces shows it; absence is never a pass
World events in a trace say what truly happened to a lock; "sim run --virtual --world" writes them. A trace that has
them is compared with them, as by "trace check --world": only this comparison can show the row "position-true" and find
that the rule "owed" is broken. --world takes the world events from another trace. The certificate then has that file's
SHA-256, and --verify needs the file again.

--out writes the certificate: one HTML page without scripts, or JSON if the name ends in .json. It has the SHA-256 of
each trace. --verify reads a certificate, judges the traces again and compares. With --firmware, pings of other firmware
count neither for nor against a row. If no ping reports that version, all count, and the certificate says so.

Exit codes: 0 no row failed, 1 a row failed (--verify: the certificate differs), 2 a file can’t be read.

Example:
  $ lockgate trace certify bench/*.jsonl.gz --firmware 2.5.0 --out cert.html
  $ lockgate trace certify week.jsonl --world truth.jsonl.gz --out cert.json
  $ lockgate trace certify --verify cert.html bench/*.jsonl.gz
  $ lockgate trace certify week.jsonl --json`;

/** Adds the command to the group. */
export function addTraceCertify(trace: Command): void {
  trace
    .command('certify')
    .description('Certify firmware from traces: which requirements hold, are broken, or were not seen.')
    .argument('<file...>', 'Traces; a name that ends in .gz is gzipped, - is the standard input.')
    .option('--firmware <version>', 'The firmware version that the certificate is about.')
    .option('--out <file>', 'The certificate to write: .html, or .json.')
    .addOption(
      new Option('--verify <certificate>', 'Compare this certificate, .html or .json, with the traces.').conflicts([
        'firmware',
        'out',
      ]),
    )
    .option('--world <trace>', 'Compare the traces with the world events of this trace, not with their own.')
    .option('--json', 'Print one JSON document.')
    .addHelpText('after', HELP)
    .action(async (files: string[], flags: CertifyFlags) => {
      const { certifyTraces } = await import('./certify.js');
      await certifyTraces(files, flags);
    });
}
