/** `lockgate device phone add|list|revoke`: manages the phones that may act for a lock. */
import type { Command } from 'commander';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { readClocks, readExpiry } from '../../gateway-clocks.js';
import { paint, print, printJson, printNote } from '../../terminal/output.js';
import { addClientFlags } from '../../terminal/shared-flags.js';
import { CREDENTIAL_MARKS, printTable } from '../../terminal/table.js';
import { agoText, whenText } from '../../terminal/time-text.js';

type Flags = ConnectionFlags & { readonly json?: boolean };

/** A phone, as the operator interface returns it. */
interface PhoneJson {
  readonly name: string;
  readonly state: string;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
}

/** Adds the commands to the group. */
export function addPhoneCommands(device: Command): void {
  const phone = device.command('phone').description('Manage the phones that may act for a lock.');
  addClientFlags(phone.command('add').description('Add a phone, and print its credential once.'))
    .argument('<mac>', 'The lock’s MAC, in any common spelling.')
    .argument('<name>', 'A name of your choice: a person, a ticket, a device.')
    .option('--expires <when>', 'When the credential expires: a span such as 30d, or a date (default: never).')
    .addHelpText('after', '\nExample:\n  $ lockgate device phone add A4:C1:38:F0:E1:D2 "Ada’s phone" --expires 30d')
    .action(add);
  addClientFlags(phone.command('list').description('List a lock’s phones.'))
    .argument('<mac>', 'The lock’s MAC, in any common spelling.')
    .addHelpText('after', '\nExample:\n  $ lockgate device phone list A4:C1:38:F0:E1:D2')
    .action(list);
  addClientFlags(phone.command('revoke').description('Revoke a phone’s credential and close its connections.'))
    .argument('<mac>', 'The lock’s MAC, in any common spelling.')
    .argument('<name>', 'The phone’s name.')
    .addHelpText('after', '\nExample:\n  $ lockgate device phone revoke A4:C1:38:F0:E1:D2 "Ada’s phone"')
    .action(revoke);
}

function phonesPath(mac: string): string {
  return `/devices/${encodeURIComponent(mac)}/phones`;
}

async function add(mac: string, name: string, flags: Flags & { expires?: string }): Promise<void> {
  const client = new GatewayClient(flags);
  const expiresAt = await readExpiry(client, flags.expires);
  const phone = await client.post<PhoneJson & { mac: string; secret: string }>(phonesPath(mac), {
    name,
    ...(expiresAt !== undefined && { expires_at: expiresAt }),
  });
  if (flags.json) return printJson(phone);
  const until = phone.expires_at === null ? 'until it is revoked' : `until ${phone.expires_at}`;
  print(`Added phone ${paint('bold', phone.name)} of lock ${phone.mac}, ${until}.`);
  const mqttName = phone.mac.replaceAll(':', '');
  print(`Credential: ${paint('bold', phone.secret)}`);
  printNote('The credential is shown only once. The phone connects with it over MQTT:');
  printNote(
    `  client id phone-${mqttName}- and 1 to 32 letters or digits of its choice, user name ${mqttName}, password the`,
  );
  printNote('  credential; it publishes to "up" and subscribes to nothing.');
}

async function list(mac: string, flags: Flags): Promise<void> {
  const client = new GatewayClient(flags);
  const answer = await client.get<{ mac: string; phones: readonly PhoneJson[] }>(phonesPath(mac));
  if (flags.json) return printJson(answer);
  if (answer.phones.length === 0)
    return printNote(`${answer.mac} has no phone. Add one: lockgate device phone add MAC NAME`);
  const { dateMs: nowMs } = await readClocks(client);
  printTable(answer.phones, [
    { title: 'NAME', show: (row) => row.name },
    { title: 'STATE', show: (row) => row.state, mark: (row) => CREDENTIAL_MARKS[row.state] },
    { title: 'EXPIRES', show: (row) => (row.expires_at ? whenText(row.expires_at, nowMs) : '–') },
    { title: 'ADDED', show: (row) => agoText(row.created_at, nowMs), optional: true },
    { title: 'REVOKED', show: (row) => (row.revoked_at ? agoText(row.revoked_at, nowMs) : '–'), optional: true },
  ]);
}

async function revoke(mac: string, name: string, flags: Flags): Promise<void> {
  const answer = await new GatewayClient(flags).delete<{ mac: string; name: string }>(
    `${phonesPath(mac)}/${encodeURIComponent(name)}`,
  );
  if (flags.json) return printJson(answer);
  print(`Revoked phone ${paint('bold', answer.name)} of lock ${answer.mac}.`);
}
