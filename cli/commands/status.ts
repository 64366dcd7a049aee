/** `lockgate status`: whether the gateway is well, and what is in trouble, on one screen. */
import type { Command } from 'commander';
import { Seconds } from '../../proto/clock.js';
import { type ConnectionFlags, GatewayClient } from '../client.js';
import { type GatewayClocks, readClocks } from '../gateway-clocks.js';
import { EXIT_CODE } from '../terminal/exit-codes.js';
import { printLabelled } from '../terminal/labelled-lines.js';
import { paint, print, printJson, sanitizeLine } from '../terminal/output.js';
import { addClientFlags } from '../terminal/shared-flags.js';
import { printTable } from '../terminal/table.js';
import { agoText, secondsAgoText } from '../terminal/time-text.js';
import { addWatchFlag, repeatIfWatched } from '../terminal/watch.js';
import { type SendingJson, sendingText } from './notices/sending.js';
import { byteText } from './usage/text.js';

type Flags = ConnectionFlags & { readonly json?: boolean };

/** The members of the gateway's status that are shown here. */
interface StatusJson {
  readonly version: string;
  readonly started_at: string;
  readonly status: string;
  readonly reasons: readonly { readonly code: string; readonly since: string; readonly why: string }[];
  readonly pings_per_second: number;
  readonly notices_unread: number;
  readonly notices_sending: SendingJson | null;
  readonly mqtt: { readonly connected: number };
  /** The files and sockets that the gateway has open, and may have open; null if the machine does not say. */
  readonly descriptors: { readonly open: number | null; readonly limit: number | null };
  readonly locks: { readonly in_service: number | null; readonly presence: Readonly<Record<string, number>> };
  readonly urls: readonly UrlStatusJson[] | null;
  /** How many seconds of the run's clock pass in a second: 1, or more in a demonstration. */
  readonly run_speed: number;
  readonly disk: { readonly store_bytes: number; readonly free_bytes: number | null } | null;
}

/**
 * The state of a webhook URL. The circuit is `open` after many failures in a row: then nothing is sent for a while. Of
 * the backlog, `behind` events were never tried, `pending` ones wait for a retry, `dead` ones are given up.
 */
interface UrlStatusJson {
  readonly id: number;
  readonly state: string;
  readonly circuit: string;
  readonly backlog: {
    readonly behind: number;
    readonly pending: number;
    readonly dead: number;
    readonly damaged: number;
    readonly oldest_seconds: number | null;
  };
}

/** The members of a webhook URL in the list of URLs that are shown here. */
interface UrlJson {
  readonly id: number;
  readonly merchant: string;
  readonly url: string;
}

/** A URL whose oldest undelivered event is older than this, in real time, is in trouble. */
const TROUBLE_AGE = Seconds(60);
const LABEL_WIDTH = 9;
/** The width of the sign before a reason. */
const MARK_WIDTH = 4;

/** Adds the command to the program. */
export function addStatusCommand(program: Command): void {
  addWatchFlag(
    addClientFlags(program.command('status').description('Show whether the gateway is well, on one screen.')),
  )
    .addHelpText('after', '\nExit codes: 0 ready, 1 not ready, 3 the gateway can’t be reached.')
    .addHelpText('after', '\nExample:\n  $ lockgate status\n  $ lockgate status --watch')
    .action(repeatIfWatched(showStatus));
}

async function showStatus(flags: Flags): Promise<void> {
  const client = new GatewayClient(flags);
  const status = await client.get<StatusJson>('/status');
  if (status.status !== 'ready') process.exitCode = EXIT_CODE.negativeAnswer;
  if (flags.json) return printJson(status);
  const clocks = await readClocks(client);
  const { machineMs: nowMs } = clocks;
  print(`${readinessText(status)}  lockgate ${status.version}, started ${agoText(status.started_at, nowMs)}`);
  for (const { code, since, why } of status.reasons)
    printLabelled(
      `  ${paint('red', '✗')} `,
      `${code}, since ${agoText(since, nowMs)}: ${sanitizeLine(why)}`,
      MARK_WIDTH,
    );
  printLine('Locks', locksText(status));
  printLine('Pings', `${status.pings_per_second.toFixed(1)}/s in the last minute`);
  if (status.disk !== null) {
    const { store_bytes: storeBytes, free_bytes: freeBytes } = status.disk;
    const free = freeBytes === null ? '' : `, ${byteText(freeBytes)} free`;
    printLine('Disk', `${byteText(storeBytes)} used by the store${free}`);
  }
  const { open, limit } = status.descriptors;
  if (open !== null) printLine('Files', `${open}${limit === null ? '' : ` of ${limit.toLocaleString('en')}`} open`);
  const unread = status.notices_unread;
  printLine('Notices', unread === 0 ? 'none unread' : paint('yellow', `! ${unread} unread: lockgate notices`));
  if (status.notices_sending !== null) printLine('Sent to', sendingText(status.notices_sending, nowMs));
  await printUrls(client, status, clocks);
}

