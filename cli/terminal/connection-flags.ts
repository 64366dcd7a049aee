import type { Command } from 'commander';

/** Adds the flags that say which gateway to talk to, and `--json`. */
export function withConnection(command: Command): Command {
  return withGateway(command).option('--json', 'Print JSON for programs.');
}

/** As {@link withConnection}, for a command that prints JSON anyway. */
export function withGateway(command: Command): Command {
  return command
    .option('--gateway <url>', 'The operator’s interface of the gateway [LOCKGATE_GATEWAY] (default: this folder’s).')
    .option('--token <token>', 'The operator’s token [LOCKGATE_TOKEN] (default: the one in the data folder).')
    .option('--data <folder>', 'The gateway’s data folder [LOCKGATE_DATA] (default: ./data).');
}
