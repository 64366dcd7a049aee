import { type Command, InvalidArgumentError } from 'commander';
import { systemClock } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { type ConnectionFlags, GatewayClient } from '../client.js';
import { withConnection } from '../connection-flags.js';
import { untilInterrupted } from '../interrupt.js';
import { note, paint, print, printJson, printJsonLine, printTable } from '../output.js';
import type { ReceivedWebhook } from '../receiver.js';
import { webhookLine } from '../webhook-line.js';

type Flags = ConnectionFlags & { readonly json?: boolean };

interface WebhookJson {
  readonly id: number;
  readonly merchant: string;
  readonly url: string;
  readonly headers: readonly string[];
  readonly state: string;
  readonly disabled_why: string | null;
}

/** `lockgate webhook add|list|listen` */
export function addWebhookCommands(program: Command): void {
  const webhook = program.command('webhook').description('Where merchants get their pings.');
  withConnection(webhook.command('add').description('Add a webhook URL; prints its signing secret, once.'))
    .argument('<url>', 'http or https.')
    .option('--merchant <name>', 'Whose URL it is; may be left out where there is one merchant only.')
    .option('--header <name: value>', 'A custom header for every request; can be repeated.', collect, [])
    .addHelpText(
      'after',
      '\nExample:\n  $ lockgate webhook add https://hooks.example.com/locks --header "X-Team: bikes"',
    )
    .action(add);
  withConnection(webhook.command('list').description('List the webhook URLs.'))
    .addHelpText('after', '\nExample:\n  $ lockgate webhook list')
    .action(list);
  webhook
    .command('listen')
    .description('Receive webhooks on this machine: verifies each, shows it, answers.')
    .option('--port <port>', 'The port to listen on, on loopback; 0 lets the system choose.', readPort, 9000)
    .option(
      '--secret <whsec>',
      'A signing secret to verify with; can be repeated [LOCKGATE_WEBHOOK_SECRET].',
      collect,
      [],
    )
    .option('--expect <n>', 'End after so many verified webhooks with exit code 0.', readCount)
    .option('--json', 'Print each body as it came, a JSON line each.')
    .addHelpText('after', '\nExample:\n  $ lockgate webhook listen --port 9000 --secret whsec_…')
    .action(listen);
}

function collect(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}

function readPort(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65535) return Number(text);
  throw new InvalidArgumentError('Expected a port, 0 to 65535.');
}

function readCount(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('Expected a number from 1 on.');
}

async function add(url: string, flags: Flags & { merchant?: string; header: readonly string[] }): Promise<void> {
  const { merchant } = flags;
  const headers = Object.fromEntries(flags.header.map(readHeader));
  const webhook = await new GatewayClient(flags).post<WebhookJson & { secret: string }>('/webhooks', {
    url,
    headers,
    ...(merchant !== undefined && { merchant }),
  });
  if (flags.json) return printJson(webhook);
  print(`Added webhook URL ${webhook.id} of ${webhook.merchant}: ${webhook.url}`);
  print(`Signing secret: ${paint('bold', webhook.secret)}`);
  note('It is shown this once. The receiver verifies with it, as Standard Webhooks says.');
}

function readHeader(text: string): [string, string] {
  const colon = text.indexOf(':');
  if (colon < 1)
    throw new LockgateError('input-header', `${JSON.stringify(text)} is no header: expected "Name: value"`);
  return [text.slice(0, colon).trim(), text.slice(colon + 1).trim()];
}

async function list(flags: Flags): Promise<void> {
  const { webhooks } = await new GatewayClient(flags).get<{ webhooks: WebhookJson[] }>('/webhooks');
  if (flags.json) return printJson({ webhooks });
  if (webhooks.length === 0) return note('There is no webhook URL yet. Add one: lockgate webhook add URL');
  printTable(webhooks, [
    { title: 'ID', show: (row) => String(row.id) },
    { title: 'MERCHANT', show: (row) => row.merchant },
    { title: 'URL', show: (row) => row.url },
    { title: 'STATE', show: (row) => row.state },
    { title: 'WHY', show: (row) => row.disabled_why ?? '' },
  ]);
}

interface ListenFlags {
  readonly port: number;
  readonly secret: readonly string[];
  readonly expect?: number;
  readonly json?: boolean;
}

async function listen(flags: ListenFlags): Promise<void> {
  const { startReceiver } = await import('../receiver.js');
  const interrupted = untilInterrupted();
  const fromEnvironment = process.env.LOCKGATE_WEBHOOK_SECRET;
  const secrets = flags.secret.length > 0 || !fromEnvironment ? flags.secret : [fromEnvironment];
  let enough: () => void = () => undefined;
  const gotEnough = new Promise<void>((resolve) => {
    enough = resolve;
  });
  const ids = new Set<string>();
  const receiver = await startReceiver({
    host: '127.0.0.1',
    port: flags.port,
    secrets,
    clock: systemClock,
    onWebhook: (webhook) => {
      show(webhook, flags);
      if (flags.expect === undefined || webhook.verified === false) return;
      ids.add(webhook.id);
      if (ids.size >= flags.expect) enough();
    },
  });
  note(`Listening on http://127.0.0.1:${receiver.port}/`);
  if (secrets.length === 0) note('No --secret: nothing is verified.');
  await Promise.race([interrupted.happened, gotEnough]);
  await receiver.close();
  process.exitCode = interrupted.signal.aborted ? (flags.expect === undefined ? 0 : 1) : 0;
}

function show(webhook: ReceivedWebhook, flags: ListenFlags): void {
  if (flags.json) printJsonLine({ verified: webhook.verified ?? null, headers: webhook.headers, body: webhook.body });
  else print(webhookLine(webhook, process.stdout.isTTY ? process.stdout.columns : undefined));
}
