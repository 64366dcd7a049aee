/** `lockgate webhook deliveries|resend|recover`: lists deliveries (delivery-list.ts) and sends events again. */
import { type Command, Option } from 'commander';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { print, printJson, printNote } from '../../terminal/output.js';
import { addPageFlags } from '../../terminal/paged-list.js';
import { addClientFlags } from '../../terminal/shared-flags.js';
import { printTable } from '../../terminal/table.js';
import { addWatchFlag, repeatIfWatched } from '../../terminal/watch.js';
import type { DeliveryFlags } from './delivery-list.js';
import { readCount } from './flags.js';

type Flags = ConnectionFlags & { readonly json?: boolean };

const DEFAULT_LIMIT = 50;
/**
 * The states of a delivery: `dead` if all attempts failed, `kept` if the URL was disabled, `damaged` if the stored ping
 * is corrupt. A copy of those in gateway/store/contract/webhook-store.ts, which help must not load; a test compares
 * them.
 */
const STATES = ['pending', 'delivered', 'dead', 'kept', 'damaged'];

/** Adds the three commands to the group. */
export function addDeliveryCommands(webhook: Command): void {
  const deliveries = webhook.command('deliveries').description('List deliveries and how they went, newest first.');
  addPageFlags(addWatchFlag(addClientFlags(deliveries)), DEFAULT_LIMIT)
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
    .option('--body', 'Also list each attempt, with the beginning of the body that the receiver answered.')
    .addHelpText('after', '\nExample:\n  $ lockgate webhook deliveries --state dead --since 24h --body')
    .action(
      repeatIfWatched(async (flags: DeliveryFlags) => {
        const { listDeliveries } = await import('./delivery-list.js');
        await listDeliveries(flags);
      }),
    );
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

async function resend(event: string, flags: Flags & { url?: number }): Promise<void> {
  // `became` is `due` if the event is sent again, and `on-its-way` if its first delivery has not ended yet.
  const answer = await new GatewayClient(flags).post<{ urls: { url_id: number; became: string }[] }>(
    `/events/${encodeURIComponent(event)}/resend`,
    { ...(flags.url !== undefined && { url_id: flags.url }) },
  );
  if (flags.json) return printJson(answer);
  for (const { url_id: id, became } of answer.urls)
    print(
      became === 'due'
        ? `Sent again to URL ${id}.`
        : `Not sent again to URL ${id}: its first attempt is still to come or in progress.`,
    );
  printNote('To see the outcome: lockgate webhook deliveries, or lockgate tail');
}

async function recover(flags: Flags & { since: string; until?: string; url?: number }): Promise<void> {
  const { since, until, url } = flags;
  // `events` is null for a disabled URL, which gets none.
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
