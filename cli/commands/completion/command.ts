/** `lockgate completion bash|zsh|fish` */
import { Argument, type Command } from 'commander';
import { printJson } from '../../terminal/output.js';
import { COMPLETION_SCRIPTS } from './scripts.js';

const HELP = `
Tab then completes commands, flags and their values; MACs, merchants and ids come from the gateway that the line would
talk to, where one answers within half a second. The script asks lockgate itself, so it holds for later versions too.

bash, for good (in ~/.bashrc):      source <(lockgate completion bash)
zsh, for good (in ~/.zshrc, after compinit):  source <(lockgate completion zsh)
fish, for good:                     lockgate completion fish > ~/.config/fish/completions/lockgate.fish

lockgate has to be on the PATH (npm link, or an alias without npx).

Example:
  $ lockgate completion bash
  $ source <(lockgate completion bash)`;

/** Adds the command to the program. */
export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .description('Print what makes a shell complete lockgate’s commands, flags and values.')
    .addArgument(new Argument('<shell>', 'For which shell.').choices(Object.keys(COMPLETION_SCRIPTS)))
    .option('--json', 'Print JSON for programs: {"shell":…,"script":…}.')
    .addHelpText('after', HELP)
    .action((shell: keyof typeof COMPLETION_SCRIPTS, { json }: { json?: boolean }) => {
      if (json) printJson({ shell, script: COMPLETION_SCRIPTS[shell] });
      else process.stdout.write(COMPLETION_SCRIPTS[shell]);
    });
}
