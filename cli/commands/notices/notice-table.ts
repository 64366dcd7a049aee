/** The table of `lockgate notices`. Unread notices are marked with a star. */

import type { Column, Mark } from '../../terminal/table.js';
import { agoText } from '../../terminal/time-text.js';

/** A notice, as the operator interface returns it. */
export interface NoticeJson {
  readonly id: number;
  readonly kind: string;
  /** What it is about, such as a URL or a lock. */
  readonly subject: string;
  readonly text: string;
  /** How often it happened: first at `at`, last at `last_at`. */
  readonly count: number;
  readonly at: string;
  readonly last_at: string;
  /** Null while it is unread. */
  readonly read_at: string | null;
  /** When its cause ended; null if it has not. */
  readonly resolved_at: string | null;
}

const STATE_MARKS: Readonly<Record<string, Mark>> = { open: 'warn', over: 'good' };

/** The columns of the table; `nowMs` is the gateway’s date. */
export function noticeColumns(nowMs: number): readonly Column<NoticeJson>[] {
  return [
    { title: '', show: (row) => (row.read_at === null ? '*' : ' ') },
    { title: 'ID', show: (row) => String(row.id), neverCut: true },
    { title: 'LAST', show: (row) => agoText(row.last_at, nowMs) },
    { title: 'KIND', show: (row) => row.kind, neverCut: true },
    { title: 'STATE', show: stateText, mark: (row) => STATE_MARKS[stateText(row)] },
    { title: 'TIMES', show: (row) => row.count.toLocaleString('en'), optional: true, right: true },
    { title: 'WHAT', show: (row) => row.text, prose: true },
  ];
}

/** `open`, or `over` if the cause has ended; `–` for a notice that a month's bill was made, which has no end. */
function stateText({ kind, resolved_at: resolvedAt }: NoticeJson): string {
  if (kind === 'statement') return '–';
  return resolvedAt === null ? 'open' : 'over';
}
