/** Errors over HTTP, as RFC 9457 says. What is our own fault says no more than that. */
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyError, FastifyReply } from 'fastify';
import { LockgateError } from '../../../proto/errors.js';
import { OverBudget } from '../../fairness/over-budget.js';
import { ManyFaults } from '../../faults.js';
import { StoreFailure } from '../../store/contract/errors.js';
import { PetTooLarge } from '../../store/contract/quota.js';
import { Refusal } from '../merchant/refusal.js';

const PROBLEM_JSON = 'application/problem+json';

/** What the state of things doesn't allow, beside names that are taken. */
const CONFLICTS = new Set([
  'count-differs',
  'airplane-unconfirmed',
  'commands-full',
  'command-sent',
  'no-webhook-url',
  'webhook-disabled',
  'event-damaged',
  'no-room',
  'lock-is-judged',
  'judge-failed',
]);

/** The status for what a handler threw: 4xx for what the caller got wrong, 5xx for what we did. */
export function statusOf(error: FastifyError | LockgateError): number {
  if (error instanceof Refusal) return error.status;
  // It may have room again soon; what was not stored was not promised.
  if (error instanceof StoreFailure) return error.kind === 'full' || error.kind === 'busy' ? 503 : 500;
  if (error instanceof OverBudget) return 429;
  if (error instanceof PetTooLarge) return 413;
  if (error instanceof LockgateError) {
    const { code } = error;
    if (code === 'unauthorized') return 401;
    if (code === 'starting' || code === 'stopping' || code === 'busy') return 503;
    if (code.startsWith('no-such-')) return 404;
    if (code.endsWith('-exists') || code.startsWith('too-many-') || CONFLICTS.has(code)) return 409;
    return 400;
  }
  return error.statusCode !== undefined && error.statusCode < 500 ? error.statusCode : 500;
}

/** How long to wait where nobody says otherwise, in seconds. */
const RETRY_AFTER: Readonly<Record<number, string>> = { 503: '5' };

/** Answers with a problem. `code` is ours, for programs; a stack, path or SQL never gets out. */
export function sendProblem(reply: FastifyReply, status: number, error: Error): void {
  const known = error instanceof LockgateError;
  const retryAfter = error instanceof OverBudget ? String(error.retryAfterSeconds) : RETRY_AFTER[status];
  if (retryAfter !== undefined) reply.header('retry-after', retryAfter);
  if (error instanceof Refusal) reply.headers(error.headers);
  else if (status === 401) reply.header('www-authenticate', 'Bearer');
  const faults = error instanceof ManyFaults ? error.faults : [];
  const members = error instanceof Refusal ? error.members : error instanceof OverBudget ? budgetOf(error) : {};
  reply
    .status(status)
    .header('content-type', PROBLEM_JSON)
    .send(problemText(status, detailOf(status, error), known ? error.code : 'request', faults, members));
}

function budgetOf({ budget }: OverBudget): Readonly<Record<string, string>> {
  return { budget };
}

/** A sentence of ours for everything: what others wrote may quote a path, a query or a body. */
function detailOf(status: number, error: Error & { readonly code?: unknown }): string {
  if (error instanceof LockgateError) return error.message;
  if (status === 413) return 'the body is larger than is taken here';
  if (status === 415) return 'the body is of a type that is not taken here';
  if (status === 503) return 'the store can’t take anything at the moment; nothing was changed';
  return status >= 500 ? 'something of ours broke' : error.message;
}

/** There is no route of this method and path. */
export function sendNotFound(reply: FastifyReply): void {
  sendProblem(reply, 404, new LockgateError('no-such-route', 'there is nothing at this path'));
}

const CLIENT_ERRORS: Readonly<Record<string, readonly [status: number, detail: string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'the header lines are too long'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'the request took too long to arrive'],
};

/** What Node could not read as HTTP never becomes a request: it is answered on the bare socket, and that closed. */
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
