/**
 * A merchant's webhook endpoint for tests: answers as the test decides, and records the requests.
 */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Teardown } from '../store/temp-folder.js';

/** A received webhook or notification; `json` is its parsed body. */
export interface ReceivedRequest {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly json: Record<string, unknown>;
}

/** Writes the answer to a request. */
export type Answer = (request: ReceivedRequest, response: ServerResponse) => void;

/** The endpoint and its recorded requests. */
export class TestReceiver {
  readonly requests: ReceivedRequest[] = [];
  /** Answers a request; 204 unless the test replaces it. */
  answer: Answer = (_request, response) => void response.writeHead(204).end();
  url = '';

  /** Resolves when `count` requests have arrived in all. */
  async waitForRequests(count: number): Promise<void> {
    while (this.requests.length < count) await this.#nextRequest();
  }

  readonly #waiting: (() => void)[] = [];

  #nextRequest(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Reads, records and answers a request; {@link testReceiver} calls it. */
  async handle(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of message) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString('utf8');
    const request = { headers: message.headers, body, json: JSON.parse(body) as Record<string, unknown> };
    this.requests.push(request);
    this.answer(request, response);
    // Whoever waits counts the requests again.
    for (const wake of this.#waiting.splice(0)) wake();
  }
}

/** Starts a receiver on a free loopback port; it is closed after the test. */
export async function testReceiver(test: Teardown): Promise<TestReceiver> {
  const receiver = new TestReceiver();
  const server = createServer((message, response) => void receiver.handle(message, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  test.teardown(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return receiver;
}
