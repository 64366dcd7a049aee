/** `lockgate merchant close|reopen`: stops everything of a merchant, and starts it again. */
import type { Command } from 'commander';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { confirm } from '../../terminal/confirmation.js';
import { paint, print, printJson, printNote } from '../../terminal/output.js';
import { addClientFlags } from '../../terminal/shared-flags.js';

type Flags = ConnectionFlags & { readonly json?: boolean };

/** A merchant that was closed or reopened, as the operator interface returns it. */
interface OutcomeJson {
  readonly name: string;
  /** Null if it was reopened. */
  readonly closed_at: string | null;
  readonly locks: number;
  /** How many webhook URLs were disabled or enabled. */
  readonly webhooks: number;
}

const CLOSE_HELP = `
At once, its API keys, tokens and sessions are refused, its locks lose their connections and can't connect, and its
webhooks stop. Nothing is deleted: undelivered events are stored as long as other events (--keep-days), statements stay
readable, and the month of the closing is billed. No other merchant can take its name. To keep a lock in service, move
it to another merchant, before or after the closing: lockgate device set MAC --merchant NAME.

Example:
  $ lockgate merchant close "Amber Bikes" --yes`;

/** Adds the commands to the group. */
export function addClosingCommands(merchant: Command): void {
  addClientFlags(merchant.command('close').description('Close a merchant: its keys, locks and webhooks stop.'))
    .argument('<name>', 'The merchant’s name.')
    .option('--yes', 'Don’t ask for confirmation.')
    .addHelpText('after', CLOSE_HELP)
    .action(close);
  addClientFlags(merchant.command('reopen').description('Open a closed merchant again.'))
    .argument('<name>', 'The merchant’s name.')
    .addHelpText('after', '\nIts keys and locks work as before; its webhooks get events from now on.')
    .addHelpText('after', '\nExample:\n  $ lockgate merchant reopen "Amber Bikes"')
    .action(reopen);
}

async function close(name: string, flags: Flags & { readonly yes?: boolean }): Promise<void> {
  if (!flags.yes)
    await confirm({
      question: `Close ${name}, so that its keys, locks and webhooks stop? Type yes: `,
      expected: 'yes',
      withoutTerminal: 'closing stops all keys, locks and webhooks of the merchant: confirm with --yes',
      notDone: 'nothing was closed',
    });
  const outcome = await post(name, 'close', flags);
  if (flags.json) return printJson(outcome);
  print(`Closed ${paint('bold', outcome.name)}: ${countsText(outcome)} stopped.`);
  printNote(`To open it again: lockgate merchant reopen ${JSON.stringify(outcome.name)}`);
}

async function reopen(name: string, flags: Flags): Promise<void> {
  const outcome = await post(name, 'reopen', flags);
  if (flags.json) return printJson(outcome);
  print(`Reopened ${paint('bold', outcome.name)}: ${countsText(outcome)} work again.`);
  if (outcome.webhooks > 0) printNote('Undelivered events are sent by: lockgate webhook recover --since TIME');
}

async function post(name: string, action: 'close' | 'reopen', flags: Flags): Promise<OutcomeJson> {
  return await new GatewayClient(flags).post<OutcomeJson>(`/merchants/${encodeURIComponent(name)}/${action}`, {});
}

function countsText({ locks, webhooks }: OutcomeJson): string {
  return `${locks} ${locks === 1 ? 'lock' : 'locks'} and ${webhooks} webhook ${webhooks === 1 ? 'URL' : 'URLs'}`;
}
