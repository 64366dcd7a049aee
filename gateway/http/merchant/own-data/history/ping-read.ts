/**
 * Reads a lock's pings of a span of time, newest first in the order of arrival. The store scans them apart from the
 * event loop, a limited number in one call.
 */
import { DATE_EXPECTED, parseDate } from '../../../../../proto/date.js';
import { decodeUplink } from '../../../../../proto/wire/codec.js';
import { isPingUplink, type PingUplink } from '../../../../../proto/wire/ping.js';
import { isReason, REASON_NAMES } from '../../../../../proto/wire/reasons.js';
import { MAX_REPORTED_FAULTS } from '../../../../faults.js';
import type { ReadTurns } from '../../../../locks/list/read-turns.js';
import type { StoredUplink } from '../../../../store/contract/log/stored-uplink.js';
import type { PingFilter } from '../../../../store/contract/merchants/uplink-scan.js';
import type { Store } from '../../../../store/contract/store.js';
import { inputRefusal, type Refusal } from '../../refusal.js';
import type { Call } from '../../route.js';

/** Maximum number of uplinks that one page of pings, or one scan for a track, examines, whether they match or not. */
const MAX_EXAMINED_PER_PAGE = 10_000;
/** Pings of one scan; decoding them takes some 3 ms. */
const PINGS_PER_SCAN = 250;
/** Maximum number of uplinks that one call for a track examines. */
const MAX_EXAMINED_PER_TRACK = 200_000;

/** The bounds of a span that is open at an end: every time is after the one and before the other. */
export const EARLIEST_MS = -Number.MAX_VALUE;
export const LATEST_MS = Number.MAX_VALUE;

/**
 * A span of time; from included, to excluded. For pings it is by the lock's clock, as the member `date` has it;
 * histories and deliveries use it for times of receipt.
 */
export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Who reads a lock's past, and what the reading counts against. */
export interface PastReader {
  readonly store: Pick<Store, 'scans' | 'webhooks' | 'why'>;
  /** The turns in which long reads are made. */
  readonly turns: Pick<ReadTurns, 'next'>;
  /** The merchant for whom the store queues scans; 0 for operators. */
  readonly merchantId: number;
  readonly signal?: AbortSignal;
  /** Called with the number of rows that were examined. */
  readonly chargeRows: (rows: number) => void;
}

/** A merchant as the reader: what is examined counts against its budget. */
export function merchantReader({ parts, merchantId, signal }: Pick<Call, 'parts' | 'merchantId' | 'signal'>) {
  const { store, ownData, budgets } = parts;
  const chargeRows = (rows: number): void => budgets.chargeRows(merchantId, rows);
  return { store, turns: ownData.readTurns, merchantId, signal, chargeRows };
}

/** A ping with its stored bytes decoded. */
export interface ReadPing {
  readonly stored: StoredUplink;
  readonly uplink: PingUplink;
}

/** The parameters `from` and `to` of a query. @throws Refusal 400 `input-query` */
export function readSpan({ query }: Pick<Call, 'query'>): Span {
  const { from, to } = query as { from?: string; to?: string };
  const [fromMs, toMs] = [timeOf('from', from, EARLIEST_MS), timeOf('to', to, LATEST_MS)];
  if (fromMs > toMs) throw badQuery('/to', 'expected a time not before from');
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
  return inputRefusal('query', [{ pointer, detail }]);
}

/** Checks the parameter `reason`. @throws Refusal 400 `input-query` */
export function checkReasons(reasons: readonly string[] | undefined): void {
  const faults = (reasons ?? []).flatMap((reason, index) =>
    isReason(reason) ? [] : [{ pointer: `/reason/${index}`, detail: `expected one of ${REASON_NAMES.join(', ')}` }],
  );
  if (faults.length > 0) throw inputRefusal('query', faults.slice(0, MAX_REPORTED_FAULTS));
}

/** One page of a lock's pings. */
export interface PingPage {
  readonly pings: readonly StoredUplink[];
  /** The id before which the next page begins; null if there is no earlier ping. */
  readonly nextBeforeId: number | null;
}

/** Leaves out a bound that every time is within: a scan decodes each ping to compare its time with a bound. */
function withoutOpenBounds({ fromMs, toMs, ...filter }: PingFilter): PingFilter {
  return {
    ...filter,
    fromMs: fromMs === EARLIEST_MS ? undefined : fromMs,
    toMs: toMs === LATEST_MS ? undefined : toMs,
  };
}

/** Reads one page of pings that match, newest first. It may have fewer pings than its limit although there are more. */
export async function readPingPage(
  { store, turns, merchantId, signal, chargeRows }: PastReader,
  deviceId: number,
  page: { readonly filter: PingFilter; readonly beforeId: number | undefined; readonly limit: number },
): Promise<PingPage> {
  const { limit } = page;
  const terms = { merchantId, deviceId, filter: withoutOpenBounds(page.filter), signal };
  const pings: StoredUplink[] = [];
  let { beforeId } = page;
  for (let examined = 0; ; ) {
    // One ping more shows whether there is another page.
    const scanLimit = Math.min(limit + 1 - pings.length, PINGS_PER_SCAN);
    const maxExamined = MAX_EXAMINED_PER_PAGE - examined;
    const scanned = await store.scans.pings({ ...terms, limit: scanLimit, maxExamined, beforeId });
    chargeRows(scanned.examined);
    examined += scanned.examined;
    pings.push(...scanned.pings);
    if (pings.length > limit) return { pings: pings.slice(0, limit), nextBeforeId: pings[limit - 1]?.id ?? null };
    if (scanned.isAtEnd) return { pings, nextBeforeId: null };
    beforeId = scanned.lastId ?? beforeId;
    if (examined >= MAX_EXAMINED_PER_PAGE) return { pings, nextBeforeId: scanned.lastId };
    await turns.next(signal);
  }
}

/**
 * Reads the GPS pings of a span, newest first, until `take` returns false.
 *
 * @returns the time of receipt at which reading stopped: of the ping that `take` refused, or of the last uplink that
 * was examined; null if the span was read to its end
 */
export async function readTrackPings(
  { store, turns, merchantId, signal, chargeRows }: PastReader,
  deviceId: number,
  { fromMs, toMs }: Span,
  take: (ping: ReadPing) => boolean,
): Promise<number | null> {
  const terms = { merchantId, deviceId, filter: { types: ['gps'], fromMs, toMs }, signal, limit: PINGS_PER_SCAN };
  const maxExamined = MAX_EXAMINED_PER_PAGE;
  let beforeId: number | undefined;
  for (let examined = 0; ; ) {
    const scanned = await store.scans.pings({ ...terms, maxExamined, beforeId });
    chargeRows(scanned.examined);
    await turns.next(signal);
    examined += scanned.examined;
    beforeId = scanned.lastId ?? beforeId;
    for (const stored of scanned.pings) {
      const ping = decode(stored);
      if (ping !== undefined && !take(ping)) return stored.receivedAtMs;
    }
    if (scanned.isAtEnd) return null;
    if (examined >= MAX_EXAMINED_PER_TRACK) return scanned.lastReceivedAtMs;
  }
}

/** The ping with its bytes decoded; undefined if they are damaged. */
function decode(stored: StoredUplink): ReadPing | undefined {
  if (stored.isDamaged) return undefined;
  const decoded = decodeUplink(stored.bytes);
  return decoded.ok && isPingUplink(decoded.value) ? { stored, uplink: decoded.value } : undefined;
}
