/** The route for the stream of a merchant's locks (interfaces.md §2). Streams are made in gateway/live/. */
import { type Static, Type } from 'typebox';
import { Seconds } from '../../../../proto/clock.js';
import { formatMac, type Mac } from '../../../../proto/wire/mac.js';
import type { Audience } from '../../../live/audience.js';
import { MAX_STREAMS_PER_MERCHANT } from '../../../live/live-feed.js';
import { EVENT_STREAM_TYPE } from '../../../live/server-sent-events.js';
import { type Call, type HttpAnswer, type MerchantRoute, problemResponse } from '../route.js';
import { LOCK_EXAMPLE } from './lock-example.js';
import { lockJson } from './lock-json.js';
import { ownDataRoute } from './own-data-route.js';

const MAX_SECONDS = 86_400;
/** The gateway sends no longer ids, so a longer `Last-Event-ID` is ignored. */
const MAX_ID_CHARS = 100;

const StreamQuery = Type.Object({
  seconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_SECONDS,
      description: 'How long the stream lasts; 0 for the present state alone. Without it, until you disconnect.',
    }),
  ),
});

/** The headers of a stream. Without the first, a proxy such as nginx would hold events back. */
export const STREAM_HEADERS = { 'x-accel-buffering': 'no', 'cache-control': 'no-store' } as const;

const EXAMPLE = [
  'event: snapshot\nid: nR3sPq8T0a_fZ2Kx.41',
  `data: ${JSON.stringify({ part: 1, last: true, locks: [LOCK_EXAMPLE] })}`,
  '',
  'event: lock\nid: nR3sPq8T0a_fZ2Kx.42',
  `data: ${JSON.stringify({ ...LOCK_EXAMPLE, trouble: 'theft', last_reason: 'REASON_THEFT' })}`,
  '',
  '',
].join('\n');

/** The stream of a merchant's locks. */
export const STREAM_ROUTES: readonly MerchantRoute[] = [
  ownDataRoute({
    method: 'GET',
    path: '/v1/stream',
    operationId: 'streamLocks',
    tag: 'locks',
    keyScope: 'locks:read',
    summary: 'Streams your locks as server-sent events: a snapshot, then changes.',
    description:
      '`snapshot` events have all locks, in parts: the first part replaces all locks that you have, the last one has ' +
      '`last: true`. Then a `lock` event has a lock whenever it has changed, at most once a second (less often if ' +
      'more than 250 locks move at once), and a `removed` event the `mac_addr` of a lock that is no longer yours. ' +
      'With `Last-Event-ID`, the id of the last event that you got, only what changed since then is sent if the ' +
      'gateway still knows it, otherwise a new snapshot. A client that reads too slowly gets a new snapshot, too. A ' +
      'comment comes every 15 seconds. The stream ends within 5 seconds when the key is revoked or expires. ' +
      `At most ${MAX_STREAMS_PER_MERCHANT} streams of a merchant are open at the same time.`,
    query: StreamQuery,
    headers: Type.Object({
      'last-event-id': Type.Optional(Type.String({ description: 'The id of the last event that you got.' })),
    }),
    responses: {
      200: { description: 'The stream.', otherTypes: { [EVENT_STREAM_TYPE]: EXAMPLE } },
      400: problemResponse('A parameter is not valid.'),
    },
    handle: openStream,
  }),
];

async function openStream(call: Call): Promise<HttpAnswer> {
  const { parts, merchantId, query, headers, signal, isStillAllowed } = call;
  const { seconds } = query as Static<typeof StreamQuery>;
  const { live, usage } = parts.ownData;
  const audience: Audience = {
    name: `merchant ${merchantId}`,
    merchantId,
    lockJson: (lock) => lockJson(lock, usage.sims.activatedAtMs(lock.device.mac)),
    departureJson: (mac: Mac) => ({ mac_addr: formatMac(mac) }),
  };
  const stream = live.open({
    audience,
    lastEventId: lastEventIdOf(headers),
    duration: seconds === undefined ? undefined : Seconds(seconds),
    isAllowed: isStillAllowed,
    onLocksRead: (count) => parts.budgets.chargeRows(merchantId, count),
  });
  signal.addEventListener('abort', () => stream.end(), { once: true });
  // The call counts as running while the stream reads.
  await stream.firstWait;
  return { status: 200, headers: STREAM_HEADERS, text: { type: EVENT_STREAM_TYPE, content: stream.out } };
}

/** The header `Last-Event-ID`; undefined if there is none, or the gateway can't have sent it. */
export function lastEventIdOf(headers: Call['headers']): string | undefined {
  const id = headers['last-event-id'];
  return typeof id === 'string' && id.length <= MAX_ID_CHARS ? id : undefined;
}
