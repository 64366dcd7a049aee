/** `lockgate audit`: prints the audit log as a table or as JSON. */
import { systemClock } from '../../../proto/clock.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { printEmptyList } from '../../terminal/output.js';
import { type PageFlags, printPages, queryOf } from '../../terminal/paged-list.js';
import type { Column, Mark } from '../../terminal/table.js';
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
  readonly token: string | null;
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

/** By the outcome. */
const OUTCOME_MARKS: Readonly<Record<string, Mark>> = {
  done: 'good',
  refused: 'bad',
  failed: 'bad',
  begun: 'warn',
  unknown: 'warn',
};

function columns(nowMs: number): readonly Column<EntryJson>[] {
  return [
    { title: 'ID', show: ({ id }) => String(id), neverCut: true },
    { title: 'WHEN', show: ({ at }) => agoText(at, nowMs) },
    { title: 'WHO', show: whoText },
    { title: 'ACTION', show: ({ action }) => action, neverCut: true },
    { title: 'OBJECT', show: ({ object }) => object || '–', neverCut: true },
    {
      title: 'OUTCOME',
      show: ({ outcome, code }) => (code === null ? outcome : `${outcome} (${code})`),
      mark: ({ outcome }) => OUTCOME_MARKS[outcome],
      prose: true,
    },
    { title: 'CHANGE', show: changeText, below: 'if-narrow' },
    {
      title: 'FROM',
      show: ({ address, agent }) => [address, agent].filter((each) => each !== null).join(' ') || '–',
      optional: true,
    },
  ];
}

/** The start of the hash of the data folder's token; no named token has such a name. */
const FIRST_TOKEN = /^[0-9a-f]{8}$/;

/** Who acted: `operator jo`, `token prometheus`, `user ada of Amber Bikes`, `key shop backend of Amber Bikes`. */
function whoText({ actor, os_user: osUser, token, merchant, user, key }: EntryJson): string {
  const name = user ?? key;
  if (name !== null) return `${actor} ${name} of ${merchant}`;
  const isNamed = actor === 'operator' && token !== null && !FIRST_TOKEN.test(token);
  if (isNamed) return osUser === null ? `token ${token}` : `token ${token} (${osUser})`;
  return osUser === null ? actor : `${actor} ${osUser}`;
}

/** The changed members as `name before → after`. If the state before is unknown, the requested values. */
function changeText({ before, after }: EntryJson): string {
  const names = Object.keys({ ...before, ...after });
  const parts = names.map((name) => {
    const [oldText, newText] = [textOf(before?.[name]), textOf(after?.[name])];
    if (oldText === newText) return undefined;
    const hasBefore = before?.[name] !== undefined && after?.[name] !== undefined;
    return hasBefore ? `${name} ${oldText ?? '–'} → ${newText ?? '–'}` : `${name} ${newText ?? oldText}`;
  });
  return parts.filter((part) => part !== undefined).join(', ');
}

/** A value in words; undefined if there is none. */
function textOf(value: unknown): string | undefined {
  if (value === undefined || value === null || typeof value === 'string') return value ?? undefined;
  if (Array.isArray(value)) return value.map(textOf).join(' ') || 'none';
  if (typeof value !== 'object') return JSON.stringify(value);
  const members = Object.entries(value).map(([name, member]) => `${name}=${textOf(member) ?? '–'}`);
  return members.join(' ') || 'none';
}
