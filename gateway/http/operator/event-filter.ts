/**
 * Which of the gateway's events a stream of events has: those of some locks, of a merchant, of some kinds, or pings
 * with some reasons (interfaces.md §4, `tail`). Only reads.
 */
import { Type } from 'typebox';
import { formatMac, type Mac } from '../../../proto/wire/mac.js';
import { REASON_NAMES } from '../../../proto/wire/reasons.js';
import { EVENT_KINDS, type EventJson, withFindings } from '../../console/wording/event-text.js';
import { faultAt, type RequestFaults } from '../../faults.js';
import { noSuchMerchant } from '../../store/contract/errors.js';
import type { Store } from '../../store/contract/store.js';
import { textOf } from './query.js';
import { type Query, readMac } from './routes.js';
import { Exact, Macs, Name, OneOf } from './schemas.js';

const FINDING = 'finding';
/** The kinds that a reason may select: pings, and the findings in them. */
const KINDS_WITH_REASON: readonly string[] = ['ping', FINDING];

export const EventQuery = Exact({
  mac: Macs,
  merchant: Type.Optional(Name),
  kind: Type.Optional(Type.Array(OneOf(EVENT_KINDS), { description: 'Only these kinds of events; can be repeated.' })),
  reason: Type.Optional(
    Type.Array(OneOf(REASON_NAMES), { description: 'Only pings with these reasons; can be repeated.' }),
  ),
});

/** Finds whose lock a MAC is. */
export interface LockOwners {
  /** Reads what has changed; `merchantIdOf` then answers as of now or later. */
  update(): Promise<void>;
  merchantIdOf(mac: Mac): number | undefined;
}

/** Returns the wanted events of these, in order: a finding may be wanted without the event that has it. */
export type EventFilter = (events: readonly EventJson[]) => Promise<readonly EventJson[]>;

/**
 * The filter that a query asks for; undefined if it asks for all.
 *
 * @throws LockgateError `no-such-merchant`, `input-mac`; RequestFaults `input-query` if nothing can fit both the kinds
 *   and the reasons
 */
export async function readEventFilter(
  store: Store,
  owners: LockOwners,
  query: Query,
): Promise<EventFilter | undefined> {
  const macs = listOf(query.mac)?.map((text) => formatMac(readMac(text)));
  const [kinds, reasons] = [listOf(query.kind), listOf(query.reason)];
  if (reasons !== undefined && kinds?.every((kind) => !KINDS_WITH_REASON.includes(kind))) throw noSuchReason(kinds);
  const name = textOf(query, 'merchant');
  const isOfMerchant = name === undefined ? undefined : await merchantMatcher(store, owners, name);
  if ([macs, kinds, reasons, isOfMerchant].every((condition) => condition === undefined)) return undefined;
  const partsOf = (event: EventJson): readonly EventJson[] => {
    if (macs !== undefined && !macs.includes(String(event.mac))) return [];
    if (reasons !== undefined && !reasons.includes(String((event.ping as EventJson | undefined)?.reason))) return [];
    if (kinds === undefined || kinds.includes(String(event.event))) return [event];
    // The findings alone, without the event that has them, which comes first.
    return kinds.includes(FINDING) ? withFindings(event).slice(1) : [];
  };
  return async (events) => {
    const parts = events.flatMap(partsOf);
    return isOfMerchant === undefined || parts.length === 0 ? parts : await isOfMerchant(parts);
  };
}

/** The refusal of a query that would wait for ever. */
function noSuchReason(kinds: readonly string[]): RequestFaults {
  const detail = `only pings have a reason, and findings in pings; no ${kinds.join(' or ')} has one`;
  return faultAt('input-query', '/reason', detail);
}

/** Selects events about a merchant, one of its locks or one of its URLs. A URL never changes its merchant. */
async function merchantMatcher(store: Store, owners: LockOwners, name: string): Promise<EventFilter> {
  const id = (await store.listMerchants()).find((each) => each.name === name)?.id;
  if (id === undefined) throw noSuchMerchant(name);
  const merchantOfUrl = new Map<number, number>();
  return async (events) => {
    await owners.update();
    if (events.some(({ url_id: url }) => typeof url === 'number' && !merchantOfUrl.has(url)))
      for (const url of await store.listWebhookUrls()) merchantOfUrl.set(url.id, url.merchantId);
    return events.filter(({ merchant, mac, url_id: url }) => {
      if (typeof merchant === 'string') return merchant === name;
      return (typeof mac === 'string' ? owners.merchantIdOf(readMac(mac)) : merchantOfUrl.get(Number(url))) === id;
    });
  };
}

function listOf(given: string | readonly string[] | undefined): readonly string[] | undefined {
  return typeof given === 'string' ? [given] : given;
}
