/**
 * Reads the audit log in pages, newest entries first. Only reads, in slices of a few milliseconds, since a search for
 * few matching entries would otherwise delay pings.
 */
import { systemClock } from '../../proto/clock.js';
import type { AuditEntry, AuditFilter, AuditStore } from '../store/contract/operators/audit-store.js';

/** Number of entry ids that the first slice searches, and the minimum for every slice. */
const MIN_WINDOW_IDS = 2_000;
/** After a slice that took less than this many ms, the next one may search twice as much; after a slow one, half. */
const QUICK_SLICE_MS = 1;
const SLOW_SLICE_MS = 4;
/**
 * Maximum number of slices of one page. A page that has too few entries by then is returned; the next one continues.
 */
const MAX_SLICES = 200;

export interface AuditPageTerms {
  readonly filter: Omit<AuditFilter, 'fromId' | 'beforeId' | 'limit'>;
  /** Only entries before this id; undefined means from the newest one on. */
  readonly beforeId: number | undefined;
  readonly limit: number;
  /** Resolves when the next slice may be read: other work of the event loop, such as pings, runs in between. */
  readonly nextTurn: () => Promise<void>;
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  /** `beforeId` of the next page; null if this is the last one. */
  readonly nextBeforeId: number | null;
}

/** Reads one page. @throws StoreFailure */
export async function readAuditPage(audit: AuditStore, terms: AuditPageTerms): Promise<AuditPage> {
  const { filter, limit, nextTurn } = terms;
  const [newest] = await audit.list({ limit: 1 });
  const endId = (newest?.id ?? 0) + 1;
  const entries: AuditEntry[] = [];
  let beforeId = Math.min(terms.beforeId ?? endId, endId);
  let windowIds = MIN_WINDOW_IDS;
  for (let slice = 0; slice < MAX_SLICES && beforeId > 1; slice += 1) {
    await nextTurn();
    const startedMs = systemClock.now();
    const fromId = Math.max(beforeId - windowIds, 1);
    // One entry more than the page has shows that there is a further page.
    entries.push(...(await audit.list({ ...filter, fromId, beforeId, limit: limit + 1 - entries.length })));
    if (entries.length > limit) {
      const shown = entries.slice(0, limit);
      return { entries: shown, nextBeforeId: shown.at(-1)?.id ?? null };
    }
    beforeId = fromId;
    const tookMs = systemClock.now() - startedMs;
    if (tookMs < QUICK_SLICE_MS) windowIds *= 2;
    else if (tookMs > SLOW_SLICE_MS) windowIds = Math.max(windowIds / 2, MIN_WINDOW_IDS);
  }
  return { entries, nextBeforeId: beforeId > 1 ? beforeId : null };
}
