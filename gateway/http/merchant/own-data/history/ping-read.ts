/**
 * Reads a lock's pings of a span of time, newest first in the order of arrival. They are read in slices, between which
 * other work runs, and at most {@link MAX_EXAMINED} in one call.
 */
import { Days } from '../../../../../proto/clock.js';
import { DATE_EXPECTED, parseDate } from '../../../../../proto/date.js';
import { decodeUplink } from '../../../../../proto/wire/codec.js';
import { isPingUplink, type PingUplink } from '../../../../../proto/wire/ping.js';
import type { StoredUplink } from '../../../../store/contract/store.js';
import { Refusal } from '../../refusal.js';
import type { Call } from '../../route.js';

/** Number of uplinks that are read in one slice, which takes some 3 ms. */
const UPLINKS_PER_SLICE = 250;
/** Maximum number of uplinks that one call examines, whether they are in its span or not. */
export const MAX_EXAMINED = 10_000;
/**
 * A ping's date, by the lock's clock, is at most this much later than its receipt. So the search ends at a ping that
 * was received longer than this before the span.
 */
const MAX_CLOCK_AHEAD = Days(1);

/** A span of time by the lock's clock, as the member `date` has it; from included, to excluded. */
export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** A ping with its stored bytes decoded. */
export interface ReadPing {
  readonly stored: StoredUplink;
  readonly uplink: PingUplink;
}

/** The parameters `from` and `to` of a query. @throws Refusal 400 `input-query` */
export function readSpan({ query }: Pick<Call, 'query'>): Span {
  const { from, to } = query as { from?: string; to?: string };
  const [fromMs, toMs] = [timeOf('from', from, -Number.MAX_VALUE), timeOf('to', to, Number.MAX_VALUE)];
  if (fromMs > toMs) throw badQuery('/to', 'expected a time after from');
  return { fromMs, toMs };
}

function timeOf(name: string, text: string | undefined, absentMs: number): number {
  if (text === undefined) return absentMs;
  // An unescaped + of an offset arrives as a blank.
  const timeMs = parseDate(text.replace(' ', '+'));
  if (Number.isNaN(timeMs)) throw badQuery(`/${name}`, `expected ${DATE_EXPECTED}`);
  return timeMs;
}

function badQuery(pointer: string, detail: string): Refusal {
  const faults = [{ pointer, detail }];
  return new Refusal({
    status: 400,
    code: 'input-query',
    detail: `the request does not fit: ${pointer}: ${detail}`,
    faults,
  });
}

/**
 * Reads pings, newest first, until `take` returns false.
 *
 * @returns the id of the last uplink that was examined, for the next call; null if there is no earlier one in the span
 */
export async function readPings(
  { parts, merchantId, signal }: Pick<Call, 'parts' | 'merchantId' | 'signal'>,
  deviceId: number,
  { span, beforeId }: { readonly span: Span; readonly beforeId: number | undefined },
  take: (ping: ReadPing) => boolean,
): Promise<number | null> {
  const { store, ownData, budgets } = parts;
  let examined = 0;
  let before = beforeId;
  try {
    while (examined < MAX_EXAMINED) {
      await ownData.turns.next(signal);
      const slice = await store.readPings(deviceId, UPLINKS_PER_SLICE, before);
      examined += UPLINKS_PER_SLICE;
      for (const stored of slice.pings) {
        if (stored.receivedAtMs < span.fromMs - MAX_CLOCK_AHEAD) return null;
        const ping = pingIn(stored, span);
        if (ping !== undefined && !take(ping)) return stored.id;
      }
      if (slice.nextBeforeId === null) return null;
      before = slice.nextBeforeId;
    }
    return before ?? null;
  } finally {
    budgets.chargeRows(merchantId, examined);
  }
}

/** The ping, if the lock made it in the span; undefined otherwise, or if its stored bytes are damaged. */
function pingIn(stored: StoredUplink, { fromMs, toMs }: Span): ReadPing | undefined {
  if (stored.isDamaged) return undefined;
  const decoded = decodeUplink(stored.bytes);
  if (!decoded.ok || !isPingUplink(decoded.value)) return undefined;
  const uplink = decoded.value;
  return uplink.timeMs >= fromMs && uplink.timeMs < toMs ? { stored, uplink } : undefined;
}
