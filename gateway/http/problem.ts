/** Errors over HTTP, as RFC 9457 says. What is our own fault says no more than that. */
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyError, FastifyReply } from 'fastify';
import { LockgateError } from '../../proto/errors.js';
import { ManyFaults } from '../provisioning.js';

const PROBLEM_JSON = 'application/problem+json';

/** What the state of things doesn't allow, beside names that are taken. */
const CONFLICTS = new Set([
  'count-differs',
  'airplane-unconfirmed',
  'commands-full',
  'command-sent',
  'no-webhook-url',
  'webhook-disabled',
]);

/** The status for what a handler threw: 4xx for what the caller got wrong, 5xx for what we did. */
export function statusOf(error: FastifyError | LockgateError): number {
  if (error instanceof LockgateError) {
    const { code } = error;
    if (code === 'unauthorized') return 401;
    if (code === 'stopping') return 503;
    if (code === 'rate-limited') return 429;
    if (code.startsWith('no-such-')) return 404;
    if (code.endsWith('-exists') || code.startsWith('too-many-') || CONFLICTS.has(code)) return 409;
    return 400;
  }
  return error.statusCode !== undefined && error.statusCode < 500 ? error.statusCode : 500;
}

/** Answers with a problem. `code` is ours, for programs; a stack, path or SQL never gets out. */
export function sendProblem(reply: FastifyReply, status: number, error: Error): void {
  const known = error instanceof LockgateError;
  const detail = status === 500 ? 'something of ours broke' : error.message;
  if (status === 401) reply.header('www-authenticate', 'Bearer');
  reply
    .status(status)
    .header('content-type', PROBLEM_JSON)
    .send(problemText(status, detail, known ? error.code : 'request', error instanceof ManyFaults ? error.faults : []));
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

function problemText(status: number, detail: string, code: string, errors: readonly unknown[] = []): string {
  const problem = { type: 'about:blank', title: STATUS_CODES[status], status, detail, code };
  return JSON.stringify(errors.length === 0 ? problem : { ...problem, errors });
}
