/** `lockgate completion bash|zsh|fish`: prints the shell's completion script. */
import { Argument, type Command } from 'commander';
import { printJson } from '../../terminal/output.js';
import { COMPLETION_SCRIPTS } from './scripts.js';

const HELP = `
With the script, Tab completes commands, flags and values. MACs, merchants and ids come from the gateway that the
command would use, if it answers within half a second. The script calls lockgate, so it also fits later versions.

bash, permanently (in ~/.bashrc):   source <(lockgate completion bash)
zsh, permanently (in ~/.zshrc, after compinit):  source <(lockgate completion zsh)
fish, permanently:                  lockgate completion fish > ~/.config/fish/completions/lockgate.fish

lockgate must be on the PATH (npm link, or an alias without npx).

Example:
  $ lockgate completion bash
  $ source <(lockgate completion bash)`;

/** Adds the command to the program. */
export function addCompletionCommand(program: Command): void {
  program
    .command('completion')
    .description('Print a script for shell completion.')
    .addArgument(new Argument('<shell>', 'The shell.').choices(Object.keys(COMPLETION_SCRIPTS)))
    .option('--json', 'Print JSON for programs: {"shell":…,"script":…}.')
    .addHelpText('after', HELP)
    .action((shell: keyof typeof COMPLETION_SCRIPTS, { json }: { json?: boolean }) => {
      if (json) printJson({ shell, script: COMPLETION_SCRIPTS[shell] });
      else process.stdout.write(COMPLETION_SCRIPTS[shell]);
    });
}
