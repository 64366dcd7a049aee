/** The routes for the pings of a merchant's lock: a list, and its track (interfaces.md §2). */
import { type Static, Type } from 'typebox';
import { eventBodies } from '../../../../webhooks/event-bodies.js';
import { PAYLOAD_SCHEMAS } from '../../../../webhooks/payload/schema.js';
import { type MerchantRoute, problemResponse } from '../../route.js';
import { longPageAnswer, PAGE_QUERY, pageResponse, readPage } from '../list.js';
import { PING_EXAMPLE } from '../lock-example.js';
import { findOwnLock, MacParam, NO_SUCH_LOCK, ownDataRoute } from '../own-data-route.js';
import { checkReasons, merchantReader, readPingPage, readSpan, readTrackPings } from './ping-read.js';
import { TRACK_EXAMPLE, TRACK_FORMATS, Track, TrackSchema } from './track.js';

const Time = (description: string) => Type.Optional(Type.String({ description: `${description}, RFC 3339.` }));
const SPAN_QUERY = {
  from: Time('Only pings that the lock made at this time or later'),
  to: Time('Only pings that the lock made before this time'),
};
const PING_TYPES = ['cellular', 'gps', 'close_connection'] as const;

const PingsQuery = Type.Object({
  ...SPAN_QUERY,
  reason: Type.Optional(Type.Array(Type.String(), { description: 'Only pings with one of these reasons.' })),
  ping_type: Type.Optional(
    Type.Array(Type.Unsafe<string>({ type: 'string', enum: [...PING_TYPES] }), {
      description: 'Only pings of one of these types.',
    }),
  ),
  ...PAGE_QUERY,
});

const listPings = ownDataRoute({
  method: 'GET',
  path: '/v1/locks/{mac}/pings',
  operationId: 'listPings',
  tag: 'locks',
  keyScope: 'locks:read',
  summary: 'Lists a lock’s pings as webhooks have them, newest first.',
  description:
    'By the time at which they were received, not by that at which the lock made them. A page may have fewer pings ' +
    'than its limit, or none, although there are more: the list ends where `next_cursor` is null.',
  params: Type.Object({ mac: MacParam }),
  query: PingsQuery,
  responses: {
    200: pageResponse('The pings.', Type.Unsafe({ anyOf: PAYLOAD_SCHEMAS }), PING_EXAMPLE),
    400: problemResponse('A parameter is not valid.'),
    404: NO_SUCH_LOCK,
  },
  handle: async (call) => {
    const { device } = await findOwnLock(call);
    const { fromMs, toMs } = readSpan(call);
    const { reason: reasons, ping_type: types, from, to } = call.query as Static<typeof PingsQuery>;
    checkReasons(reasons);
    // A cursor is valid only for the same query.
    const listKey = `pings ${device.id} ${JSON.stringify([from, to, reasons, types])}`;
    const { limit, after } = readPage(call, listKey, ['number']);
    const filter = { types, reasons, fromMs, toMs };
    const beforeId = after?.[0] as number | undefined;
    const { pings, nextBeforeId } = await readPingPage(merchantReader(call), device.id, { filter, beforeId, limit });
    const data = await eventBodies(pings, call.parts.ownData.readTurns, call.signal);
    const next = nextBeforeId === null ? null : [nextBeforeId];
    return await longPageAnswer(call, listKey, { items: data, toJson: (body) => body, next });
  },
});

const TrackQuery = Type.Object({
  ...SPAN_QUERY,
  format: Type.Optional(Type.Unsafe<string>({ type: 'string', enum: [...TRACK_FORMATS], default: 'geojson' })),
});

const getTrack = ownDataRoute({
  method: 'GET',
  path: '/v1/locks/{mac}/track',
  operationId: 'getTrack',
  tag: 'locks',
  keyScope: 'locks:read',
  summary: 'A lock’s GPS pings as a line with times.',
  description:
    'As a GeoJSON feature (RFC 7946) or as GPX 1.1, in the order in which the lock made them. `complete_from` says ' +
    'from when on the track is complete, if one answer could not hold all pings. Positions of phones are left out.',
  params: Type.Object({ mac: MacParam }),
  query: TrackQuery,
  responses: {
    200: {
      description: 'The track.',
      schema: TrackSchema,
      example: TRACK_EXAMPLE,
      jsonType: 'application/geo+json',
      otherTypes: { 'application/gpx+xml': '<?xml version="1.0" encoding="UTF-8"?>…' },
    },
    400: problemResponse('A parameter is not valid.'),
    404: NO_SUCH_LOCK,
  },
  handle: async (call) => {
    const { device } = await findOwnLock(call);
    const span = readSpan(call);
    const track = new Track(device);
    const cutAtMs = await readTrackPings(merchantReader(call), device.id, span, (ping) => track.add(ping));
    const { format = 'geojson' } = call.query as Static<typeof TrackQuery>;
    return { status: 200, text: track.finish(format === 'gpx' ? 'gpx' : 'geojson', cutAtMs) };
  },
});

/** A lock's pings. */
export const PING_ROUTES: readonly MerchantRoute[] = [listPings, getTrack];
