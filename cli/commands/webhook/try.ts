/** `lockgate webhook test`: sends a lock's latest ping as a test webhook. */
import type { Command } from 'commander';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { EXIT_CODE } from '../../terminal/exit-codes.js';
import { printJson } from '../../terminal/output.js';
import { addClientFlags } from '../../terminal/shared-flags.js';
import { printTable } from '../../terminal/table.js';
import { readCount } from './flags.js';

interface Flags extends ConnectionFlags {
  readonly json?: boolean;
  readonly url?: number;
}

/** The result of a test webhook, as `POST /test_webhook` answers it (interfaces.md §2). */
export interface TestJson {
  /** `error` if any of the deliveries failed. */
  readonly status: 'success' | 'error';
  readonly event_id: string;
  readonly deliveries: readonly {
    readonly url_id: number;
    /** Scheme, host and port of the URL. */
    readonly origin: string;
    /** The status of the answer; null without one. */
    readonly status: number | null;
    /** Null if nothing was sent, because the gateway may not send to the URL's address. */
    readonly duration_ms: number | null;
    /** Why the URL did not accept the webhook; null if it did. */
    readonly error: string | null;
  }[];
}

/** Adds the command to the group. */
export function addTestCommand(webhook: Command): void {
  addClientFlags(webhook.command('test').description('Send a test webhook and wait for the answers.'))
    .argument('<mac>', 'The lock whose latest ping is sent to its merchant’s URLs.')
    .option('--url <id>', 'Send only to this webhook URL, even if it is disabled.', readCount)
    .addHelpText('after', '\nExample:\n  $ lockgate webhook test A4:C1:38:F0:E1:D2')
    .action(test);
}

async function test(mac: string, flags: Flags): Promise<void> {
  const answer = await new GatewayClient(flags).post<TestJson>(`/devices/${encodeURIComponent(mac)}/test-webhook`, {
    ...(flags.url !== undefined && { url_id: flags.url }),
  });
  if (answer.status !== 'success') process.exitCode = EXIT_CODE.negativeAnswer;
  if (flags.json) return printJson(answer);
  printTable(answer.deliveries, [
    { title: 'URL', show: (row) => String(row.url_id) },
    { title: 'ORIGIN', show: (row) => row.origin },
    { title: 'STATUS', show: (row) => String(row.status ?? '–') },
    { title: 'TIME', show: (row) => (row.duration_ms === null ? '–' : `${row.duration_ms} ms`) },
    {
      title: 'RESULT',
      show: (row) => row.error ?? 'received',
      mark: (row) => (row.error ? 'bad' : 'good'),
      prose: true,
    },
  ]);
}
