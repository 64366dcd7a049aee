import type { Command } from 'commander';
import { systemClock } from '../../proto/clock.js';
import { untilInterrupted } from '../interrupt.js';
import { note, print, printJsonLine } from '../output.js';
import type { ReceivedWebhook } from '../receiver.js';
import { webhookLine } from '../webhook-line.js';
import { collect, readCount, readPort } from './webhook-flags.js';

/** `lockgate webhook listen` */
export function addListenCommand(webhook: Command): void {
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
