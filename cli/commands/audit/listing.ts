/** `lockgate audit`: prints the audit log as a table or as JSON. */
import { type AuditEntryJson, changeText, whoText } from '../../../gateway/console/wording/audit-text.js';
import { type ConnectionFlags, GatewayClient } from '../../client.js';
import { type GatewayClocks, readSince } from '../../gateway-clocks.js';
import { printEmptyList } from '../../terminal/output.js';
import { type PageFlags, printPages, queryOf } from '../../terminal/paged-list.js';
import type { Column, Mark } from '../../terminal/table.js';
import { agoText } from '../../terminal/time-text.js';

/** The flags of `lockgate audit`. */
export interface AuditFlags extends ConnectionFlags, PageFlags {
  readonly since?: string;
  readonly action?: string;
  readonly object?: string;
  readonly merchant?: string;
  readonly json?: boolean;
}

/** The gateway answers with at most this many entries. */
const PAGE_ENTRIES = 500;

/** Prints the matching entries. */
export async function listAudit(flags: AuditFlags): Promise<void> {
  const client = new GatewayClient(flags);
  // `dateMs`: the gateway's real date, which the log has. In a sped-up run the clock of the locks (`runMs`) is faster.
  const since = await readSince(client, ['--since', flags.since], 'dateMs');
  const { action, object, merchant } = flags;
  const filter = { since, action, object, merchant };
  const list = { path: '/audit', query: queryOf(filter), member: 'entries', pageSize: PAGE_ENTRIES };
  const count = await printPages<AuditEntryJson>(client, list, flags, flags.json ? undefined : columns);
  if (count === 0 && !flags.json) printEmptyList(Object.values(filter), 'No entries match.', 'There is no entry yet.');
}

/** The mark of each outcome. */
const OUTCOME_MARKS: Readonly<Record<string, Mark>> = {
  done: 'good',
  refused: 'bad',
  failed: 'bad',
  begun: 'warn',
  unknown: 'warn',
};

function columns(
  _entries: readonly AuditEntryJson[],
  { dateMs: nowMs }: GatewayClocks,
): readonly Column<AuditEntryJson>[] {
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
