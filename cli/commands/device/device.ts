/** `lockgate device …`: the group, and its commands add, list, show and rotate-secret. */

import type { Command } from 'commander';
import { commandText } from '../../../gateway/console/wording/command-text.js';
import { presenceText } from '../../../gateway/console/wording/event-text.js';
import { Seconds } from '../../../proto/clock.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { paint, print, printJson, printNote, sanitizeLine, terminalWidth } from '../../terminal/output.js';
import { addClientFlags } from '../../terminal/shared-flags.js';
import { widthOf } from '../../terminal/text-width.js';
import { readSpan } from '../../terminal/time-text.js';
import { wrapWords } from '../../terminal/word-wrap.js';
import { byteText } from '../usage/text.js';
import { addListCommand, type DeviceJson, labelsText, percent } from './list.js';
import { addMaintenanceCommands } from './maintenance.js';
import { addPhoneCommands } from './phone.js';

/** The maximum number of refused connections and packets that `show` prints; --json has all. */
const MAX_PRINTED_REFUSALS = 5;
/**
 * How much of the bytes of a quarantined uplink (one that can't be decoded) `show` prints, in base64; --json has all.
 */
const MAX_PRINTED_RAW_CHARACTERS = 60;

type Flags = ConnectionFlags & { readonly json?: boolean };
type AddFlags = Flags & {
  readonly merchant?: string;
  readonly simulated?: boolean;
  readonly name?: string;
  readonly labels?: string;
};

/** An uplink; without `ping` it is the acknowledgement of a command. */
interface UplinkJson {
  readonly received_at: string;
  readonly boot: number;
  readonly sequence: number;
  readonly ping?: { readonly ping_type: string; readonly reason: string; readonly battery_percent: number };
}

/** A lock with its history, as the operator interface returns it. */
interface ShownDevice extends DeviceJson {
  readonly uplinks: readonly UplinkJson[];
  readonly phone_uplinks: readonly UplinkJson[];
  /** The device twin: the power settings that commands have set (`wanted`), compared with what the lock reports. */
  readonly twin: {
    readonly wanted: Readonly<Record<string, unknown>>;
    /** The members of `wanted` that the lock reports differently, or not at all. */
    readonly differs: readonly string[];
  };
  /** The usage of the current month. */
  readonly usage: {
    readonly month: string;
    readonly messages: number;
    readonly connections: number;
    readonly bytes: number;
  };
  /** The gateway's limits on uplinks that the lock has exceeded. */
  readonly over_budget: readonly { readonly since: string; readonly why: string }[];
  /** The rules that the lock broke. */
  readonly findings: readonly {
    readonly id: number;
    readonly at: string;
    readonly rule: string;
    readonly severity: string;
    readonly message: string;
  }[];
  /** Connections and packets that the gateway refused, newest first; equal ones are counted. */
  readonly refusals: readonly {
    readonly source: 'lock' | 'phone';
    readonly what: string;
    readonly why: string;
    readonly address: string;
    readonly count: number;
    readonly first_at: string;
    readonly last_at: string;
  }[];
  /** Uplinks that could not be decoded; `raw` is base64. */
  readonly quarantine: readonly {
    readonly id: number;
    readonly received_at: string;
    readonly code: string;
    readonly message: string;
    readonly raw: string;
  }[];
}

/** Adds the group to the program. */
export function addDeviceCommands(program: Command): void {
  const device = program.command('device').description('Manage locks and their credentials.');
  addClientFlags(device.command('add').description('Add a lock, and print its secret once.'))
    .argument('<mac>', 'The lock’s MAC, in any common spelling.')
    .option('--merchant <name>', 'The merchant; optional if the gateway has only one.')
    .option('--simulated', 'Mark the lock as simulated: judged and delivered, but not billed.')
    .option('--name <name>', 'A name of up to 60 characters.')
    .option('--labels <list>', 'Labels: key=value, separated by commas.')
    .addHelpText('after', '\nExample:\n  $ lockgate device add A4:C1:38:F0:E1:D2 --merchant "Amber Bikes"')
    .action(add);
  addListCommand(device);
  addClientFlags(device.command('show').description('Show a lock: its state, latest uplinks, findings and refusals.'))
    .argument('<mac>', 'The lock’s MAC, in any common spelling.')
    .addHelpText('after', '\nExample:\n  $ lockgate device show a4c1.38f0.e1d2')
    .action(show);
  addClientFlags(device.command('rotate-secret').description('Give a lock a new secret, and print it once.'))
    .argument('<mac>', 'The lock’s MAC, in any common spelling.')
    .option('--keep-old-for <span>', 'How long the old secret stays valid, such as 1h (default: not at all).')
    .addHelpText(
      'after',
      '\nCloses the lock’s connection. You must install the new secret in the lock: it is not sent over the air.' +
        '\n\nExample:\n  $ lockgate device rotate-secret A4:C1:38:F0:E1:D2 --keep-old-for 1h',
    )
    .action(rotate);
  addMaintenanceCommands(device);
  addPhoneCommands(device);
}

async function add(mac: string, flags: AddFlags): Promise<void> {
  const { merchant, simulated, name, labels } = flags;
  const device = await new GatewayClient(flags).post<DeviceJson & { secret: string }>('/devices', {
    mac,
    ...(merchant !== undefined && { merchant }),
    ...(simulated !== undefined && { simulated }),
    ...(name !== undefined && { name }),
    ...(labels !== undefined && { labels: (await import('./labels.js')).readLabels(labels) }),
  });
  if (flags.json) return printJson(device);
  print(`Added lock ${paint('bold', device.mac)} of ${device.merchant}.`);
  printSecret(device.mac, device.secret);
}

