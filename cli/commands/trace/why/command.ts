/** `lockgate trace why`: flags and help. why.ts does the work and is loaded on demand. */
import type { Command } from 'commander';
import type { TraceWhyFlags } from './why.js';

const HELP = `
Explains a ping, an acknowledgement, a connect, a disconnect, a command, or the line of a finding: what the judge
believed of the lock, what caused it, which rules it broke or complies with, and what followed. "lockgate why" explains
the same for events that a gateway has stored. A FILE that ends in .gz is gzipped, - is the standard input. The lines
before and after are read too, so a line that can’t be read ends the explanation with an error.

Exit codes: 0 explained, 2 the line has nothing to explain, or the trace can’t be read.

Example:
  $ lockgate trace why ride.jsonl:12
  $ lockgate trace why field.jsonl.gz:4711 --json`;

/** Adds the command to the group. */
export function addTraceWhy(trace: Command): void {
  trace
    .command('why')
    .description('Explain a line of a trace: a ping, a connection, a finding. Needs no gateway.')
    .argument('[file:line]', 'The trace and the number of the line, from 1, as in "trace check".')
    // commander would refuse -:12 (line 12 of the standard input) as an unknown option.
    .option('-: <line>', 'With the number attached, -:12, this line of a trace on the standard input.')
    .option('--json', 'Print one JSON document.')
    .addHelpText('after', HELP)
    .action(async (place: string | undefined, flags: TraceWhyFlags & { readonly ':'?: string }) => {
      const { explainLine } = await import('./why.js');
      const { ':': inputLine } = flags;
      await explainLine(inputLine === undefined ? (place ?? '') : `-:${inputLine}`, flags);
    });
}
