/** `lockgate user invite|invitations|uninvite`: manages one-time invitations of users of the dashboard. */
import { type Command, Option } from 'commander';
import { DASHBOARD_ROLES } from '../../../gateway/store/contract/merchants/dashboard-roles.js';
import { LockgateError } from '../../../proto/errors.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { readClocks, readExpiry } from '../../gateway-clocks.js';
import { paint, print, printJson, printNote } from '../../terminal/output.js';
import { addClientFlags } from '../../terminal/shared-flags.js';
import { printTable } from '../../terminal/table.js';
import { agoText, whenText } from '../../terminal/time-text.js';
import { addWatchFlag, repeatIfWatched } from '../../terminal/watch.js';

type Flags = ConnectionFlags & { readonly json?: boolean; readonly merchant?: string };

interface InviteFlags extends Flags {
  readonly dashboard: string;
  readonly expires?: string;
  readonly url?: string;
}

/** An invitation, as the operator interface returns it. */
interface InvitationJson {
  readonly id: number;
  readonly merchant: string;
  /** Null if the invited person chooses it. */
  readonly username: string | null;
  readonly dashboard: string;
  readonly created_at: string;
  readonly expires_at: string;
}

/** The members that only the creation returns. */
interface CreatedJson extends InvitationJson {
  readonly token: string;
  /** The part of the link that follows the address of the merchants' interface. */
  readonly path: string;
}

/** Addresses that a gateway listens on, but that no browser can open. */
const ANY_ADDRESS: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

/** Adds the commands to the group. */
export function addInvitationCommands(user: Command): void {
  addClientFlags(user.command('invite').description('Print a link with which a person becomes a user, once.'))
    .argument('[username]', 'The login name (default: the invited person chooses).')
    .option('--merchant <name>', 'The merchant; optional if the gateway has only one.')
    .addOption(
      new Option('--dashboard <role>', 'The role on the dashboard.')
        .choices([...DASHBOARD_ROLES])
        .makeOptionMandatory(),
    )
    .option('--expires <when>', 'When the link expires: a span of up to 30d, or a date (default: 7d).')
    .option('--url <address>', 'The address at which browsers reach the merchants’ interface (default: its port).')
    .addHelpText(
      'after',
      '\nThe person opens the link and chooses a password, and also a name if none is given here. A new invitation' +
        '\nfor a name replaces the one before it.' +
        '\n\nExample:\n  $ lockgate user invite ada --merchant "Amber Bikes" --dashboard owner',
    )
    .addHelpText('after', '  $ lockgate user invite --dashboard staff --expires 24h --url https://locks.example.com')
    .action(invite);
  addWatchFlag(addClientFlags(user.command('invitations').description('List a merchant’s open invitations.')))
    .option('--merchant <name>', 'The merchant; optional if the gateway has only one.')
    .addHelpText('after', '\nExample:\n  $ lockgate user invitations --merchant "Amber Bikes"')
    .action(repeatIfWatched(list));
  addClientFlags(user.command('uninvite').description('Withdraw an invitation: its link stops working.'))
    .argument('<id>', 'The invitation’s id, from "user invitations".')
    .option('--merchant <name>', 'The merchant; optional if the gateway has only one.')
    .addHelpText('after', '\nExample:\n  $ lockgate user uninvite 3 --merchant "Amber Bikes"')
    .action(withdraw);
}

async function invite(username: string | undefined, flags: InviteFlags): Promise<void> {
  const { merchant, dashboard, expires, url } = flags;
  const address = url === undefined ? undefined : readAddress(url);
  const client = new GatewayClient(flags);
  const expiresAt = await readExpiry(client, expires);
  const base = address ?? (await merchantsAddress(client));
  const body = { merchant, username, dashboard, expires_at: expiresAt };
  const { path, ...invitation } = await client.post<CreatedJson>('/invitations', body);
  const link = base + path;
  if (flags.json) return printJson({ ...invitation, link });
  const whom = invitation.username === null ? 'a user' : paint('bold', invitation.username);
  print(`Invited ${whom} to ${invitation.merchant}, with the role ${invitation.dashboard} on the dashboard.`);
  print(`Link: ${paint('bold', link)}`);
  print(`Expires: ${invitation.expires_at}`);
  printNote('The link is shown only once, and works once. Whoever has it can become this user.');
}

/**
 * Reads the address of a web server, and refuses one with a path, a query, a user or a password.
 *
 * @returns the address without a slash at its end
 * @throws LockgateError `input-url`
 */
function readAddress(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isWeb = url?.protocol === 'https:' || url?.protocol === 'http:';
  // What is left of such an address beside its origin: nothing but the slash.
  if (url !== undefined && isWeb && url.href === `${url.origin}/`) return url.origin;
  const expected = 'expected an http or https address such as https://locks.example.com';
  throw new LockgateError('input-url', `--url is ${JSON.stringify(text)}: ${expected}`);
}

/** The address of the merchants' port, as the gateway reports it. */
async function merchantsAddress(client: GatewayClient): Promise<string> {
  const { http } = await client.get<{ http: { host: string; port: number } }>('/status');
  const host = ANY_ADDRESS.has(http.host) ? client.host : http.host;
  return `http://${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}:${http.port}`;
}

async function list(flags: Flags): Promise<void> {
  const query = merchantQuery(flags);
  const client = new GatewayClient(flags);
  const { invitations } = await client.get<{ invitations: InvitationJson[] }>(`/invitations${query}`);
  if (flags.json) return printJson({ invitations });
  if (invitations.length === 0) return printNote('No invitation is open. Invite a user: lockgate user invite');
  const { dateMs: nowMs } = await readClocks(client);
  printTable(invitations, [
    { title: 'ID', show: (row) => String(row.id) },
    { title: 'NAME', show: (row) => row.username ?? '–' },
    { title: 'DASHBOARD', show: (row) => row.dashboard },
    { title: 'EXPIRES', show: (row) => whenText(row.expires_at, nowMs) },
    { title: 'INVITED', show: (row) => agoText(row.created_at, nowMs), optional: true },
  ]);
}

async function withdraw(id: string, flags: Flags): Promise<void> {
  const requestPath = `/invitations/${encodeURIComponent(id)}${merchantQuery(flags)}`;
  const invitation = await new GatewayClient(flags).delete<InvitationJson>(requestPath);
  if (flags.json) return printJson(invitation);
  print(`Withdrew invitation ${paint('bold', String(invitation.id))} of ${invitation.merchant}.`);
}

function merchantQuery({ merchant }: Flags): string {
  return merchant === undefined ? '' : `?merchant=${encodeURIComponent(merchant)}`;
}
