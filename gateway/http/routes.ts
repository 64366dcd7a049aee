/**
 * The merchants' port as a table of routes (interfaces.md §2). Bodies are checked by their schemas before a handler
 * sees them; what a handler refuses is a LockgateError.
 */
import type { TSchema } from 'typebox';
import type { Health } from '../health.js';

export interface HttpParts {
  readonly health: Health;
}

export interface HttpRequest {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: unknown;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
}

export interface HttpRoute {
  readonly method: 'GET' | 'POST' | 'PUT';
  readonly path: string;
  readonly summary: string;
  readonly body?: TSchema;
  readonly handle: (parts: HttpParts, request: HttpRequest) => Promise<HttpAnswer>;
}

/** An answer that is right at this moment only. */
const FRESH = { 'cache-control': 'no-store' };

/** Every route of the port. Whoever can reach it may ask for these, so neither says why. */
export const HTTP_ROUTES: readonly HttpRoute[] = [
  {
    method: 'GET',
    path: '/healthz',
    summary: 'Whether the gateway is up.',
    handle: async ({ health }) => {
      const { isUp } = health;
      return { status: isUp ? 200 : 503, headers: FRESH, body: { status: isUp ? 'up' : 'down' } };
    },
  },
  {
    method: 'GET',
    path: '/readyz',
    summary: 'Whether the gateway is ready to take pings.',
    handle: async ({ health }) => {
      const { isReady } = health;
      return { status: isReady ? 200 : 503, headers: FRESH, body: { status: isReady ? 'ready' : 'not_ready' } };
    },
  },
];
