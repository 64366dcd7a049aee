/** Sets the headers of every answer of the merchants' port, and answers CORS preflight requests. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ANSWER_HEADERS } from '../shared/answer-headers.js';

/** The methods and headers that pages of an allowed origin may send. Not cookies: pages authenticate with a key. */
const CORS = {
  'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
  'access-control-allow-headers': 'authorization, content-type, idempotency-key, x-session',
  'access-control-max-age': '600',
} as const;

/** The headers of an answer that a page may read. */
const READABLE_HEADERS = 'link, x-request-id, x-rate-limit, x-expires-after, retry-after, www-authenticate, allow';

/** Sets the headers of an answer. Pages of the `origins` may call the interface. */
export function setHeaders(request: FastifyRequest, reply: FastifyReply, origins: readonly string[]): void {
  reply.headers({ ...ANSWER_HEADERS, 'x-request-id': request.id });
  if (origins.length === 0) return;
  reply.header('vary', 'Origin');
  if (!isAllowed(request, origins)) return;
  reply.headers({
    'access-control-allow-origin': request.headers.origin,
    'access-control-expose-headers': READABLE_HEADERS,
    'cross-origin-resource-policy': 'cross-origin',
  });
}

/** Answers a CORS preflight request of an allowed page, and returns whether the request was one. */
export function answerPreflight(request: FastifyRequest, reply: FastifyReply, origins: readonly string[]): boolean {
  const { method, headers } = request;
  const isPreflight = method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
  if (!isPreflight || !isAllowed(request, origins)) return false;
  reply.status(204).headers(CORS).send();
  return true;
}

/** Whether the request comes from a page that may call the interface. */
export function isAllowed({ headers }: FastifyRequest, origins: readonly string[]): boolean {
  return headers.origin !== undefined && origins.includes(headers.origin);
}
