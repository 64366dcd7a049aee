/** `lockgate webhook deliveries|resend|recover`: lists deliveries to webhook URLs and sends events again. */
import { type Command, Option } from 'commander';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import {
  paint,
  print,
  printEmptyList,
  printJson,
  printNote,
  type Style,
  sanitizeLine,
  terminalWidth,
} from '../../terminal/output.js';
import { addClientFlags } from '../../terminal/shared-flags.js';
import { printTable } from '../../terminal/table.js';
import { cutToWidth, widthOf } from '../../terminal/text-width.js';
import { addWatchFlag, repeatIfWatched } from '../../terminal/watch.js';
import { readCount } from './flags.js';

type Flags = ConnectionFlags & { readonly json?: boolean };

interface AttemptJson {
  readonly number: number;
  readonly at: string;
  readonly status: number | null;
  readonly duration_ms: number;
  readonly error: string | null;
  readonly answer: string | null;
}

interface DeliveryJson {
  readonly event_id: string;
  readonly url_id: number;
  readonly mac: string;
  readonly reason: string | null;
  readonly received_at: string;
  readonly state: string;
  readonly damaged: boolean;
  readonly next_attempt_at: string | null;
  readonly attempts: readonly AttemptJson[];
}

/** A copy of the states in gateway/store/contract/webhook-store.ts, which help must not load; a test compares them. */
const STATES = ['pending', 'delivered', 'dead', 'kept', 'damaged'];

/** Adds the three commands to the group. */
export function addDeliveryCommands(webhook: Command): void {
  addWatchFlag(
    addClientFlags(webhook.command('deliveries').description('List deliveries with their attempts, newest first.')),
  )
    .option('--mac <mac>', 'Only deliveries of this lock.')
    .option('--url <id>', 'Only deliveries to this webhook URL.')
    .addOption(
      new Option(
        '--state <state>',
        'Only deliveries in this state; kept: the URL was disabled; damaged: the stored ping is corrupt.',
      ).choices([...STATES]),
    )
    .option('--since <time>', 'Only events received at or after this time.')
    .option('--until <time>', 'Only events received before this time.')
    .option('--limit <n>', 'Maximum number to list, up to 500 (default: 50).', readCount)
    .addHelpText('after', '\nExample:\n  $ lockgate webhook deliveries --state dead --since 2026-11-20T06:00:00Z')
    .action(repeatIfWatched(listDeliveries));
  addClientFlags(
    webhook.command('resend').description('Resend an event with its original id, even if it was delivered.'),
  )
    .argument('<event>', 'The event’s id, evt_….')
    .option('--url <id>', 'Only to this webhook URL (default: all of the merchant’s).', readCount)
    .addHelpText('after', '\nExample:\n  $ lockgate webhook resend evt_A4C138F0E1D2_1_41_12_9f3a2c1b00d4e5f6 --url 1')
    .action(resend);
  addClientFlags(webhook.command('recover').description('Resend all undelivered events since a given time.'))
    .requiredOption('--since <time>', 'Only events received at or after this time.')
    .option('--until <time>', 'Only events received before this time.')
    .option('--url <id>', 'Only to this webhook URL (default: all).', readCount)
    .addHelpText('after', '\nExample:\n  $ lockgate webhook recover --since 2026-11-20T06:00:00Z --url 1')
    .action(recover);
}

interface DeliveryFlags extends ConnectionFlags {
  readonly json?: boolean;
  readonly mac?: string;
  readonly url?: string;
  readonly state?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit?: number;
}

/** The flags that limit the list to certain deliveries. */
const FILTERS = ['mac', 'url', 'state', 'since', 'until'] as const;

async function listDeliveries(flags: DeliveryFlags): Promise<void> {
  const query = new URLSearchParams();
  for (const name of [...FILTERS, 'limit'] as const)
    if (flags[name] !== undefined) query.set(name, String(flags[name]));
  const answer = await new GatewayClient(flags).get<{ deliveries: DeliveryJson[] }>(`/deliveries?${query}`);
  if (flags.json) return printJson(answer);
  if (answer.deliveries.length === 0)
    return printEmptyList(
      FILTERS.map((name) => flags[name]),
      'No deliveries match.',
      'There is no delivery yet.',
    );
  for (const delivery of answer.deliveries) printDelivery(delivery);
}

/** By the delivery's state. */
const STYLES: Readonly<Record<string, Style>> = {
  delivered: 'green',
  dead: 'red',
  pending: 'yellow',
  kept: 'dim',
  damaged: 'red',
};

function printDelivery(delivery: DeliveryJson): void {
  const { event_id, url_id, mac, reason, received_at, state, next_attempt_at, attempts } = delivery;
  const next = next_attempt_at === null ? '' : `, next attempt at ${next_attempt_at}`;
  const parts = [received_at, `URL ${url_id}`, `${state}${next}`, `${mac} ${reason ?? 'damaged'}`, event_id];
  for (const line of foldParts(parts.map(sanitizeLine), terminalWidth()))
    print(line.replace(`  ${state}`, `  ${paint(STYLES[state] ?? 'dim', state)}`));
  for (const { number, at, status, duration_ms: ms, error, answer } of attempts) {
    const result = `${status ?? 'no answer'} in ${ms} ms${error === null ? '' : `: ${error}`}`;
    const line = sanitizeLine(`  ${number}. ${at}  ${result}${answer ? `  ${JSON.stringify(answer)}` : ''}`);
    print(cutToWidth(line, terminalWidth()));
  }
}

/** Joins the parts with two spaces. A part that does not fit starts a new line, so that no id is cut. */
function foldParts(parts: readonly string[], room: number): string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const last = lines.at(-1);
    const longer = last === undefined ? part : `${last}  ${part}`;
    if (last === undefined) lines.push(part);
    else if (widthOf(longer) <= room) lines[lines.length - 1] = longer;
    else lines.push(`    ${part}`);
  }
  return lines;
}

async function resend(event: string, flags: Flags & { url?: number }): Promise<void> {
  const answer = await new GatewayClient(flags).post<{ urls: { url_id: number; became: string }[] }>(
    `/events/${encodeURIComponent(event)}/resend`,
    { ...(flags.url !== undefined && { url_id: flags.url }) },
  );
  if (flags.json) return printJson(answer);
  for (const { url_id: id, became } of answer.urls)
    print(became === 'due' ? `Sent again to URL ${id}.` : `The first attempt at URL ${id} is already in progress.`);
  printNote('To see the outcome: lockgate webhook deliveries, or lockgate tail');
}

async function recover(flags: Flags & { since: string; until?: string; url?: number }): Promise<void> {
  const { since, until, url } = flags;
  const body = { since, ...(until !== undefined && { until }), ...(url !== undefined && { url_id: url }) };
  const answer = await new GatewayClient(flags).post<{ urls: { url_id: number; events: number | null }[] }>(
    '/deliveries/recover',
    body,
  );
  if (flags.json) return printJson(answer);
  if (answer.urls.length === 0) return printNote('There is no webhook URL yet. Add one: lockgate webhook add URL');
  printTable(answer.urls, [
    { title: 'URL', show: (row) => String(row.url_id) },
    { title: 'SENT AGAIN', show: (row) => (row.events === null ? 'none: it is disabled' : String(row.events)) },
  ]);
}
