/** `lockgate trace shrink`: flags and help. shrinker.ts does the work and is loaded on demand. */
import { type Command, InvalidArgumentError } from 'commander';
import type { ShrinkFlags } from './shrinker.js';

const HELP = `
The result has only the lock of the finding, and only the events that the finding needs. Lines are copied unchanged:
no uplink gets another number or time. Lines of other locks that are needed to let time pass become ticks. Findings of
other rules are avoided where that takes few lines.

Exit codes: 0 done, 1 the trace has no finding of the rule, 2 the file or a flag is wrong.

Example:
  $ lockgate trace shrink fleet.jsonl.gz --rule period-too-soon --out small.jsonl
  $ lockgate trace shrink fleet.jsonl.gz --rule change-untold --line 83211 --out small.jsonl --json`;

/** Adds the command to its group. */
export function addShrink(trace: Command): void {
  trace
    .command('shrink')
    .description('Reduce a trace to the few lines that show one finding. Needs no gateway.')
    .argument('<file>', 'A trace; a name that ends in .gz is gzipped, - is the standard input.')
    .requiredOption('--rule <rule>', 'The rule of the finding, as "trace check" names it.')
    .option('--line <n>', 'The line of the finding, as "trace check" names it (default: the first one).', parseLine)
    .option('--out <file>', 'The file to write, gzipped if it ends in .gz (default: standard output).')
    .option('--json', 'Print what was found as JSON; requires --out.')
    .addHelpText('after', HELP)
    .action(async (file: string, flags: ShrinkFlags) => {
      const { shrinkTrace } = await import('./shrinker.js');
      await shrinkTrace(file, flags);
    });
}

function parseLine(text: string): number {
  const line = Number(text);
  if (Number.isSafeInteger(line) && line >= 1) return line;
  throw new InvalidArgumentError('Expected the number of a line, from 1.');
}