function readinessText({ status }: StatusJson): string {
  return status === 'ready' ? paint('green', '✓ ready') : paint('red', `✗ ${status}`);
}

function printLine(label: string, text: string): void {
  printLabelled(label, text, LABEL_WIDTH);
}

function locksText({ locks, mqtt }: StatusJson): string {
  const seen = Object.entries(locks.presence);
  const neverSeen = (locks.in_service ?? 0) - seen.reduce((sum, [, count]) => sum + count, 0);
  const parts = seen.map(([presence, count]) => {
    const text = `${count.toLocaleString('en')} ${presence}`;
    return presence === 'late' ? paint('red', `! ${text}`) : text;
  });
  if (neverSeen > 0) parts.push(`${neverSeen.toLocaleString('en')} never seen`);
  const inService = `${(locks.in_service ?? 0).toLocaleString('en')} in service`;
  const presences = parts.length === 0 ? '' : `: ${parts.join(', ')}`;
  return `${inService}${presences}; ${mqtt.connected.toLocaleString('en')} connected`;
}

/** Prints the URLs in trouble, or that there is none. */
async function printUrls(client: GatewayClient, status: StatusJson, { runMs }: GatewayClocks): Promise<void> {
  const { urls } = status;
  if (urls === null) return printLine('URLs', 'their backlogs can’t be read now');
  if (urls.length === 0) return printLine('URLs', 'none');
  const suspects = urls.filter((url) => isInTrouble(url, status.run_speed));
  const urlsById = suspects.length === 0 ? new Map<number, UrlJson>() : await urlsOfOpenMerchants(client);
  const troubled = suspects.filter(({ id }) => urlsById.has(id));
  if (troubled.length === 0)
    return printLine('URLs', `${paint('green', '✓')} ${urls.length - suspects.length} in order`);
  printLine('URLs', paint('red', `✗ ${troubled.length} of ${urls.length} in trouble:`));
  printTable(troubled, [
    { title: 'URL', show: ({ id }) => String(id) },
    { title: 'STATE', show: stateText, mark: () => 'bad' },
    {
      title: 'UNDELIVERED',
      show: ({ backlog }) => (backlog.behind + backlog.pending).toLocaleString('en'),
      right: true,
    },
    { title: 'OLDEST', show: ({ backlog }) => ageText(backlog.oldest_seconds, runMs), right: true },
    { title: 'DEAD', show: ({ backlog }) => backlog.dead.toLocaleString('en'), right: true },
    { title: 'MERCHANT', show: ({ id }) => urlsById.get(id)?.merchant ?? '' },
    { title: 'ORIGIN', show: ({ id }) => originText(urlsById.get(id)), optional: true },
  ]);
}

/** The URLs by id, without those of closed merchants: these are disabled on purpose. */
async function urlsOfOpenMerchants(client: GatewayClient): Promise<Map<number, UrlJson>> {
  const { merchants } = await client.get<{ merchants: readonly { readonly name: string }[] }>('/merchants');
  const openMerchants = new Set(merchants.map(({ name }) => name));
  const { webhooks } = await client.get<{ webhooks: readonly UrlJson[] }>('/webhooks');
  return new Map(webhooks.filter(({ merchant }) => openMerchants.has(merchant)).map((url) => [url.id, url]));
}

function originText(url: UrlJson | undefined): string {
  return url === undefined ? '' : new URL(url.url).origin;
}

/** @param runSpeed the speed of the run's clock, which `oldest_seconds` is by */
function isInTrouble({ state, circuit, backlog }: UrlStatusJson, runSpeed: number): boolean {
  const isOld = Seconds(backlog.oldest_seconds ?? 0) / runSpeed > TROUBLE_AGE;
  return state !== 'active' || circuit === 'open' || isOld || backlog.dead + backlog.damaged > 0;
}

function stateText({ state, circuit, backlog }: UrlStatusJson): string {
  if (state !== 'active') return state;
  if (circuit === 'open') return 'circuit open';
  if (backlog.damaged > 0) return 'damaged events';
  return backlog.dead > 0 ? 'dead events' : 'behind';
}

function ageText(seconds: number | null, runMs: number): string {
  return seconds === null ? '–' : secondsAgoText(seconds, runMs);
}
