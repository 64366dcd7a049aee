/**
 * The routes `/healthz` and `/readyz` of the merchants' port: whether the gateway is up and ready. Anyone who reaches
 * the port may call them, so they give no reasons (interfaces.md §2).
 */
import { Type } from 'typebox';
import { type HealthRoute, tooMany } from '../merchant/route.js';

const Status = (values: readonly string[]) =>
  Type.Object({ status: Type.Unsafe<string>({ type: 'string', enum: [...values] }) });

export const HEALTH_ROUTES: readonly HealthRoute[] = [
  {
    method: 'GET',
    path: '/healthz',
    operationId: 'getHealth',
    tag: 'health',
    summary: 'Whether the gateway is up.',
    scheme: 'none',
    responses: {
      200: { description: 'The gateway is up.', schema: Status(['up', 'down']), example: { status: 'up' } },
      429: tooMany(),
      503: { description: 'The gateway is down.', schema: Status(['up', 'down']), example: { status: 'down' } },
    },
    answer: ({ isUp }) => ({ status: isUp ? 200 : 503, body: { status: isUp ? 'up' : 'down' } }),
  },
  {
    method: 'GET',
    path: '/readyz',
    operationId: 'getReadiness',
    tag: 'health',
    summary: 'Whether the gateway is ready to take pings.',
    scheme: 'none',
    responses: {
      200: {
        description: 'The gateway is ready.',
        schema: Status(['ready', 'not_ready']),
        example: { status: 'ready' },
      },
      429: tooMany(),
      503: {
        description: 'The gateway is not ready.',
        schema: Status(['ready', 'not_ready']),
        example: { status: 'not_ready' },
      },
    },
    answer: ({ isReady }) => ({ status: isReady ? 200 : 503, body: { status: isReady ? 'ready' : 'not_ready' } }),
  },
];
