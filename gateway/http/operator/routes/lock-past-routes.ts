/**
 * The operators' routes for the past of one lock, which the console's timeline and map show: power states and
 * connections, pings, the track, findings (how pings broke the firmware's rules); and for the newest findings of all
 * locks. They read as the merchants' operations do (../../merchant/own-data/history), in slices, and at most as much.
 */
import { Type } from 'typebox';
import { formatMac } from '../../../../proto/wire/mac.js';
import type { Device } from '../../../store/contract/devices/device.js';
import { noSuchDevice } from '../../../store/contract/errors.js';
import { eventBodies } from '../../../webhooks/event-bodies.js';
import { PAYLOAD_SCHEMAS } from '../../../webhooks/payload/schema.js';
import { readLockHistory } from '../../merchant/own-data/history/history-read.js';
import { HistorySchema } from '../../merchant/own-data/history/history-routes.js';
import {
  EARLIEST_MS,
  LATEST_MS,
  type PastReader,
  readPingPage,
  readTrackPings,
} from '../../merchant/own-data/history/ping-read.js';
import { Track, TrackSchema } from '../../merchant/own-data/history/track.js';
import { findingJson } from '../json/event.js';
import { cutPage, LongAnswer, NextCursor, nextCursor, pageQuery, readPage } from '../page.js';
import { readDate, textOf } from '../query.js';
import { type OperatorParts, type Query, type Route, type RouteRequest, readMac } from '../routes.js';
import { DateText, Exact, Finding, MacText } from '../schemas.js';

/** The number of pings or findings in one answer: by default, and at most. */
const DEFAULT_LISTED = 100;
const MAX_LISTED = 1000;
/** Operators' scans take turns with those of merchants, under an id that no merchant has. */
const OPERATORS = 0;

const FindingOfLock = Type.Object({ mac: MacText, ...Finding.properties });

const SpanQuery = { since: Type.Optional(DateText), until: Type.Optional(DateText) };

/** The routes of this file. */
export const LOCK_PAST_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/devices/:mac/history',
    operation: 'device.show-history',
    summary: 'A lock’s power states and connections over time, by the time of receipt.',
    success: 200,
    query: Exact(SpanQuery),
    answer: HistorySchema,
    handle: async (parts, request) => {
      const device = await findDevice(parts, request);
      return await readLockHistory(readerOf(parts), device.id, readSpan(request.query), parts.clock.now());
    },
  },
  {
    method: 'GET',
    path: '/devices/:mac/pings',
    operation: 'device.list-pings',
    summary:
      'Lists a lock’s pings as webhooks have them, newest first; `since` and `until` are about when it made them.',
    success: 200,
    query: Exact({ ...SpanQuery, ...pageQuery(MAX_LISTED, DEFAULT_LISTED) }),
    answer: Type.Object({ pings: Type.Array(Type.Unsafe({ anyOf: PAYLOAD_SCHEMAS })), next_cursor: NextCursor }),
    handle: listPings,
  },
  {
    method: 'GET',
    path: '/devices/:mac/track',
    operation: 'device.show-track',
    summary: 'A lock’s GPS pings as a GeoJSON line with times, by when the lock made them.',
    success: 200,
    query: Exact(SpanQuery),
    answer: TrackSchema,
    handle: async (parts, request) => {
      const device = await findDevice(parts, request);
      const track = new Track(device);
      const span = readSpan(request.query);
      const cutAtMs = await readTrackPings(readerOf(parts), device.id, span, (ping) => track.add(ping));
      return track.feature(cutAtMs);
    },
  },
  {
    method: 'GET',
    path: '/devices/:mac/findings',
    operation: 'device.list-findings',
    summary: 'Lists what the judge found at a lock, newest first, page by page.',
    success: 200,
    query: Exact(pageQuery(MAX_LISTED, DEFAULT_LISTED)),
    answer: Type.Object({ findings: Type.Array(Finding), next_cursor: NextCursor }),
    handle: listFindings,
  },
  {
    method: 'GET',
    path: '/findings',
    operation: 'finding.list',
    summary: 'Lists what the judge found at all locks, newest first, page by page.',
    success: 200,
    query: Exact(pageQuery(MAX_LISTED, DEFAULT_LISTED)),
    answer: Type.Object({ findings: Type.Array(FindingOfLock), next_cursor: NextCursor }),
    handle: listAllFindings,
  },
];

/** @throws LockgateError `input-mac`, `no-such-device` */
async function findDevice({ store }: OperatorParts, { params }: RouteRequest): Promise<Device> {
  const mac = readMac(params.mac ?? '');
  const reading = await store.findDevice(mac);
  if (reading === null) throw noSuchDevice(mac);
  return reading.device;
}

function readerOf({ store, merchants }: OperatorParts): PastReader {
  // What operators read counts against no merchant's budget.
  return { store, turns: merchants.ownData.readTurns, merchantId: OPERATORS, chargeRows: () => undefined };
}

/** @throws LockgateError `input-date` */
function readSpan(query: Query) {
  return {
    fromMs: readDate('since', textOf(query, 'since')) ?? EARLIEST_MS,
    toMs: readDate('until', textOf(query, 'until')) ?? LATEST_MS,
  };
}

async function listPings(parts: OperatorParts, request: RouteRequest) {
  const device = await findDevice(parts, request);
  const span = readSpan(request.query);
  const listKey = `pings ${formatMac(device.mac)} ${JSON.stringify([span.fromMs, span.toMs])}`;
  const { limit, after } = readPage(request.query, listKey, ['number'], DEFAULT_LISTED);
  const reader = readerOf(parts);
  const page = { filter: span, beforeId: after?.[0] as number | undefined, limit };
  const { pings, nextBeforeId } = await readPingPage(reader, device.id, page);
  const end = nextBeforeId === null ? null : [nextBeforeId];
  const list = { name: 'pings', items: await eventBodies(pings, reader.turns), toJson: (body: object) => body };
  return await LongAnswer.of(list, nextCursor(listKey, end), reader.turns);
}

async function listFindings(parts: OperatorParts, request: RouteRequest) {
  const device = await findDevice(parts, request);
  const listKey = `findings ${formatMac(device.mac)}`;
  const { limit, after } = readPage(request.query, listKey, ['number'], DEFAULT_LISTED);
  const found = await parts.store.readFindings(device.id, limit + 1, after?.[0] as number | undefined);
  const { shown, end } = cutPage(found, limit, ({ id }) => [id]);
  const toJson = ({ id, finding }: (typeof shown)[number]): object => ({ id, ...findingJson(finding) });
  return await LongAnswer.of(
    { name: 'findings', items: shown, toJson },
    nextCursor(listKey, end),
    readerOf(parts).turns,
  );
}

async function listAllFindings(parts: OperatorParts, { query }: RouteRequest) {
  const { store } = parts;
  const listKey = 'findings';
  const { limit, after } = readPage(query, listKey, ['number'], DEFAULT_LISTED);
  const found = await store.why.readNewestFindings(limit + 1, after?.[0] as number | undefined);
  const { shown, end } = cutPage(found, limit, ({ id }) => [id]);
  const toJson = ({ id, mac, finding }: (typeof shown)[number]): object => {
    return { mac: formatMac(mac), id, ...findingJson(finding) };
  };
  return await LongAnswer.of(
    { name: 'findings', items: shown, toJson },
    nextCursor(listKey, end),
    readerOf(parts).turns,
  );
}
