/** `lockgate trace diff`: flags and help. differ.ts does the work and is loaded on demand. */
import type { Command } from 'commander';
import type { DiffFlags } from './differ.js';

const HELP = `
Uplinks are the same if lock, kind and reason are equal and the lock made them at the same time, within --tolerance,
regardless of when they arrived. Connects, disconnects and commands are compared by their time in the trace. Boot and
sequence numbers may differ. --no-values compares only which events exist, for runs whose batteries and places differ.

Exit codes: 0 no differences, 1 the traces differ, 2 a file or flag is wrong.

Example:
  $ lockgate trace diff before.jsonl after.jsonl --tolerance 10s --no-values
  $ lockgate trace diff field.jsonl.gz bench.jsonl --mutual A4:C1:38:F0:E1:D2=A4:C1:38:F0:E1:D3 --json`;

/** Adds the command to its group. */
export function addDiff(trace: Command): void {
  trace
    .command('diff')
    .description('Show which events only one of two traces has, by lock and reason. Needs no gateway.')
    .argument('<a>', 'A trace; a name that ends in .gz is gzipped, - is the standard input.')
    .argument('<b>', 'The trace to compare it with.')
    .option('--tolerance <span>', 'Times that differ by at most this count as the same.', '5s')
    .option(
      '--mutual <mac=mac>',
      'Compare this lock of A with that lock of B; can be repeated.',
      (value: string, before: string[]) => [...before, value],
      [],
    )
    .option('--no-values', 'Ignore differences in values: compare only which events exist.')
    .option('--json', 'Print one JSON document.')
    .addHelpText('after', HELP)
    .action(async (a: string, b: string, flags: DiffFlags) => {
      const { diffTraces } = await import('./differ.js');
      await diffTraces(a, b, flags);
    });
}
