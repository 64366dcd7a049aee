import { type Command, Option } from 'commander';
import { systemClock } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { note, paint, print, printJson } from '../../terminal/output.js';
import { withConnection } from '../../terminal/shared-flags.js';
import { printTable } from '../../terminal/table.js';
import { readPast } from '../../terminal/time-text.js';
import { watched, withWatch } from '../../terminal/watch.js';
import { readCount } from '../webhook/flags.js';
import { type NoticeJson, noticeColumns } from './notice-table.js';

type Flags = ConnectionFlags & { readonly json?: boolean; readonly all?: boolean };

interface ListFlags extends Flags {
  readonly kind?: string;
  readonly since?: string;
  readonly limit: number;
  readonly markRead?: boolean;
  readonly watch?: unknown;
}

interface Page {
  readonly notices: readonly NoticeJson[];
  readonly next: string | null;
  readonly unread: number;
}

/** As gateway/store/contract/notice-store.ts has them, which this file does without; a test holds the two together. */
const KINDS = [
  'url-disabled',
  'circuit-open',
  'url-behind',
  'cannot-send',
  'cannot-record',
  'statement',
  'degraded',
  'descriptors',
  'lock-late',
  'boot-back',
  'event-damaged',
  'lock-over-budget',
  'clock-leapt',
  'lock-unjudged',
  'store-damaged',
];
const DEFAULT_LIMIT = 50;
/** What the gateway gives in one answer, and takes in one call, at the most. */
const PAGE = 500;

/** `lockgate notices`, `lockgate notices read` */
export function addNoticeCommands(program: Command): void {
  const notices = program.command('notices').description('Show what an operator should know and has not read yet.');
  withWatch(withConnection(notices))
    .option('--all', 'Those that were read too, behind the unread ones.')
    .addOption(new Option('--kind <kind>', 'Of this kind only.').choices([...KINDS]))
    .option('--since <time>', 'That happened since then: a span such as 24h, or a date.')
    .option('--limit <n>', 'At most so many.', readCount, DEFAULT_LIMIT)
    .option('--mark-read', 'Mark those that are shown as read.')
    .addHelpText(
      'after',
      '\nExample:\n  $ lockgate notices --since 24h --mark-read\n  $ lockgate notices --all --kind url-disabled --json',
    )
    .action(watched(list));
  withConnection(notices.command('read').description('Mark notices as read.'))
    .argument('[id...]', 'Which, by their ids.')
    .option('--all', 'All of them.')
    .addHelpText('after', '\nExample:\n  $ lockgate notices read 12 13\n  $ lockgate notices read --all')
    .action(read);
}

async function list(flags: ListFlags): Promise<void> {
  const { kind, limit } = flags;
  if (flags.watch !== undefined && flags.markRead)
    throw new LockgateError('input-notices', '--watch only looks, and --mark-read changes: expected one of them');
  const since = flags.since === undefined ? undefined : readPast('--since', flags.since, systemClock.now());
  const client = new GatewayClient(flags);
  const fetched = await fetchNotices(client, { unread: 'true', kind, since }, limit);
  const notices = [...fetched.notices];
  if (flags.all === true) {
    const room = limit - notices.length;
    if (room > 0) notices.push(...(await fetchNotices(client, { unread: 'false', kind, since }, room)).notices);
  }
  const shown = notices.filter(({ read_at: readAt }) => readAt === null).map(({ id }) => id);
  const marked = flags.markRead === true ? await mark(client, shown) : 0;
  const unread = fetched.unread - marked;
  if (flags.json) return printJson({ notices, unread });
  if (notices.length === 0 && flags.all === true) note('There is no such notice.');
  else if (notices.length === 0) note('There is nothing new. Those that were read: lockgate notices --all');
  else printTable(notices, noticeColumns(systemClock.now()));
  if (marked > 0) note(`${marked} marked as read.`);
  else if (unread > shown.length) note(`${unread} are unread in all; --limit shows more.`);
}

/** Follows the pages until there are `limit`. */
async function fetchNotices(
  client: GatewayClient,
  filter: Readonly<Record<string, string | undefined>>,
  limit: number,
): Promise<{ readonly notices: readonly NoticeJson[]; readonly unread: number }> {
  const notices: NoticeJson[] = [];
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filter)) if (value !== undefined) query.set(name, value);
  for (;;) {
    query.set('limit', String(Math.min(limit - notices.length, PAGE)));
    const page = await client.get<Page>(`/notices?${query}`);
    notices.push(...page.notices);
    if (page.next === null || notices.length >= limit) return { notices, unread: page.unread };
    query.set('cursor', page.next);
  }
}

/** Answers how many were unread. */
async function mark(client: GatewayClient, ids: readonly number[]): Promise<number> {
  let count = 0;
  for (let from = 0; from < ids.length; from += PAGE)
    count += (await client.post<{ read: number }>('/notices/read', { ids: ids.slice(from, from + PAGE) })).read;
  return count;
}

/** Of a flag that `notices` has too, commander keeps the value there. */
async function read(ids: readonly string[], _flags: Flags, command: Command): Promise<void> {
  const flags = command.optsWithGlobals<Flags>();
  if (ids.length > 0 === (flags.all === true))
    throw new LockgateError('input-notices', 'which notices? name their ids, or say --all');
  const numbers = ids.map(readNoticeId);
  const client = new GatewayClient(flags);
  const count = flags.all
    ? (await client.post<{ read: number }>('/notices/read', { all: true })).read
    : await mark(client, numbers);
  if (flags.json) return printJson({ read: count });
  print(`${paint('bold', String(count))} marked as read.`);
}

/** @throws LockgateError `input-notices` */
function readNoticeId(text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new LockgateError('input-notices', `${JSON.stringify(text)} is no id of a notice: expected a number`);
}
