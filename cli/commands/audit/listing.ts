/** `lockgate audit`: prints the audit log as a table or as JSON. */
import { systemClock } from '../../../proto/clock.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { printEmptyList } from '../../terminal/output.js';
import { type PageFlags, printPages, queryOf } from '../../terminal/paged-list.js';
import type { Column } from '../../terminal/table.js';
import { agoText, readPastTime } from '../../terminal/time-text.js';

/** The flags of `lockgate audit`. */
export interface AuditFlags extends ConnectionFlags, PageFlags {
  readonly since?: string;
  readonly action?: string;
  readonly object?: string;
  readonly merchant?: string;
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

/** The gateway answers with at most this many entries. */
const PAGE_ENTRIES = 500;

/** Prints the matching entries. */
export async function listAudit(flags: AuditFlags): Promise<void> {
  const since = flags.since === undefined ? undefined : readPastTime('--since', flags.since, systemClock.now());
  const { action, object, merchant } = flags;
  const filter = { since, action, object, merchant };
  const list = { path: '/audit', query: queryOf(filter), member: 'entries', pageSize: PAGE_ENTRIES };
  const shown = flags.json ? undefined : () => columns(systemClock.now());
  const count = await printPages<EntryJson>(new GatewayClient(flags), list, flags, shown);
  if (count === 0 && !flags.json) printEmptyList(Object.values(filter), 'No entries match.', 'There is no entry yet.');
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
