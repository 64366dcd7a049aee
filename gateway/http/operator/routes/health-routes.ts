/**
 * How the gateway is, for operators and their machines: `/healthz`, `/readyz` with its reasons, and `/metrics` for
 * Prometheus. They want the operator's token as everything else there does, and are answered while the gateway stops.
 */

import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { formatMac } from '../../../../proto/wire/mac.js';
import { toDate } from '../../../../proto/wire/ping-json.js';
import type { Health } from '../../../health/health.js';
import type { Locks } from '../../../locks/locks.js';
import type { Metrics } from '../../../metrics/metrics.js';
import type { DocumentedRoute } from '../document.js';
import { unjudgedJson } from '../routes.js';
import { OneOf, Time, unjudged } from '../schemas.js';

/** Locks that are not judged, as they are named at once. */
const UNJUDGED_SHOWN = 100;

/** What the document says of them. */
export const HEALTH_TERMS: readonly DocumentedRoute[] = [
  {
    method: 'GET',
    path: '/healthz',
    operation: 'health.show-up',
    summary: 'Whether the gateway is up.',
    answer: Type.Object({ status: OneOf(['up', 'down']) }),
    otherwise: { 503: 'It is down.' },
  },
  {
    method: 'GET',
    path: '/readyz',
    operation: 'health.show-ready',
    summary: 'Whether the gateway takes pings, and why it does not.',
    answer: Type.Object({
      status: OneOf(['ready', 'starting', 'stopping', 'degraded']),
      reasons: Type.Array(Type.Object({ code: Type.String(), since: Time, why: Type.String() })),
      unjudged: Type.Array(Type.Object({ mac: Type.String(), ...unjudged }), {
        description: `Locks at which the judge failed, ${UNJUDGED_SHOWN} at the most. Their pings are taken.`,
      }),
    }),
    otherwise: { 503: 'It is not ready.' },
  },
  {
    method: 'GET',
    path: '/metrics',
    operation: 'health.show-metrics',
    summary: 'Figures for Prometheus.',
    answer: Type.String(),
    answerType: 'text/plain',
  },
];

const PATHS: ReadonlySet<string> = new Set(HEALTH_TERMS.map(({ path }) => path));

export interface HealthRouteParts {
  readonly health: Health;
  readonly metrics: Metrics;
  readonly locks: Locks;
}

/** Whether a request's path, query included, is one of these. */
export function isHealthPath(url: string): boolean {
  return PATHS.has(url.split('?', 1)[0] ?? '');
}

/** Adds the three routes. */
export function addHealthRoutes(fastify: FastifyInstance, { health, metrics, locks }: HealthRouteParts): void {
  fastify.get('/healthz', async (_request, reply) => {
    const { isUp } = health;
    return await reply
      .status(isUp ? 200 : 503)
      .header('cache-control', 'no-store')
      .send({ status: isUp ? 'up' : 'down' });
  });
  fastify.get('/readyz', async (_request, reply) => {
    const reasons = health.reasons.map(({ code, sinceMs, why }) => ({ code, since: toDate(sinceMs), why }));
    return await reply
      .status(health.isReady ? 200 : 503)
      .header('cache-control', 'no-store')
      .send({ status: statusName(health), reasons, unjudged: unjudgedLocks(locks) });
  });
  fastify.get('/metrics', async (_request, reply) => {
    const { contentType, body } = await metrics.text();
    return await reply.header('content-type', contentType).header('cache-control', 'no-store').send(body);
  });
}

/** A mistake of ours at one lock is nothing that speaks against the gateway, but somebody should know of it. */
function unjudgedLocks(locks: HealthRouteParts['locks']) {
  const named: unknown[] = [];
  for (const { lock, unjudged: mark } of locks.unjudged()) {
    if (named.length === UNJUDGED_SHOWN) break;
    named.push({ mac: formatMac(lock.mac), ...unjudgedJson(mark) });
  }
  return named;
}

/** The most telling of its reasons, in a word. */
function statusName({ isReady, reasons }: Health): string {
  if (isReady) return 'ready';
  const expected = reasons.find(({ code }) => code === 'stopping' || code === 'starting');
  return expected?.code ?? 'degraded';
}
