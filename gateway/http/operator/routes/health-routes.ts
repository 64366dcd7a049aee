/**
 * The operators' routes for the gateway's health: `/healthz`, `/readyz` with reasons, and `/metrics` for Prometheus.
 * They require the operators' token like all routes of this interface, and are answered while the gateway stops.
 */

import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { formatMac } from '../../../../proto/wire/mac.js';
import type { Health } from '../../../health/health.js';
import type { Locks } from '../../../locks/locks.js';
import type { Metrics } from '../../../metrics/metrics.js';
import type { DocumentedRoute } from '../document.js';
import { unjudgedJson } from '../json/device.js';
import { OneOf, Time, unjudged } from '../schemas.js';
import { READINESS, readinessJson } from '../status.js';

/** Maximum number of locks in the answer of `/readyz` for which the judge failed. */
const MAX_UNJUDGED_SHOWN = 100;

/** The routes, as the interface's OpenAPI document describes them. */
export const HEALTH_TERMS: readonly DocumentedRoute[] = [
  {
    method: 'GET',
    path: '/healthz',
    operation: 'health.show-up',
    summary: 'Whether the gateway is up.',
    answer: Type.Object({ status: OneOf(['up', 'down']) }),
    otherwise: { 503: 'The gateway is down.' },
  },
  {
    method: 'GET',
    path: '/readyz',
    operation: 'health.show-ready',
    summary: 'Whether the gateway takes pings, and if not, why.',
    answer: Type.Object({
      status: OneOf(READINESS),
      reasons: Type.Array(Type.Object({ code: Type.String(), since: Time, why: Type.String() })),
      unjudged: Type.Array(Type.Object({ mac: Type.String(), ...unjudged }), {
        description: `Locks for which the judge failed, at most ${MAX_UNJUDGED_SHOWN}. Their pings are accepted.`,
      }),
    }),
    otherwise: { 503: 'The gateway is not ready.' },
  },
  {
    method: 'GET',
    path: '/metrics',
    operation: 'health.show-metrics',
    summary: 'Metrics for Prometheus.',
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

/** Whether a request's URL, which may have a query, is one of these routes. */
export function isHealthPath(url: string): boolean {
  return PATHS.has(url.split('?', 1)[0] ?? '');
}

/** Adds the three routes. */
export function addHealthRoutes(fastify: FastifyInstance, { health, metrics, locks }: HealthRouteParts): void {
  fastify.get('/healthz', async (_request, reply) => {
    const { isUp } = health;
    return await reply.status(isUp ? 200 : 503).send({ status: isUp ? 'up' : 'down' });
  });
  fastify.get('/readyz', async (_request, reply) => {
    const body = { ...readinessJson(health), unjudged: unjudgedLocks(locks) };
    return await reply.status(health.isReady ? 200 : 503).send(body);
  });
  fastify.get('/metrics', async (_request, reply) => {
    const { contentType, body } = await metrics.text();
    return await reply.header('content-type', contentType).send(body);
  });
}

/**
 * Locks for which the judge (the check of uplinks by the firmware's rules) failed. They do not make the gateway
 * unready, but operators should know about them.
 */
function unjudgedLocks(locks: HealthRouteParts['locks']) {
  const shown: unknown[] = [];
  for (const { lock, unjudged: judgingStop } of locks.unjudged()) {
    if (shown.length === MAX_UNJUDGED_SHOWN) break;
    shown.push({ mac: formatMac(lock.mac), ...unjudgedJson(judgingStop) });
  }
  return shown;
}