function printSecret(mac: string, secret: string): void {
  const mqttName = mac.replaceAll(':', '');
  print(`Secret: ${paint('bold', secret)}`);
  printNote('The secret is shown only once. The lock connects with it over MQTT:');
  printNote(`  client id and user name ${mqttName}, password the secret; it publishes to "up".`);
}

async function show(mac: string, flags: Flags): Promise<void> {
  const device = await new GatewayClient(flags).get<ShownDevice>(`/devices/${encodeURIComponent(mac)}`);
  if (flags.json) return printJson(device);
  const { state } = device;
  print(`${paint('bold', device.mac)}  ${device.merchant}${device.simulated ? '  (simulated)' : ''}`);
  const described = [device.name ?? '', labelsText(device.labels)].filter((text) => text !== '').join('  ');
  if (described !== '') print(sanitizeLine(described));
  if (state === null) print('The lock has never sent an uplink.');
  else {
    const place = state.latitude === null ? 'no position yet' : `${state.latitude},${state.longitude}`;
    print(`${state.lock_state}, battery ${percent(state.battery_percent)}, ${state.power_state}, ${place}`);
    // A copy, because an interface does not count as the record of unknown members that the function takes.
    print(presenceText({ ...device }));
  }
  if (device.unjudged !== null)
    print(paint('red', sanitizeLine(`not judged since ${device.unjudged.since}: ${device.unjudged.why}`)));
  for (const { since, why } of device.over_budget) print(paint('yellow', `over budget since ${since}: ${why}`));
  for (const line of usageLines(device)) print(line);
  for (const [name, value] of Object.entries(device.twin.wanted)) {
    // Described like the parameters of a command, with `wanted:` in place of the command's type.
    const wanted = commandText({ type: 'wanted:', parameters: { [name]: value } });
    print(`${wanted}${device.twin.differs.includes(name) ? '  (not reported yet)' : ''}`);
  }
  printUplinks('Latest uplinks', device.uplinks);
  printUplinks('From phones', device.phone_uplinks);
  if (device.findings.length > 0) print(paint('bold', '\nFindings'));
  for (const { id, at, rule, severity, message } of device.findings)
    printEntry(`${at}  finding:${id}  ${severity} ${rule}: ${message}`);
  printRefusals(device);
  if (device.quarantine.length > 0) print(paint('bold', '\nQuarantined'));
  for (const { id, received_at, message, raw } of device.quarantine)
    print(
      sanitizeLine(`${received_at}  quarantine:${id}  ${message}  base64:${raw.slice(0, MAX_PRINTED_RAW_CHARACTERS)}`),
    );
}

function printRefusals({ refusals }: ShownDevice): void {
  if (refusals.length > 0) print(paint('bold', '\nRefused'));
  for (const { source, what, why, address, count, first_at, last_at } of refusals.slice(0, MAX_PRINTED_REFUSALS)) {
    const who = source === 'phone' ? 'phone ' : '';
    const times = count === 1 ? '' : `, ${plural(count, 'time')} since ${first_at}`;
    printEntry(`${last_at}  ${who}${what}: ${why} (from ${address}${times})`);
  }
  const more = refusals.length - MAX_PRINTED_REFUSALS;
  if (more > 0) print(`and ${plural(more, 'more reason')}: --json has all`);
}

function printUplinks(title: string, uplinks: readonly UplinkJson[]): void {
  if (uplinks.length > 0) print(paint('bold', `\n${title}`));
  for (const { received_at, boot, sequence, ping } of uplinks)
    print(`${received_at}  ${boot}/${sequence}  ${ping ? `${ping.ping_type} ${ping.reason}` : 'acknowledgement'}`);
}

function usageLines({ sim, usage }: ShownDevice): string[] {
  const { month, bytes, messages, connections } = usage;
  const since = sim.activated_at === null ? '' : ` since ${sim.activated_at}`;
  const used = `${byteText(bytes)}, ${plural(messages, 'message')}, ${plural(connections, 'connection')}`;
  return [`SIM ${sim.state}${since}`, `used in ${month}: ${used}`];
}

function plural(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
}

/** Prints a line that may have a sentence; a terminal too narrow for it shows the rest below, indented. */
function printEntry(line: string): void {
  const [first = '', ...rest] = wrapWords(sanitizeLine(line), terminalWidth(), widthOf);
  print(first);
  const indented = wrapWords(`    ${rest.join(' ')}`, terminalWidth(), widthOf);
  if (rest.length > 0) for (const each of indented) print(each);
}

async function rotate(mac: string, flags: Flags & { keepOldFor?: string }): Promise<void> {
  const { keepOldFor } = flags;
  const keepOldMs = keepOldFor === undefined ? 0 : readSpan('--keep-old-for', keepOldFor);
  const answer = await new GatewayClient(flags).post<{ mac: string; secret: string }>(
    `/devices/${encodeURIComponent(mac)}/rotate-secret`,
    keepOldMs > 0 ? { keep_old_seconds: keepOldMs / Seconds(1) } : {},
  );
  if (flags.json) return printJson(answer);
  print(`Lock ${paint('bold', answer.mac)} has a new secret.`);
  if (keepOldFor !== undefined) print(`The old secret stays valid for ${keepOldFor}.`);
  printSecret(answer.mac, answer.secret);
}
