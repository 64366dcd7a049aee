/** `lockgate key create|list|revoke`: manages merchants' API keys. */
import { type Command, InvalidArgumentError } from 'commander';
import { ALL_KEY_SCOPES, isKeyScope, KEY_SCOPES } from '../../gateway/store/contract/merchants/key-scopes.js';
import { type ConnectionFlags, GatewayClient } from '../client.js';
import { readClocks, readExpiry } from '../gateway-clocks.js';
import { paint, print, printEmptyList, printJson, printNote } from '../terminal/output.js';
import { addClientFlags } from '../terminal/shared-flags.js';
import { CREDENTIAL_MARKS, printTable } from '../terminal/table.js';
import { agoText, whenText } from '../terminal/time-text.js';
import { addWatchFlag, repeatIfWatched } from '../terminal/watch.js';

type Flags = ConnectionFlags & { readonly json?: boolean; readonly merchant?: string };
type CreateFlags = Flags & { readonly scopes?: readonly string[]; readonly expires?: string };

/** An API key, as the operator interface returns it; without the secret text, which only its creation returns. */
interface KeyJson {
  readonly id: string;
  readonly merchant: string;
  readonly name: string;
  readonly state: string;
  readonly created_at: string;
  readonly last_used_at: string | null;
  readonly expires_at: string | null;
  readonly scopes: readonly string[];
}

const SCOPES_HELP = `\nScopes:\n${Object.entries(KEY_SCOPES)
  .map(([scope, what]) => `  ${scope.padEnd(16)} ${what}`)
  .join('\n')}`;

/** Adds the group to the program. */
export function addKeyCommands(program: Command): void {
  const key = program.command('key').description('Manage merchants’ API keys.');
  addClientFlags(key.command('create').description('Create an API key, and print it once.'))
    .argument('<name>', 'A name of your choice: a program, a person, a place.')
    .option('--merchant <name>', 'The merchant; optional if the gateway has only one.')
    .option('--scopes <list>', `What the key may do, separated by commas (default: everything).`, readScopes)
    .option('--expires <when>', 'When the key expires: a span such as 90d, or a date (default: never).')
    .addHelpText('after', SCOPES_HELP)
    .addHelpText('after', '\nExample:\n  $ lockgate key create "shop backend" --merchant "Amber Bikes"')
    .addHelpText(
      'after',
      '  $ lockgate key create "map" --merchant "Amber Bikes" --scopes locks:read,commands --expires 90d',
    )
    .action(createKey);
  addWatchFlag(addClientFlags(key.command('list').description('List API keys.')))
    .option('--merchant <name>', 'Only keys of this merchant.')
    .addHelpText('after', '\nExample:\n  $ lockgate key list')
    .action(repeatIfWatched(listKeys));
  addClientFlags(key.command('revoke').description('Immediately revoke an API key and its tokens.'))
    .argument('<id>', 'The key’s id, from "key list".')
    .addHelpText('after', '\nExample:\n  $ lockgate key revoke 3f9a0c2b7d41')
    .action(revokeKey);
}

/** The scopes of a list. @throws InvalidArgumentError for an empty list or an unknown scope */
function readScopes(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim());
  const unknown = names.find((name) => !isKeyScope(name));
  if (unknown === undefined) return names;
  throw new InvalidArgumentError(
    `There is no scope ${JSON.stringify(unknown)}: expected ${ALL_KEY_SCOPES.join(', ')}.`,
  );
}

/** The scopes for people. */
function scopesText({ scopes }: KeyJson): string {
  return scopes.length === ALL_KEY_SCOPES.length ? 'all' : scopes.join(', ');
}

async function createKey(name: string, flags: CreateFlags): Promise<void> {
  const { merchant, scopes, expires } = flags;
  const client = new GatewayClient(flags);
  const expiresAt = await readExpiry(client, expires);
  const body = { name, merchant, scopes, expires_at: expiresAt };
  const created = await client.post<KeyJson & { key: string }>('/keys', body);
  if (flags.json) return printJson(created);
  print(`Created API key ${paint('bold', created.id)} (${created.name}) for ${created.merchant}.`);
  print(`Key: ${paint('bold', created.key)}`);
  print(`Scopes: ${scopesText(created)}`);
  if (created.expires_at !== null) print(`Expires: ${created.expires_at}`);
  printNote('The key is shown only once. Send it as the user of HTTP basic authentication, with an empty password:');
  // The example adds a pet: the merchants' HTTP interface has a pet registry (specification, operation 1).
  printNote(`  curl -u "$KEY:" -H 'content-type: application/json' -d '{"name":"Rex"}' http://127.0.0.1:8080/v1/pet`);
}

async function listKeys(flags: Flags): Promise<void> {
  const { merchant } = flags;
  const url = merchant === undefined ? '/keys' : `/keys?merchant=${encodeURIComponent(merchant)}`;
  const client = new GatewayClient(flags);
  const { keys } = await client.get<{ keys: readonly KeyJson[] }>(url);
  if (flags.json) return printJson({ keys });
  if (keys.length === 0)
    return printEmptyList(
      [merchant],
      'No API keys match.',
      'There is no API key yet. Create one: lockgate key create NAME',
    );
  const { dateMs: nowMs } = await readClocks(client);
  printTable(keys, [
    { title: 'ID', show: (row) => row.id, neverCut: true },
    { title: 'MERCHANT', show: (row) => row.merchant, optional: true },
    { title: 'NAME', show: (row) => row.name },
    { title: 'STATE', show: (row) => row.state, mark: (row) => CREDENTIAL_MARKS[row.state] },
    { title: 'SCOPES', show: scopesText, prose: true },
    { title: 'EXPIRES', show: (row) => (row.expires_at ? whenText(row.expires_at, nowMs) : '–') },
    { title: 'LAST USED', show: (row) => (row.last_used_at ? agoText(row.last_used_at, nowMs) : 'never') },
    { title: 'CREATED', show: (row) => agoText(row.created_at, nowMs), optional: true },
  ]);
}

async function revokeKey(id: string, flags: Flags): Promise<void> {
  const key = await new GatewayClient(flags).post<KeyJson>(`/keys/${encodeURIComponent(id)}/revoke`, {});
  if (flags.json) return printJson(key);
  print(`Revoked API key ${paint('bold', key.id)} (${key.name}) of ${key.merchant}.`);
}
