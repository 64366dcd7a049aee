/**
 * The command line: names, flags and help; what a command does stands in commands/ and is loaded when it is called, so
 * that `--help` answers at once.
 */
import { Command } from 'commander';
import { StoreFailure } from '../gateway/store/store.js';
import { VERSION } from '../gateway/version.js';
import { addCommandCommands } from './commands/command.js';
import { addConfigCommands } from './commands/config.js';
import { addDbCommands } from './commands/db.js';
import { addDemoCommand } from './commands/demo.js';
import { addDeviceCommands } from './commands/device.js';
import { addKeyCommands } from './commands/key.js';
import { addMerchantCommands } from './commands/merchant.js';
import { addModelCommands } from './commands/model.js';
import { addNoticeCommands } from './commands/notices.js';
import { addPingCommands } from './commands/ping.js';
import { addServeCommand } from './commands/serve.js';
import { addSimCommands } from './commands/sim.js';
import { addTailCommand } from './commands/tail.js';
import { addTraceCommands } from './commands/trace.js';
import { addUsageCommands } from './commands/usage.js';
import { addUserCommands } from './commands/user.js';
import { addWebhookCommands } from './commands/webhook.js';
import { EXIT, exitCodeOf } from './exit-codes.js';
import { note, oneLine } from './output.js';

/** Builds the whole command line. */
export function makeProgram(): Command {
  const program = new Command('lockgate')
    .description('Device protocol gateway and simulator for cellular/GPS locks.')
    .version(VERSION, '-V, --version', 'Print the version.')
    .helpOption('-h, --help', 'Show help.')
    .helpCommand('help [command]', 'Show help for a command.')
    .configureHelp({ sortSubcommands: false, showGlobalOptions: false })
    .showSuggestionAfterError()
    .showHelpAfterError('(add --help for what there is)')
    .exitOverride();
  addDemoCommand(program);
  addServeCommand(program);
  addTailCommand(program);
  addNoticeCommands(program);
  addMerchantCommands(program);
  addUserCommands(program);
  addKeyCommands(program);
  addDeviceCommands(program);
  addCommandCommands(program);
  addWebhookCommands(program);
  addSimCommands(program);
  addTraceCommands(program);
  addPingCommands(program);
  addModelCommands(program);
  addUsageCommands(program);
  addConfigCommands(program);
  addDbCommands(program);
  return program;
}

async function run(): Promise<void> {
  // Whoever reads our output may have seen enough (`| head`).
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(EXIT.done);
    throw error;
  });
  try {
    await makeProgram().parseAsync(process.argv);
  } catch (error) {
    process.exitCode = report(error);
  }
}

function report(error: unknown): number {
  const { code } = error as { code?: unknown };
  // commander has printed its own sentence, or the help or version that was asked for.
  if (typeof code === 'string' && code.startsWith('commander.'))
    return (error as { exitCode: number }).exitCode === 0 ? EXIT.done : EXIT.input;
  const exitCode = exitCodeOf(error);
  if (exitCode === EXIT.broken && !(error instanceof StoreFailure))
    note(`lockgate broke: ${(error as Error).stack ?? String(error)}`);
  else note(oneLine(`lockgate: ${(error as Error).message}`));
  return exitCode;
}

await run();
