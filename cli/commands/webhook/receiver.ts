/**
 * A webhook receiver on loopback, like a merchant's: verifies the signature of each webhook, answers, and reports it to
 * the caller.
 */
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { verifySignature } from '../../../gateway/webhooks/payload/signature.js';
import type { Clock } from '../../../proto/clock.js';
import { LockgateError } from '../../../proto/errors.js';
import { type Answerer, type ReceivedWebhook, statusOf } from './receiver-answer.js';

/** The maximum size of a body; a webhook has a few hundred bytes. */
const MAX_BODY_BYTES = 1024 * 1024;

/** The settings of a receiver. */
export interface ReceiverOptions {
  readonly host: string;
  readonly port: number;
  /** The secrets to try, `whsec_…`; if there are none, webhooks are not verified. */
  readonly secrets: readonly string[];
  readonly clock: Clock;
  /** Called with each webhook and its answer: a status, or `timeout` or `reset`. */
  readonly onWebhook: (webhook: ReceivedWebhook, answer: number | 'timeout' | 'reset') => void;
  /** The answer to a verified webhook; by default 204. */
  readonly answer?: Answerer;
  /** The Retry-After of a 429 or 503; by default none. */
  readonly retryAfterSeconds?: number | undefined;
}

/** A running receiver. */
export interface Receiver {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Starts a receiver. A webhook with a wrong signature is answered with 401, so that its sender notices.
 * @throws LockgateError `input-port` if the port is taken
 */
export async function startReceiver(options: ReceiverOptions): Promise<Receiver> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= MAX_BODY_BYTES) chunks.push(chunk);
      // The rest is not read, so the connection can't be used again, which the sender must know.
      else if (!response.headersSent) response.writeHead(413, { connection: 'close' }).end(() => request.destroy());
    });
    request.on('end', () => {
      if (response.headersSent) return;
      if (request.method !== 'POST') {
        response.writeHead(405, { allow: 'POST' }).end();
        return;
      }
      const webhook = verify(request.headers, Buffer.concat(chunks), options);
      void respond(webhook, response, options);
    });
  });
  await listen(server, options);
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      server.closeAllConnections();
      return new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

async function respond(webhook: ReceivedWebhook, response: ServerResponse, options: ReceiverOptions): Promise<void> {
  const { answer: decide, onWebhook, retryAfterSeconds } = options;
  const answer = webhook.verified === false ? 401 : ((await decide?.(webhook)) ?? 204);
  onWebhook(webhook, statusOf(answer));
  if (answer === 'reset') response.destroy();
  if (answer === 'reset' || answer === 'timeout') return;
  if (typeof answer === 'object') {
    response.writeHead(answer.status, answer.headers).end(answer.body);
    return;
  }
  const hasRetryAfter = (answer === 429 || answer === 503) && retryAfterSeconds !== undefined;
  response.writeHead(answer, hasRetryAfter ? { 'retry-after': String(retryAfterSeconds) } : {}).end();
}

/** Verifies the signature with each secret. */
function verify(headers: IncomingHttpHeaders, bytes: Buffer, { secrets, clock }: ReceiverOptions): ReceivedWebhook {
  const id = headers['webhook-id'];
  const received = { id: typeof id === 'string' ? id : '', headers, body: bytes.toString('utf8'), bytes };
  if (secrets.length === 0) return { ...received, verified: undefined, why: undefined };
  const results = secrets.map((secret) => verifySignature(secret, headers, bytes, clock.now()));
  const failure = results.every((result) => !result.ok) ? results[0] : undefined;
  if (failure === undefined || failure.ok) return { ...received, verified: true, why: undefined };
  return { ...received, verified: false, why: failure.error.message };
}

async function listen(server: Server, { host, port }: ReceiverOptions): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EADDRINUSE') return reject(error);
      reject(new LockgateError('input-port', `port ${port} on ${host} is taken; choose another with --port`));
    });
    server.listen(port, host, resolve);
  });
}
