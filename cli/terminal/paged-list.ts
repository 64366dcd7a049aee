/**
 * Lists that the gateway answers page by page: the flags `--limit` and `--cursor`, and their output. While a page is
 * printed, only the next one is fetched, so that a list of any length needs the memory of a few pages; with `--watch`,
 * which prints a list only when it is complete, that of the list.
 */
import { type Command, InvalidArgumentError } from 'commander';
import { type GatewayClocks, readClocks } from '../gateway-clocks.js';
import { isCapturing, print, printJson, printNote, terminalWidth, untilStdoutDrained } from './output.js';
import { type Column, tableLines } from './table.js';

const MAX_LIMIT = 1_000_000;

/** What fetches pages: the client of the operators' interface. */
interface PageSource {
  get<T>(requestPath: string): Promise<T>;
}

/** The flags that {@link addPageFlags} adds. */
export interface PageFlags {
  readonly limit: number;
  readonly cursor?: string;
}

/** A list of the operators' interface. */
export interface PagedList {
  /** The URL path, and the query without `limit` and `cursor`. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** The member of the answer that has the items, such as `devices`. */
  readonly member: string;
  /** The gateway answers with at most this many items. */
  readonly pageSize: number;
}

/** A page of the list. */
interface Page<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}

/** Adds `--limit` and `--cursor`. */
export function addPageFlags(command: Command, defaultLimit: number): Command {
  return command
    .option('--limit <n>', 'Maximum number to list.', readLimit, defaultLimit)
    .option('--cursor <cursor>', 'List what comes after an earlier page; that page says its cursor.');
}

function readLimit(text: string): number {
  const limit = Number(text);
  if (/^\d{1,7}$/.test(text) && limit >= 1 && limit <= MAX_LIMIT) return limit;
  throw new InvalidArgumentError(`Expected a whole number from 1 to ${MAX_LIMIT.toLocaleString('en')}.`);
}

/** The columns for items, whose ages are relative to the gateway's clocks. */
type ColumnsFor<Item> = (items: readonly Item[], clocks: GatewayClocks) => readonly Column<Item>[];

/** The query with the given members; undefined ones are left out, and each value of a list is a member of its own. */
export function queryOf(
  members: Readonly<Record<string, string | number | readonly string[] | undefined>>,
): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(members)) {
    if (value === undefined) continue;
    for (const each of Array.isArray(value) ? value : [value]) query.append(name, String(each));
  }
  return query;
}

/**
 * Prints a list as JSON or as tables, one a page, with a note on how to get the next page.
 *
 * @param columnsFor the columns for these items; undefined prints JSON
 * @returns how many items there were
 */
export async function printPages<Item>(
  client: PageSource,
  list: PagedList,
  flags: PageFlags,
  columnsFor: ColumnsFor<Item> | undefined,
): Promise<number> {
  const pages = readPages<Item>(client, list, flags);
  if (columnsFor === undefined) return await printAsJson(pages, list.member);
  let count = 0;
  let cursor: string | null = null;
  let unprinted: Item[] = [];
  for await (const { items, next } of pages) {
    unprinted.push(...items);
    count += items.length;
    cursor = next;
    // Pages that are not full, as a search may return, are joined into one table.
    if (unprinted.length < list.pageSize) continue;
    await printItems(client, unprinted, columnsFor);
    unprinted = [];
  }
  await printItems(client, unprinted, columnsFor);
  noteNextPage(flags, count, cursor);
  return count;
}

async function printItems<Item>(
  client: PageSource,
  items: readonly Item[],
  columnsFor: ColumnsFor<Item>,
): Promise<void> {
  if (items.length === 0) return;
  const columns = columnsFor(items, await readClocks(client));
  print(tableLines(items, columns, terminalWidth()).join('\n'));
  await untilStdoutDrained();
}

/** Says that there is a further page, and how to get it; says nothing after the last page, or without items. */
export function noteNextPage({ cursor: start }: PageFlags, count: number, cursor: string | null): void {
  const which = start === undefined ? 'first' : 'next';
  if (cursor !== null && count > 0)
    printNote(`These are the ${which} ${count}. More: a higher --limit, or --cursor ${cursor}`);
}

/** The pages up to the limit. The next page is fetched while the caller prints the one before. */
async function* readPages<Item>(
  client: PageSource,
  { path, query, member, pageSize }: PagedList,
  { limit, cursor: start }: PageFlags,
): AsyncGenerator<Page<Item>> {
  const fetchPage = async (cursor: string | null, remaining: number): Promise<Page<Item>> => {
    const pageQuery = new URLSearchParams(query);
    pageQuery.set('limit', String(Math.min(remaining, pageSize)));
    if (cursor !== null) pageQuery.set('cursor', cursor);
    const answer = await client.get<Record<string, unknown>>(`${path}?${pageQuery}`);
    return { items: answer[member] as readonly Item[], next: answer.next_cursor as string | null };
  };
  let remaining = limit;
  let nextPage: Promise<Page<Item>> | undefined = fetchPage(start ?? null, remaining);
  while (nextPage !== undefined) {
    const page: Page<Item> = await nextPage;
    remaining -= page.items.length;
    const isLast = page.next === null || remaining <= 0;
    nextPage = isLast ? undefined : fetchPage(page.next, remaining);
    // A failure is thrown when the page is awaited.
    nextPage?.catch(() => undefined);
    yield page;
  }
}

/** Prints one JSON document; a long list is printed while it is read. Returns the number of items. */
async function printAsJson<Item>(pages: AsyncGenerator<Page<Item>>, member: string): Promise<number> {
  const first: Page<Item> = (await pages.next()).value ?? { items: [], next: null };
  const second = (await pages.next()).value as Page<Item> | undefined;
  if (second === undefined) {
    printJson({ [member]: first.items, next_cursor: first.next });
    return first.items.length;
  }
  return isCapturing()
    ? await collectAsJson(pages, [first, second], member)
    : await streamAsJson(pages, [first, second], member);
}

/** Prints the document when all pages are read: `--watch`, which captures output, takes only complete documents. */
async function collectAsJson<Item>(
  pages: AsyncGenerator<Page<Item>>,
  read: readonly Page<Item>[],
  member: string,
): Promise<number> {
  const items = read.flatMap((page) => page.items);
  let cursor = read.at(-1)?.next ?? null;
  for await (const page of pages) {
    items.push(...page.items);
    cursor = page.next;
  }
  printJson({ [member]: items, next_cursor: cursor });
  return items.length;
}

async function streamAsJson<Item>(
  pages: AsyncGenerator<Page<Item>>,
  read: readonly Page<Item>[],
  member: string,
): Promise<number> {
  let count = 0;
  let cursor: string | null = null;
  const printPage = async ({ items, next }: Page<Item>): Promise<void> => {
    const texts = items.map((item) => JSON.stringify(item));
    if (texts.length > 0) print((count === 0 ? '' : ',') + texts.join(',\n'));
    count += texts.length;
    cursor = next;
    await untilStdoutDrained();
  };
  print(`{${JSON.stringify(member)}:[`);
  for (const page of read) await printPage(page);
  for await (const page of pages) await printPage(page);
  print(`],"next_cursor":${JSON.stringify(cursor)}}`);
  return count;
}
