/** `lockgate webhook show`: one URL with its settings, backlog, success rate, last error and next attempt. */
import type { Command } from 'commander';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { type GatewayClocks, readClocks } from '../../gateway-clocks.js';
import { printLabelled } from '../../terminal/labelled-lines.js';
import { printJson, sanitizeLine } from '../../terminal/output.js';
import { addClientFlags } from '../../terminal/shared-flags.js';
import { agoText, secondsAgoText, whenText } from '../../terminal/time-text.js';
import { filterText } from './filter-flags.js';
import { readCount } from './flags.js';
import { type LimitsJson, limitLines } from './limit-flags.js';

/** The URL, as the operator interface returns it. */
interface ShownWebhookJson extends LimitsJson {
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
  /** `open` after many failures in a row: then nothing is sent until `held_until`. */
  readonly circuit: string;
  readonly held_until: string | null;
  readonly failing_since: string | null;
  /**
   * Undelivered events: `behind` were never tried, `pending` wait for a retry, all attempts for the `dead` have failed,
   * and the stored pings of the `damaged` are corrupt. Null if they can't be counted now.
   */
  readonly backlog: {
    readonly behind: number;
    readonly pending: number;
    readonly dead: number;
    readonly damaged: number;
    /** How long ago the oldest of `behind` and `pending` was received. */
    readonly oldest_seconds: number | null;
  } | null;
  readonly next_attempt_at: string | null;
  /** The attempts of the last 24 hours. */
  readonly last_day: {
    readonly attempts: number;
    /** From 0 to 1; null without attempts. */
    readonly success_rate: number | null;
    /** 95 % of the attempts took at most this time. */
    readonly p95_ms: number | null;
    readonly last_success_at: string | null;
    readonly last_error: { readonly at: string; readonly status: number | null; readonly error: string | null } | null;
  };
}

const LABEL_WIDTH = 14;

/** Adds the command to the group. */
export function addShowCommand(webhook: Command): void {
  addClientFlags(
    webhook
      .command('show')
      .description('Show a webhook URL: settings, backlog, success rate, last error, next attempt.'),
  )
    .argument('<id>', 'The id of the URL; "webhook list" prints it.', readCount)
    .addHelpText('after', '\nExample:\n  $ lockgate webhook show 1')
    .action(show);
}

async function show(id: number, flags: ConnectionFlags & { readonly json?: boolean }): Promise<void> {
  const client = new GatewayClient(flags);
  const webhook = await client.get<ShownWebhookJson>(`/webhooks/${id}`);
  if (flags.json) return printJson(webhook);
  const clocks = await readClocks(client);
  for (const [label, text] of linesOf(webhook, clocks)) printLabelled(label, sanitizeLine(text), LABEL_WIDTH);
}

/** Attempts are made by the machine's clock; pings are received by the run's. */
function linesOf(webhook: ShownWebhookJson, clocks: GatewayClocks): [label: string, text: string][] {
  const { runMs, machineMs: nowMs } = clocks;
  const { held_until: heldUntil, failing_since: since, next_attempt_at: next } = webhook;
  const state = webhook.disabled_why === null ? webhook.state : `${webhook.state}: ${webhook.disabled_why}`;
  return [
    ['URL', `${webhook.id}, ${webhook.url}`],
    ['Merchant', webhook.merchant],
    ['State', since === null ? state : `${state}, failing since ${agoText(since, nowMs)}`],
    ['Circuit', heldUntil === null ? webhook.circuit : `${webhook.circuit}, held until ${whenText(heldUntil, nowMs)}`],
    ['Gets', filterText(webhook) || 'all pings'],
    ['Ordered', webhook.ordered ? 'yes' : 'no'],
    ...limitLines(webhook, nowMs),
    ['Headers', webhook.headers.join(', ') || 'none'],
    ['Backlog', backlogText(webhook, runMs)],
    ['Last 24 hours', dayText(webhook)],
    ['Last error', errorText(webhook, nowMs)],
    ['Next attempt', next === null ? 'none is planned' : whenText(next, nowMs)],
  ];
}

function backlogText({ backlog }: ShownWebhookJson, runMs: number): string {
  if (backlog === null) return 'can’t be counted now';
  const { behind, pending, dead, damaged, oldest_seconds: oldest } = backlog;
  const age = oldest === null ? '' : `, the oldest received ${secondsAgoText(oldest, runMs)}`;
  const [all, retried, deadCount] = [behind + pending, pending, dead].map((count) => count.toLocaleString('en'));
  return `${all} undelivered (${retried} wait for a retry)${age}; ${deadCount} dead, ${damaged} damaged`;
}

function dayText({ last_day: { attempts, success_rate: rate, p95_ms: p95 } }: ShownWebhookJson): string {
  if (attempts === 0 || rate === null) return 'no attempts';
  const count = `${attempts.toLocaleString('en')} ${attempts === 1 ? 'attempt' : 'attempts'}`;
  return `${count}, ${(rate * 100).toFixed(1)} % successful, 95 % within ${Math.round(p95 ?? 0)} ms`;
}

function errorText({ last_day: { last_error: error } }: ShownWebhookJson, nowMs: number): string {
  return error === null ? 'none in the last 24 hours' : `${error.error}, ${agoText(error.at, nowMs)}`;
}
