/** `lockgate webhook …`: the group, and its commands add, list, set, remove and rotate-secret. */
import type { Command } from 'commander';
import { LockgateError } from '../../../proto/errors.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { readClocks } from '../../gateway-clocks.js';
import { paint, print, printJson, printNote } from '../../terminal/output.js';
import { addClientFlags } from '../../terminal/shared-flags.js';
import { type Mark, printTable } from '../../terminal/table.js';
import { agoText, whenText } from '../../terminal/time-text.js';
import { addWatchFlag, repeatIfWatched } from '../../terminal/watch.js';
import { addDeliveryCommands } from './deliveries.js';
import { FILTER_FLAGS, type FilterFlags, filterBody, filterText, readLabelList, readNames } from './filter-flags.js';
import { collect, readCount, readOnOff, readSpan } from './flags.js';
import {
  LIMIT_FLAGS,
  type LimitFlags,
  type LimitsJson,
  limitBody,
  limitLines,
  limitsText,
  readLimit,
} from './limit-flags.js';
import { addListenCommand } from './listen.js';
import { addSchemaCommand } from './schema.js';
import { addShowCommand } from './show.js';
import { addTriggerCommand } from './trigger.js';
import { addTestCommand } from './try.js';

type Flags = ConnectionFlags & { readonly json?: boolean };

/** A webhook URL, as the operator interface returns it. */
interface WebhookJson extends LimitsJson {
  readonly id: number;
  readonly merchant: string;
  readonly url: string;
  readonly headers: readonly string[];
  /** Whether a lock's later events wait while an earlier one fails. */
  readonly ordered: boolean;
  /** The URL gets only events of these types, and only pings that match the next three; null for no such filter. */
  readonly events: readonly string[];
  readonly reasons: readonly string[] | null;
  readonly ping_types: readonly string[] | null;
  readonly labels: Readonly<Record<string, string>> | null;
  /** `active` or `disabled`. */
  readonly state: string;
  readonly disabled_why: string | null;
  /** `open` after many failures in a row: then nothing is sent for a while. */
  readonly circuit: string;
  readonly failing_since: string | null;
  /** Until when webhooks are also signed with each older secret, the latest time first. */
  readonly old_secrets_until: readonly string[];
}

/**
 * `backlog` counts the URL's undelivered events: `behind` were never tried, `pending` wait for a retry. Null if they
 * can't be counted at the moment.
 */
interface ListedWebhookJson extends WebhookJson {
  readonly backlog: { readonly behind: number; readonly pending: number } | null;
}

/** Adds the group to the program. */
export function addWebhookCommands(program: Command): void {
  const webhook = program.command('webhook').description('Manage webhook URLs and deliveries.');
  addClientFlags(webhook.command('add').description('Add a webhook URL, and print its signing secret once.'))
    .argument('<url>', 'The URL, http or https.')
    .option('--merchant <name>', 'The merchant; optional if the gateway has only one.')
    .option('--header <name: value>', 'Add a custom header to every request; can be repeated.', collect, [])
    .option('--ordered', 'Make a lock’s later events wait while an earlier one fails.')
    .option('--rate <n>', LIMIT_FLAGS.rate, readLimit)
    .option('--timeout <seconds>', LIMIT_FLAGS.timeout, readLimit)
    .option('--ca <file>', LIMIT_FLAGS.ca)
    .option('--events <list>', FILTER_FLAGS.events, readNames)
    .option('--reasons <list>', FILTER_FLAGS.reasons, readNames)
    .option('--ping-types <list>', FILTER_FLAGS.pingTypes, readNames)
    .option('--labels <list>', FILTER_FLAGS.labels, readLabelList)
    .option('--since <time>', 'Also send stored events received at or after this time (default: only new events).')
    .addHelpText(
      'after',
      '\nExample:\n  $ lockgate webhook add https://hooks.example.com/locks --header "X-Team: bikes"',
    )
    .action(add);
  addWatchFlag(addClientFlags(webhook.command('list').description('List webhook URLs.')))
    .addHelpText('after', '\nExample:\n  $ lockgate webhook list')
    .action(repeatIfWatched(list));
  addChangeCommands(webhook);
  addDeliveryCommands(webhook);
  addTestCommand(webhook);
  addTriggerCommand(webhook);
  addListenCommand(webhook);
  addSchemaCommand(webhook);
  addShowCommand(webhook);
}

