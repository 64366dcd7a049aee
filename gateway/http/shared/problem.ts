/** Answers errors as problem documents (RFC 9457), for both HTTP interfaces. Gives no details of internal errors. */
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyError, FastifyReply } from 'fastify';
import { LockgateError } from '../../../proto/errors.js';
import { OverBudget } from '../../fairness/over-budget.js';
import { RequestFaults } from '../../faults.js';
import { failureKind, StoreFailure } from '../../store/contract/errors.js';
import { PetTooLarge } from '../../store/contract/merchants/quota.js';
import { Refusal } from '../merchant/refusal.js';

const PROBLEM_JSON = 'application/problem+json';

/** Error codes that mean a conflict with the current state (409), in addition to `…-exists` and `too-many-…`. */
const CONFLICTS = new Set([
  'count-differs',
  'airplane-unconfirmed',
  'commands-full',
  'command-sent',
  'no-webhook-url',
  'no-notify-url',
  'notify-secrets',
  'webhook-disabled',
  'event-damaged',
  'event-filtered',
  'recovery-under-way',
  'no-room',
  'lock-is-judged',
  'judge-failed',
  'last-owner',
  'merchant-closed',
  'merchant-open',
  'idempotency-key-in-use',
]);

/** The status for an error that a handler threw: 4xx for the caller's mistakes, 5xx for the gateway's failures. */
export function statusOf(error: FastifyError | LockgateError): number {
  if (error instanceof Refusal) return error.status;
  // 503 if the store may work again soon. A read's failure may come as the engine threw it.
  const kind = failureKind(error);
  if (kind === 'full' || kind === 'busy' || kind === 'away') return 503;
  if (error instanceof StoreFailure) return 500;
  if (error instanceof OverBudget) return 429;
  if (error instanceof PetTooLarge) return 413;
  if (error instanceof LockgateError) {
    const { code } = error;
    if (code === 'unauthorized') return 401;
    if (code === 'insufficient-role') return 403;
    if (code === 'idempotency-key-reused') return 422;
    if (code === 'starting' || code === 'stopping' || code === 'busy') return 503;
    // The failure is that of another server, as far as this one is concerned.
    if (code === 'tile-unavailable') return 502;
    if (code.startsWith('no-such-')) return 404;
    if (code.endsWith('-exists') || code.startsWith('too-many-') || CONFLICTS.has(code)) return 409;
    return 400;
  }
  return error.statusCode !== undefined && error.statusCode < 500 ? error.statusCode : 500;
}

/** The default Retry-After in seconds, by status. */
const RETRY_AFTER: Readonly<Record<number, string>> = { 503: '5' };

/** Answers with a problem document, which never contains a stack, path or SQL. */
export function sendProblem(reply: FastifyReply, status: number, error: Error): void {
  // Errors of libraries, and failures of the gateway, have no code of their own; for these, clients go by the status.
  const code = error instanceof LockgateError ? error.code : 'request';
  const retryAfter = error instanceof OverBudget ? String(error.retryAfterSeconds) : RETRY_AFTER[status];
  if (retryAfter !== undefined) reply.header('retry-after', retryAfter);
  if (error instanceof Refusal) reply.headers(error.headers);
  else if (status === 401) reply.header('www-authenticate', 'Bearer');
  const faults = error instanceof RequestFaults ? error.faults : [];
  const members = error instanceof Refusal ? error.members : error instanceof OverBudget ? budgetOf(error) : {};
  reply
    .status(status)
    .header('content-type', PROBLEM_JSON)
    .send(problemText(status, detailOf(status, error), code, faults, members));
}

function budgetOf({ budget }: OverBudget): Readonly<Record<string, string>> {
  return { budget };
}

/** The sentence for an error. For a failure of the gateway it is lockgate's own, since a library's may quote data. */
function detailOf(status: number, error: Error & { readonly code?: unknown }): string {
  if (error instanceof LockgateError) return error.message;
  if (status === 413) return 'the body is too large';
  if (status === 415) return 'the content type of the body is not accepted here';
  if (status === 503) return 'the store can’t write at the moment; nothing was changed';
  return status >= 500 ? 'an internal error occurred' : error.message;
}

/** Answers a request that has no route. */
export function sendNotFound(reply: FastifyReply): void {
  sendProblem(reply, 404, new LockgateError('no-such-route', 'there is nothing at this path'));
}

const CLIENT_ERRORS: Readonly<Record<string, readonly [status: number, detail: string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'the header lines are too long'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'the request took too long to arrive'],
};

/** Answers bytes that Node can't parse as an HTTP request, directly on the socket, and closes it. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, detail] = CLIENT_ERRORS[error.code ?? ''] ?? [400, 'the request is not valid HTTP'];
  const text = problemText(status, detail, 'request');
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `content-type: ${PROBLEM_JSON}`,
    `content-length: ${Buffer.byteLength(text)}`,
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${text}`, () => socket.destroy());
}

function problemText(
  status: number,
  detail: string,
  code: string,
  errors: readonly unknown[] = [],
  members: Readonly<Record<string, string>> = {},
): string {
  const problem = { type: 'about:blank', title: STATUS_CODES[status], status, detail, code, ...members };
  return JSON.stringify(errors.length === 0 ? problem : { ...problem, errors });
}
