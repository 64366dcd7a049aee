/** `lockgate audit`: prints the audit log as a table or as JSON. */
import { systemClock } from '../../../proto/clock.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { printEmptyList, printJson } from '../../terminal/output.js';
import { type Column, printTable } from '../../terminal/table.js';
import { agoText, readPastTime } from '../../terminal/time-text.js';

/** The flags of `lockgate audit`. */
export interface AuditFlags extends ConnectionFlags {
  readonly since?: string;
  readonly action?: string;
  readonly object?: string;
  readonly merchant?: string;
  readonly limit: number;
  readonly json?: boolean;
}

/** Members of the changed object, by name. */
type Members = Readonly<Record<string, unknown>>;

/** An entry of the audit log, as the operator interface returns it. */
interface EntryJson {
  readonly id: number;
  readonly at: string;
  readonly actor: string;
  readonly address: string | null;
  readonly agent: string | null;
  readonly os_user: string | null;
  readonly merchant: string | null;
  readonly user: string | null;
  readonly key: string | null;
  readonly action: string;
  readonly object: string;
  readonly before: Members | null;
  readonly after: Members | null;
  readonly outcome: string;
  readonly code: string | null;
}

/** A page of entries; `next` is the cursor of the next page. */
interface Page {
  readonly entries: readonly EntryJson[];
  readonly next: string | null;
}

/** Entries per request; the gateway allows no more. */
const MAX_PAGE_ENTRIES = 500;

/** Prints the matching entries. */
export async function listAudit(flags: AuditFlags): Promise<void> {
  const since = flags.since === undefined ? undefined : readPastTime('--since', flags.since, systemClock.now());
  const { action, object, merchant } = flags;
  const filter = { since, action, object, merchant };
  const entries = await fetchEntries(new GatewayClient(flags), filter, flags.limit);
  if (flags.json === true) return printJson({ entries });
  if (entries.length === 0) printEmptyList(Object.values(filter), 'No entries match.', 'There is no entry yet.');
  else printTable(entries, columns(systemClock.now()));
}

/** Requests pages until there are `limit` entries or no more pages. */
async function fetchEntries(
  client: GatewayClient,
  filter: Readonly<Record<string, string | undefined>>,
  limit: number,
): Promise<EntryJson[]> {
  const entries: EntryJson[] = [];
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filter)) if (value !== undefined) query.set(name, value);
  for (;;) {
    query.set('limit', String(Math.min(limit - entries.length, MAX_PAGE_ENTRIES)));
    const page = await client.get<Page>(`/audit?${query}`);
    entries.push(...page.entries);
    if (page.next === null || entries.length >= limit) return entries;
    query.set('cursor', page.next);
  }
}

function columns(nowMs: number): readonly Column<EntryJson>[] {
  return [
    { title: 'ID', show: ({ id }) => String(id) },
    { title: 'WHEN', show: ({ at }) => agoText(at, nowMs) },
    { title: 'WHO', show: whoText },
    { title: 'ACTION', show: ({ action }) => action },
    { title: 'OBJECT', show: ({ object }) => object || '–' },
    { title: 'OUTCOME', show: ({ outcome, code }) => (code === null ? outcome : `${outcome} (${code})`) },
    { title: 'CHANGE', show: changeText, optional: true },
    {
      title: 'FROM',
      show: ({ address, agent }) => [address, agent].filter((each) => each !== null).join(' ') || '–',
      optional: true,
    },
  ];
}

/** Who acted: `operator jo`, `user ada of Amber Bikes`, `key shop backend of Amber Bikes`. */
function whoText({ actor, os_user: osUser, merchant, user, key }: EntryJson): string {
  const name = user ?? key;
  if (name !== null) return `${actor} ${name} of ${merchant}`;
  return osUser === null ? actor : `${actor} ${osUser}`;
}

/** The changed members as `name before → after`. If the state before is unknown, the requested values. */
function changeText({ before, after }: EntryJson): string {
  const names = Object.keys({ ...before, ...after });
  const parts = names.map((name) => {
    const [oldText, newText] = [textOf(before?.[name]), textOf(after?.[name])];
    if (oldText === undefined || newText === undefined) return `${name} ${newText ?? oldText}`;
    return oldText === newText ? undefined : `${name} ${oldText} → ${newText}`;
  });
  return parts.filter((part) => part !== undefined).join(', ') || '–';
}

function textOf(value: unknown): string | undefined {
  if (value === undefined || typeof value === 'string') return value;
  return JSON.stringify(value);
}
