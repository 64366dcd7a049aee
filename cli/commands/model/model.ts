/** `lockgate model show`: names, flags and help. */
import { type Command, Option } from 'commander';
import type { ModelFlags } from './picture.js';

/** Adds the group to the program. */
export function addModelCommands(program: Command): void {
  const model = program.command('model').description('The power model: what a lock does, and what it must not do.');
  model
    .command('show')
    .description('Show the table of states and triggers, the rules, or the diagram of states.')
    .option('--rules', 'The rules that traces are judged by, instead of the table.')
    .addOption(
      new Option('--format <format>', 'The table as text or JSON, or the diagram for Mermaid or Graphviz.')
        .choices(['text', 'json', 'mermaid', 'dot'])
        .default('text'),
    )
    .option('--json', 'The same as --format json.')
    .addHelpText(
      'after',
      '\nExample:\n  $ lockgate model show --rules\n  $ lockgate model show --format dot | dot -Tsvg > model.svg',
    )
    .action(async (flags: ModelFlags) => {
      const { showModel } = await import('./picture.js');
      showModel(flags);
    });
}