function addChangeCommands(webhook: Command): void {
  addClientFlags(webhook.command('set').description('Change a webhook URL.'))
    .argument('<id>', 'The URL’s number, from "webhook list".', readCount)
    .option('--url <url>', 'Change the URL, http or https.')
    .option('--header <name: value>', 'Add or replace a header; can be repeated.', collect, [])
    .option('--remove-header <name>', 'Remove a header; can be repeated.', collect, [])
    .option('--ordered <on|off>', 'Whether a lock’s later events wait while an earlier one fails.', readOnOff)
    .option('--rate <n>', LIMIT_FLAGS.rate, readLimit)
    .option('--timeout <seconds>', LIMIT_FLAGS.timeout, readLimit)
    .option('--ca <file>', LIMIT_FLAGS.ca)
    .option('--events <list>', FILTER_FLAGS.events, readNames)
    .option('--reasons <list>', FILTER_FLAGS.reasons, readNames)
    .option('--ping-types <list>', FILTER_FLAGS.pingTypes, readNames)
    .option('--labels <list>', FILTER_FLAGS.labels, readLabelList)
    .option('--enable', 'Send new events to the URL again; "webhook recover" sends those stored meanwhile.')
    .option('--disable', 'Stop sending to the URL; its events are stored.')
    .addHelpText(
      'after',
      '\nExample:\n  $ lockgate webhook set 1 --enable --header "X-Team: bikes" && lockgate webhook recover --url 1 ' +
        '--since 2026-11-20T06:00:00Z',
    )
    .action(set);
  addClientFlags(webhook.command('remove').description('Remove a webhook URL and its deliveries.'))
    .argument('<id>', 'The URL’s number, from "webhook list".', readCount)
    .addHelpText('after', '\nExample:\n  $ lockgate webhook remove 1')
    .action(remove);
  addClientFlags(webhook.command('rotate-secret').description('Give a URL a new signing secret, and print it once.'))
    .argument('<id>', 'The URL’s number, from "webhook list".', readCount)
    .option(
      '--grace <span>',
      'How long webhooks are also signed with the old secret, such as 90s, 1h or 2d (default: 24h).',
      readSpan,
    )
    .option('--now', 'Stop using the old secret at once.')
    .addHelpText('after', '\nExample:\n  $ lockgate webhook rotate-secret 1 --grace 1h')
    .action(rotate);
}

interface AddFlags extends ConnectionFlags, FilterFlags, LimitFlags {
  readonly json?: boolean;
  readonly merchant?: string;
  readonly header: readonly string[];
  readonly ordered?: boolean;
  readonly since?: string;
}

async function add(url: string, flags: AddFlags): Promise<void> {
  const { merchant, ordered, since } = flags;
  const headers = readHeaders(flags.header);
  const client = new GatewayClient(flags);
  const webhook = await client.post<WebhookJson & { secret: string }>('/webhooks', {
    url,
    headers,
    ...(merchant !== undefined && { merchant }),
    ...(ordered !== undefined && { ordered }),
    ...filterBody(flags),
    ...(await limitBody(flags)),
    ...(since !== undefined && { since }),
  });
  if (flags.json) return printJson(webhook);
  print(`Added webhook URL ${webhook.id} of ${webhook.merchant}: ${webhook.url}`);
  if (filterText(webhook) !== '') print(`It gets only ${filterText(webhook)}.`);
  await printLimits(client, webhook);
  print(`Signing secret: ${paint('bold', webhook.secret)}`);
  printNote('The secret is shown only once. The receiver needs it to verify webhooks (Standard Webhooks).');
}

/** The limits, if the URL has any of its own. */
async function printLimits(client: GatewayClient, webhook: WebhookJson): Promise<void> {
  if (limitsText(webhook) === '') return;
  const { machineMs: nowMs } = await readClocks(client);
  for (const [label, text] of limitLines(webhook, nowMs)) print(`${label}: ${text}`);
}

/** The `--header` flags of a call. @throws LockgateError `input-header` if one is malformed or repeated */
function readHeaders(flags: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of flags.map(readHeader)) {
    const sameName = Object.keys(headers).find((each) => each.toLowerCase() === name.toLowerCase());
    if (sameName !== undefined)
      throw new LockgateError('input-header', `--header names ${JSON.stringify(name)} twice: give each header once`);
    headers[name] = value;
  }
  return headers;
}

function readHeader(text: string): [string, string] {
  const colon = text.indexOf(':');
  if (colon < 1)
    throw new LockgateError('input-header', `${JSON.stringify(text)} is not a header: expected "Name: value"`);
  return [text.slice(0, colon).trim(), text.slice(colon + 1).trim()];
}

