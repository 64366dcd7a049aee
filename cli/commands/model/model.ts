/** `lockgate model show`: flags and help. picture.ts prints the model and is loaded on demand. */
import { type Command, Option } from 'commander';
import type { ModelFlags } from './picture.js';

/** Adds the group to the program. */
export function addModelCommands(program: Command): void {
  const model = program.command('model').description('Show the power model and its rules.');
  model
    .command('show')
    .description('Show the table of states and triggers, the rules, or the diagram of states.')
    .option('--rules', 'Show the rules instead of the table.')
    .addOption(
      new Option('--format <format>', 'The table as text or JSON, or the state diagram for Mermaid or Graphviz.')
        .choices(['text', 'json', 'mermaid', 'dot'])
        .default('text'),
    )
    .option('--json', 'Same as --format json.')
    .addHelpText(
      'after',
      '\nExample:\n  $ lockgate model show --rules\n  $ lockgate model show --format dot | dot -Tsvg > model.svg',
    )
    .action(async (flags: ModelFlags) => {
      const { showModel } = await import('./picture.js');
      showModel(flags);
    });
}
