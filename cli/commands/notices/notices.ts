/** `lockgate notices`: lists notices for the operator and marks them as read. */
import { type Command, Option } from 'commander';
import { LockgateError } from '../../../proto/errors.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { readClocks, readSince } from '../../gateway-clocks.js';
import { paint, print, printEmptyList, printJson, printNote } from '../../terminal/output.js';
import { addPageFlags, noteNextPage, type PageFlags, queryOf } from '../../terminal/paged-list.js';
import { addClientFlags } from '../../terminal/shared-flags.js';
import { printTable } from '../../terminal/table.js';
import { addWatchFlag, repeatIfWatched } from '../../terminal/watch.js';
import { type NoticeJson, noticeColumns } from './notice-table.js';
import { addSendingCommands, type SendingJson, sendingText } from './sending.js';

type Flags = ConnectionFlags & { readonly json?: boolean; readonly all?: boolean };

interface ListFlags extends Flags, PageFlags {
  readonly kind?: string;
  readonly since?: string;
  readonly markRead?: boolean;
  /** Only whether it was given matters here. */
  readonly watch?: unknown;
}

/** A page of notices; `unread` counts all unread notices. */
interface Page {
  readonly notices: readonly NoticeJson[];
  readonly next_cursor: string | null;
  readonly unread: number;
  /** Null if notices are not sent to a URL. */
  readonly sending: SendingJson | null;
}

/**
 * Repeats gateway/store/contract/operators/notice-store.ts: help must not load that file. A test compares the two
 * lists.
 */
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
  'notify-failing',
];
const DEFAULT_LIMIT = 50;
/** Notices per request; the gateway allows no more. */
const MAX_PAGE_NOTICES = 500;

/** Adds the group to the program. */
export function addNoticeCommands(program: Command): void {
  const notices = program.command('notices').description('Show unread notices for the operator.');
  addPageFlags(addWatchFlag(addClientFlags(notices)), DEFAULT_LIMIT)
    .option('--all', 'Also list read notices, after unread notices.')
    .addOption(new Option('--kind <kind>', 'Only notices of this kind.').choices([...KINDS]))
    .option('--since <time>', 'Only notices since this time: a date, or a span such as 24h for 24 hours ago.')
    .option('--mark-read', 'Mark the listed notices as read.')
    .addHelpText(
      'after',
      '\nExample:\n  $ lockgate notices --since 24h --mark-read\n  $ lockgate notices --all --kind url-disabled --json',
    )
    .action(repeatIfWatched(list));
  addClientFlags(notices.command('read').description('Mark notices as read.'))
    .argument('[id...]', 'The ids of the notices.')
    .option('--all', 'Mark all notices.')
    .addHelpText('after', '\nExample:\n  $ lockgate notices read 12 13\n  $ lockgate notices read --all')
    .action(read);
  addSendingCommands(notices);
}

async function list(flags: ListFlags): Promise<void> {
  const { kind, limit, cursor } = flags;
  if (flags.watch !== undefined && flags.markRead)
    throw new LockgateError('input-notices', '--watch and --mark-read exclude each other');
  const client = new GatewayClient(flags);
  const since = await readSince(client, ['--since', flags.since], 'dateMs');
  const fetched = await fetchNotices(client, { kind, since }, { limit, cursor, all: flags.all === true });
  const { notices, next } = fetched;
  const unreadIds = notices.filter(({ read_at: readAt }) => readAt === null).map(({ id }) => id);
  const markedCount = flags.markRead === true ? await markAsRead(client, unreadIds) : 0;
  const unread = fetched.unread - markedCount;
  const { sending } = fetched;
  if (flags.json) return printJson({ notices, next_cursor: next, unread, sending });
  const clocks = await readClocks(client);
  if (notices.length === 0 && flags.all === true)
    printEmptyList([kind, since], 'No notices match.', 'There is no notice yet.');
  else if (notices.length === 0)
    printEmptyList(
      [kind, since],
      'No unread notices match. To see all: add --all',
      'There are no unread notices. To see all: lockgate notices --all',
    );
  else printTable(notices, noticeColumns(clocks.dateMs));
  if (markedCount > 0) printNote(`${markedCount} marked as read.`);
  noteNextPage(flags, notices.length, next);
  if (sending !== null) printNote(`Sent to ${sendingText(sending, clocks.machineMs)}`);
}

/** Which notices to fetch. */
interface NoticeRange {
  readonly limit: number;
  readonly cursor: string | undefined;
  /** Whether read notices follow the unread ones. */
  readonly all: boolean;
}

/** The notices of all fetched pages, and the cursor of the next page. */
type Fetched = Omit<Page, 'next_cursor'> & { readonly next: string | null };

/**
 * The gateway lists unread and read notices separately. With `--all` the read ones follow; this prefix marks a cursor
 * of their list.
 */
const READ_PREFIX = 'read.';

/** Requests pages until there are `limit` notices or no more pages. */
async function fetchNotices(
  client: GatewayClient,
  filter: Readonly<Record<string, string | undefined>>,
  { limit, cursor, all }: NoticeRange,
): Promise<Fetched> {
  const notices: NoticeJson[] = [];
  let position = cursor;
  for (;;) {
    const isRead = position?.startsWith(READ_PREFIX) === true;
    if (isRead && !all) throw new LockgateError('input-cursor', '--cursor is of a list with --all: add --all');
    const page = await client.get<Page>(
      `/notices?${queryOf({
        ...filter,
        unread: String(!isRead),
        limit: Math.min(limit - notices.length, MAX_PAGE_NOTICES),
        // The list of read notices starts without a cursor.
        cursor: (isRead ? position?.slice(READ_PREFIX.length) : position) || undefined,
      })}`,
    );
    notices.push(...page.notices);
    const prefix = isRead ? READ_PREFIX : '';
    const next = page.next_cursor === null ? null : `${prefix}${page.next_cursor}`;
    position = next ?? (all && !isRead ? READ_PREFIX : undefined);
    if (position !== undefined && notices.length < limit) continue;
    return { notices, next: position ?? null, unread: page.unread, sending: page.sending };
  }
}

/** Marks notices as read. Returns how many of them were unread. */
async function markAsRead(client: GatewayClient, ids: readonly number[]): Promise<number> {
  let count = 0;
  for (let from = 0; from < ids.length; from += MAX_PAGE_NOTICES)
    count += (await client.post<{ read: number }>('/notices/read', { ids: ids.slice(from, from + MAX_PAGE_NOTICES) }))
      .read;
  return count;
}

/** `lockgate notices read`. `--all` is also a flag of the parent command `notices`, which gets its value. */
async function read(ids: readonly string[], _flags: Flags, command: Command): Promise<void> {
  const flags = command.optsWithGlobals<Flags>();
  if (ids.length > 0 === (flags.all === true))
    throw new LockgateError('input-notices', 'expected ids of notices, or --all');
  const numbers = ids.map(readNoticeId);
  const client = new GatewayClient(flags);
  const count = flags.all
    ? (await client.post<{ read: number }>('/notices/read', { all: true })).read
    : await markAsRead(client, numbers);
  if (flags.json) return printJson({ read: count });
  print(`${paint('bold', String(count))} marked as read.`);
}

/** @throws LockgateError `input-notices` */
function readNoticeId(text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new LockgateError('input-notices', `${JSON.stringify(text)} is not the id of a notice: expected a number`);
}
