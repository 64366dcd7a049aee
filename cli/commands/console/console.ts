/**
 * `lockgate console`: prints a one-time link to the operators' page, and opens it in the browser. Over SSH, where no
 * browser of this machine is in front of the reader, it opens nothing and prints the command of a tunnel.
 */
import { hostname } from 'node:os';
import type { Command } from 'commander';
import { type ConnectionFlags, GatewayClient, systemUser } from '../../client.js';
import { readClocks } from '../../gateway-clocks.js';
import { paint, print, printJson, printNote } from '../../terminal/output.js';
import { addClientFlags } from '../../terminal/shared-flags.js';
import { whenText } from '../../terminal/time-text.js';
import { hasDisplay, openInBrowser } from './browser.js';
import { consoleAddress, tunnelCommand } from './ssh-tunnel.js';

type Flags = ConnectionFlags & { readonly json?: boolean; readonly open: boolean };

/** The answer to `POST /console/links`. */
interface LinkJson {
  readonly token: string;
  readonly role: string;
  readonly expires_at: string;
}

const HELP = `
The link is good for five minutes and one use. The session that it opens has the role of the token that asked, and ends
after 12 hours or with that token. Over SSH, the command prints how to forward the port and opens nothing.`;

/** Adds the command to the program. */
export function addConsoleCommand(program: Command): void {
  addClientFlags(program.command('console').description('Open the operators’ page by a one-time link.'))
    .option('--no-open', 'Print the link, but open no browser.')
    .addHelpText('after', HELP)
    .addHelpText('after', '\nExample:\n  $ lockgate console\n  $ lockgate console --no-open')
    .action(openConsole);
}

async function openConsole(flags: Flags): Promise<void> {
  const client = new GatewayClient(flags);
  const gateway = new URL(client.origin);
  const { token, role, expires_at: expiresAt } = await client.post<LinkJson>('/console/links', {});
  const { SSH_CONNECTION: sshConnection } = process.env;
  const tunnel = tunnelCommand(gateway, { sshConnection, user: systemUser(), hostName: hostname() });
  const link = `${consoleAddress(gateway, tunnel !== null)}/#${token}`;
  if (flags.json) return printJson({ link, role, expires_at: expiresAt, tunnel });
  if (tunnel !== null) {
    print('Forward the gateway’s port to your own machine, and leave this running there:');
    print(`  ${paint('bold', tunnel)}`);
    print('Then open there:');
  }
  print(tunnel === null ? link : `  ${link}`);
  const { dateMs: nowMs } = await readClocks(client);
  printNote(`The link works once and expires ${whenText(expiresAt, nowMs)}; its role is ${role}.`);
  const isHere = tunnel === null && sshConnection === undefined && hasDisplay(process.env, process.platform);
  if (isHere && flags.open && !(await openInBrowser(link)))
    printNote('No browser could be started: open the link yourself.');
}
