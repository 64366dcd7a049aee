/** `lockgate token create|list|revoke`: manages operators' named tokens. */
import { type Command, Option } from 'commander';
import { type ConnectionFlags, GatewayClient } from '../client.js';
import { readClocks, readExpiry } from '../gateway-clocks.js';
import { paint, print, printEmptyList, printJson, printNote } from '../terminal/output.js';
import { addClientFlags } from '../terminal/shared-flags.js';
import { CREDENTIAL_MARKS, printTable } from '../terminal/table.js';
import { agoText, whenText } from '../terminal/time-text.js';
import { addWatchFlag, repeatIfWatched } from '../terminal/watch.js';

type Flags = ConnectionFlags & { readonly json?: boolean };
type CreateFlags = Flags & { readonly role: string; readonly expires?: string };

/** A named token, as the operator interface returns it. */
interface TokenJson {
  readonly name: string;
  readonly role: string;
  readonly state: string;
  readonly created_at: string;
  readonly last_used_at: string | null;
  readonly expires_at: string | null;
}

/** The roles, each with what it may do. */
const ROLES = {
  metrics: 'Read the metrics, and nothing else.',
  read: 'Read everything but backups, settings and stored traces.',
  operate: 'Also send commands, and change locks, webhooks and users.',
  admin: 'Everything, as with the token in the data folder.',
};

const ROLES_HELP = `\nRoles:\n${Object.entries(ROLES)
  .map(([role, what]) => `  ${role.padEnd(8)} ${what}`)
  .join('\n')}`;

/** Adds the group to the program. */
export function addTokenCommands(program: Command): void {
  const token = program.command('token').description('Manage operators’ named tokens and their roles.');
  addClientFlags(token.command('create').description('Create a token for an operator, and print it once.'))
    .argument('<name>', 'Who or what uses it: letters, digits and . _ -')
    .addOption(new Option('--role <role>', 'What the token may do.').choices(Object.keys(ROLES)).makeOptionMandatory())
    .option('--expires <when>', 'When the token expires: a span such as 90d, or a date (default: never).')
    .addHelpText('after', ROLES_HELP)
    .addHelpText('after', '\nUse it with --token, LOCKGATE_TOKEN, or LOCKGATE_TOKEN_FILE, which names a file with it.')
    .addHelpText('after', '\nExample:\n  $ lockgate token create prometheus --role metrics')
    .addHelpText('after', '  $ lockgate token create ada --role operate --expires 90d')
    .action(createToken);
  addWatchFlag(addClientFlags(token.command('list').description('List the named tokens of operators.')))
    .addHelpText('after', '\nExample:\n  $ lockgate token list')
    .action(repeatIfWatched(listTokens));
  addClientFlags(token.command('revoke').description('Revoke a named token at once.'))
    .argument('<name>', 'The token’s name, from "token list".')
    .addHelpText('after', '\nExample:\n  $ lockgate token revoke ada')
    .action(revokeToken);
}

async function createToken(name: string, flags: CreateFlags): Promise<void> {
  const { role, expires } = flags;
  const client = new GatewayClient(flags);
  const expiresAt = await readExpiry(client, expires);
  const body = { name, role, expires_at: expiresAt };
  const created = await client.post<TokenJson & { token: string }>('/tokens', body);
  if (flags.json) return printJson(created);
  print(`Created token ${paint('bold', created.name)} with the role ${created.role}.`);
  print(`Token: ${paint('bold', created.token)}`);
  if (created.expires_at !== null) print(`Expires: ${created.expires_at}`);
  printNote('The token is shown only once. Send it as a bearer token, or use it as LOCKGATE_TOKEN.');
}

async function listTokens(flags: Flags): Promise<void> {
  const client = new GatewayClient(flags);
  const { tokens } = await client.get<{ tokens: readonly TokenJson[] }>('/tokens');
  if (flags.json) return printJson({ tokens });
  if (tokens.length === 0)
    return printEmptyList([], '', 'There is no named token yet. Create one: lockgate token create NAME --role ROLE');
  const { dateMs: nowMs } = await readClocks(client);
  printTable(tokens, [
    { title: 'NAME', show: (row) => row.name },
    { title: 'ROLE', show: (row) => row.role },
    { title: 'STATE', show: (row) => row.state, mark: (row) => CREDENTIAL_MARKS[row.state] },
    { title: 'EXPIRES', show: (row) => (row.expires_at ? whenText(row.expires_at, nowMs) : '–') },
    { title: 'LAST USED', show: (row) => (row.last_used_at ? agoText(row.last_used_at, nowMs) : 'never') },
    { title: 'CREATED', show: (row) => agoText(row.created_at, nowMs), optional: true },
  ]);
}

async function revokeToken(name: string, flags: Flags): Promise<void> {
  const token = await new GatewayClient(flags).post<TokenJson>(`/tokens/${encodeURIComponent(name)}/revoke`, {});
  if (flags.json) return printJson(token);
  print(`Revoked token ${paint('bold', token.name)}.`);
}
