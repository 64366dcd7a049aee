/** `lockgate sim shell`: flags and help. The code of the command is loaded when it is called. */
import { type Command, InvalidArgumentError } from 'commander';
import type { ShellFlags } from './shell.js';

const MAX_SPEED = 3600;

const HELP = `
Type what happens to the lock: unlock, lock, ride 2km, steal, recover, battery 9, charge, coverage off, gps off 10 min,
airplane on, mode HIGH, reset, reboot, wait 10 min. The shell shows everything that the lock sends. "help" lists all
verbs, "state" shows the lock's state and what is due, "save FILE" writes a trace. Tab completes.

Without a gateway, time stops while you type. After a verb it runs until the lock is quiet, or for a given time
("steal for 1 min"). With --gateway the lock is live, over MQTT, as in "sim run".

If the standard input is not a terminal, the shell carries out its lines in order, without prompts; # starts a comment.
Lines typed at a terminal are stored in $XDG_STATE_HOME/lockgate/sim-shell-history (mode 600), or under ~/.local/state,
unless --no-history is given.

Exit codes: 0 done, 2 a flag or a line of a script is wrong, 3 the gateway can’t be reached or
refuses, 130 interrupted by Ctrl-C.

Example:
  $ lockgate sim shell
  $ printf 'steal for 1 min\\nstate\\n' | lockgate sim shell
  $ lockgate sim shell --gateway http://127.0.0.1:8081 --speed 60`;

/** Adds the command to the group. */
export function addSimShell(sim: Command): void {
  sim
    .command('shell')
    .description('Control one simulated lock interactively, and see what it sends.')
    .option('--settings <words>', 'The lock’s first settings: mid, high, ride, recovery, airplane, joined by +.', 'mid')
    .option('--battery <percent>', 'The lock’s battery at the start.', parsePercent, 80)
    .option('--seed <text>', 'The seed of the lock’s MAC and routes.', '1')
    .option('--start <date>', 'Without a gateway: the start time, RFC 3339 (default: 2026-01-05T08:00:00Z).')
    .option('--gateway <url>', 'Live: mqtt://host:port, mqtts://…, or the operator’s interface.')
    .option('--token <token>', 'Live: the operator’s token [LOCKGATE_TOKEN] (default: the one in the data folder).')
    .option('--data <folder>', 'Live: the gateway’s data folder [LOCKGATE_DATA] (default: ./data).')
    .option('--speed <n>', 'Live: how many times faster than real time.', parseSpeed, 1)
    .option('--secrets <file>', 'Live: a file with the lock and its secret, a line of MAC,SECRET.')
    .option('--merchant <name>', 'Live: without --secrets, the merchant to add the lock to (default: the only one).')
    .option('--ca <file>', 'Live: a file with certificates (PEM) to trust for mqtts://.')
    .option('--no-history', 'Don’t store typed lines.')
    .option('--json', 'Print JSON Lines for programs.')
    .addHelpText('after', HELP)
    .action(async (flags: ShellFlags) => {
      const { runShell } = await import('./shell.js');
      await runShell(flags);
    });
}

function parsePercent(text: string): number {
  if (/^\d{1,3}$/.test(text) && Number(text) <= 100) return Number(text);
  throw new InvalidArgumentError('Expected a whole number, 0 to 100.');
}

function parseSpeed(text: string): number {
  const value = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && value > 0 && value <= MAX_SPEED) return value;
  throw new InvalidArgumentError(`Expected a number above 0, at most ${MAX_SPEED}.`);
}
