/** The schema of the answer to `GET /status`, and the part of the answer that consists of figures. Pure. */
import { type Static, Type } from 'typebox';
import { type Milliseconds, Seconds } from '../../../proto/clock.js';
import type { Presence } from '../../../proto/power/judge/presence.js';
import { formatDate } from '../../../proto/wire/ping-json.js';
import type { Health } from '../../health/health.js';
import type { ReadFigures } from '../../metrics/figures.js';
import type { UrlBacklog } from '../../store/contract/store-figures.js';
import { ClockAnswer, RunSpeed } from './json/clock.js';
import { RecipientAnswer } from './json/recipient.js';
import { Count, Described, MaybeTime, OneOf, OrNull, Time } from './schemas.js';

/** The undelivered events of a webhook URL. */
export const BacklogAnswer = Type.Object({
  behind: Type.Integer({ minimum: 0, description: 'Events that its cursor has not reached.' }),
  pending: Type.Integer({
    minimum: 0,
    description: 'Events waiting for a retry, or for an earlier event of their lock.',
  }),
  dead: Type.Integer({ minimum: 0, description: 'Events whose attempts have all failed.' }),
  damaged: Type.Integer({ minimum: 0, description: 'Events whose stored pings are damaged.' }),
  oldest_seconds: Type.Union([Type.Number(), Type.Null()], {
    description: 'How long the oldest event behind or pending has waited, by the run’s clock.',
  }),
});

/** Maximum number of URLs in the answer; those with the most undelivered events come first. */
export const MAX_URLS_SHOWN = 100;

/** The readiness of the gateway in one word. */
export const READINESS = ['ready', 'starting', 'stopping', 'degraded'] as const;

/** The schema of the answer. */
export const StatusAnswer = Type.Object({
  version: Type.String(),
  started_at: Time,
  status: OneOf(READINESS),
  reasons: Type.Array(Type.Object({ code: Type.String(), since: Time, why: Type.String() }), {
    description: 'Why the gateway is not ready.',
  }),
  pings_per_second: Type.Number({ minimum: 0, description: 'Stored uplinks, on average over the last minute.' }),
  notices_unread: Count,
  notices_sending: OrNull(RecipientAnswer),
  store: Type.String(),
  mqtt: Type.Object({
    host: Type.String(),
    port: Type.Integer(),
    connected: Count,
    refused: Described('The number of refusals by kind.'),
    certificate_end: MaybeTime,
  }),
  http: Type.Object({ host: Type.String(), port: Type.Integer() }),
  descriptors: Type.Object({ open: OrNull(Count), limit: OrNull(Count) }),
  locks: Type.Object({
    in_service: OrNull(Count),
    presence: Described('The number of locks of each presence, without those never seen.'),
  }),
  urls: OrNull(
    Type.Array(
      Type.Object({
        id: Type.Integer(),
        state: OneOf(['active', 'disabled']),
        circuit: OneOf(['open', 'closed']),
        backlog: BacklogAnswer,
      }),
    ),
  ),
  disk: OrNull(Type.Object({ store_bytes: Count, free_bytes: OrNull(Count) })),
  event_loop: Type.Object({
    worst_delay_ms: Type.Number({ minimum: 0, description: 'The largest delay of a timer in the last minute.' }),
  }),
  run_clock: Time,
  run_speed: RunSpeed,
  clock: ClockAnswer,
});

export type Status = Static<typeof StatusAnswer>;

/** The input of {@link figuresJson}: what was counted, and the state of the gateway's parts. */
export interface StatusFigures {
  readonly figures: ReadFigures;
  readonly presences: Iterable<Presence['presence']>;
  readonly isCircuitOpen: (urlId: number) => boolean;
  readonly worstDelayMs: Milliseconds;
}

/** The part of the status that consists of figures. */
export function figuresJson(input: StatusFigures): Pick<Status, 'locks' | 'urls' | 'disk' | 'event_loop'> {
  const { store, disk, oldestAgeMs } = input.figures;
  const locksByPresence: Record<string, number> = {};
  for (const presence of input.presences) locksByPresence[presence] = (locksByPresence[presence] ?? 0) + 1;
  const urls = store?.backlogs.toSorted((a, b) => undelivered(b) - undelivered(a)).slice(0, MAX_URLS_SHOWN);
  return {
    locks: { in_service: store?.locksInService ?? null, presence: locksByPresence },
    urls:
      urls?.map((backlog) => ({
        id: backlog.urlId,
        state: backlog.isDisabled ? 'disabled' : 'active',
        circuit: input.isCircuitOpen(backlog.urlId) ? 'open' : 'closed',
        backlog: backlogJson(backlog, oldestAgeMs(backlog)),
      })) ?? null,
    disk: disk === undefined ? null : { store_bytes: disk.storeBytes, free_bytes: disk.freeBytes },
    event_loop: { worst_delay_ms: input.worstDelayMs },
  };
}

/** A URL's backlog, also in `GET /webhooks`. `ageMs` is the age of the oldest event behind or pending. */
export function backlogJson(backlog: UrlBacklog, ageMs: Milliseconds | null): Static<typeof BacklogAnswer> {
  const { behind, pending, dead, damaged } = backlog;
  return { behind, pending, dead, damaged, oldest_seconds: ageMs === null ? null : ageMs / Seconds(1) };
}

function undelivered({ behind, pending }: UrlBacklog): number {
  return behind + pending;
}

/** Whether the gateway takes pings, and if not, why. */
export function readinessJson({ isReady, reasons }: Health): Pick<Status, 'status' | 'reasons'> {
  const phase = reasons.find(({ code }) => code === 'stopping' || code === 'starting')?.code;
  return {
    status: isReady ? 'ready' : phase === 'stopping' || phase === 'starting' ? phase : 'degraded',
    reasons: reasons.map(({ code, sinceMs, why }) => ({ code, since: formatDate(sinceMs), why })),
  };
}

/** The expiry date of a certificate; null without one. */
export function endJson(endMs: number | null): string | null {
  return endMs === null ? null : formatDate(endMs);
}