async function list(flags: Flags): Promise<void> {
  const client = new GatewayClient(flags);
  const { webhooks } = await client.get<{ webhooks: ListedWebhookJson[] }>('/webhooks');
  if (flags.json) return printJson({ webhooks });
  if (webhooks.length === 0) return printNote('There is no webhook URL yet. Add one: lockgate webhook add URL');
  const { machineMs: nowMs } = await readClocks(client);
  printTable(webhooks, [
    { title: 'ID', show: (row) => String(row.id) },
    { title: 'MERCHANT', show: (row) => row.merchant, optional: true },
    { title: 'URL', show: (row) => row.url },
    { title: 'STATE', show: stateText, mark: markOf },
    {
      title: 'WAITING',
      show: ({ backlog }) => (backlog === null ? '?' : (backlog.behind + backlog.pending).toLocaleString('en')),
      right: true,
    },
    { title: 'ORDERED', show: (row) => (row.ordered ? 'yes' : 'no'), optional: true },
    { title: 'ONLY', show: filterText, optional: true },
    { title: 'LIMITS', show: limitsText, optional: true },
    { title: 'HEADERS', show: (row) => row.headers.join(', '), optional: true },
    { title: 'NOTE', show: (row) => noteOf(row, nowMs), below: 'if-narrow' },
  ]);
}

function stateText({ state, circuit, failing_since: since }: WebhookJson): string {
  if (state !== 'active') return state;
  if (circuit === 'open') return 'circuit open';
  return since === null ? state : 'failing';
}

function markOf({ state, circuit, failing_since: since }: WebhookJson): Mark {
  if (state !== 'active' || circuit === 'open') return 'bad';
  return since === null ? 'good' : 'warn';
}

/** The problem of a URL, or else how long an old secret is valid; empty if there is neither. */
function noteOf(webhook: WebhookJson, nowMs: number): string {
  const { disabled_why: why, failing_since: since, old_secrets_until: until } = webhook;
  if (why !== null) return why;
  if (since !== null) return `first failure ${agoText(since, nowMs)}`;
  const [lastEnd] = until;
  // The old secrets, and the new one.
  const validSecrets = until.length + 1;
  return lastEnd === undefined ? '' : `${validSecrets} secrets valid; the old ends ${whenText(lastEnd, nowMs)}`;
}

interface SetFlags extends ConnectionFlags, FilterFlags, LimitFlags {
  readonly json?: boolean;
  readonly url?: string;
  readonly header: readonly string[];
  readonly removeHeader: readonly string[];
  readonly ordered?: boolean;
  readonly enable?: boolean;
  readonly disable?: boolean;
}

async function set(id: number, flags: SetFlags): Promise<void> {
  const { url, header, removeHeader, ordered, enable, disable } = flags;
  if (enable && disable) throw new LockgateError('input-webhook', '--enable and --disable exclude each other');
  const state = enable ? 'active' : disable ? 'disabled' : undefined;
  const client = new GatewayClient(flags);
  const webhook = await client.post<WebhookJson>(`/webhooks/${id}`, {
    ...(url !== undefined && { url }),
    ...(header.length > 0 && { set_headers: readHeaders(header) }),
    ...(removeHeader.length > 0 && { remove_headers: removeHeader }),
    ...(ordered !== undefined && { ordered }),
    ...filterBody(flags),
    ...(await limitBody(flags)),
    ...(state !== undefined && { state }),
  });
  if (flags.json) return printJson(webhook);
  print(`Webhook URL ${webhook.id} is ${webhook.state}: ${webhook.url}`);
  if (webhook.headers.length > 0) print(`Headers: ${webhook.headers.join(', ')}`);
  print(
    webhook.ordered ? 'A lock’s later events wait while an earlier one fails.' : 'Events do not wait for earlier ones.',
  );
  if (filterText(webhook) !== '') print(`It gets only ${filterText(webhook)}.`);
  await printLimits(client, webhook);
  if (enable)
    printNote(`To send the events stored meanwhile: lockgate webhook recover --url ${webhook.id} --since TIME`);
}

async function remove(id: number, flags: Flags): Promise<void> {
  const removed = await new GatewayClient(flags).post<{ id: number; url: string }>(`/webhooks/${id}/remove`, {});
  if (flags.json) return printJson(removed);
  print(`Removed webhook URL ${removed.id}: ${removed.url}`);
}

async function rotate(id: number, flags: Flags & { grace?: number; now?: boolean }): Promise<void> {
  const { grace, now } = flags;
  if (now && grace !== undefined) throw new LockgateError('input-grace', '--grace and --now exclude each other');
  const seconds = now ? 0 : grace;
  const answer = await new GatewayClient(flags).post<WebhookJson & { secret: string }>(
    `/webhooks/${id}/rotate-secret`,
    { ...(seconds !== undefined && { grace_seconds: seconds }) },
  );
  if (flags.json) return printJson(answer);
  print(`New signing secret of webhook URL ${answer.id}: ${paint('bold', answer.secret)}`);
  const [until] = answer.old_secrets_until;
  printNote(
    until === undefined
      ? 'The old secret is no longer used.'
      : `Webhooks are also signed with the old secret until ${until}.`,
  );
  printNote('The new secret is shown only once.');
}
