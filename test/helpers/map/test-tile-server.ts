/** A tile server for tests: it answers as the test says, and remembers what it was asked. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Teardown } from '../store/temp-folder.js';

/** A PNG of one pixel. */
export const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

/** Answers a request; by default with {@link PIXEL}. */
type Answer = (response: ServerResponse, request: IncomingMessage) => void;

/** Answers with {@link PIXEL} and further headers. */
export function pixel(headers: Readonly<Record<string, string>> = {}): Answer {
  return (response) => void response.writeHead(200, { 'content-type': 'image/png', ...headers }).end(PIXEL);
}

export interface TestTileServer {
  readonly origin: string;
  /** The paths that were asked for, in order. */
  readonly paths: string[];
  /** The headers of the requests. */
  readonly headers: IncomingMessage['headers'][];
  /** How requests are answered from now on. */
  answer: Answer;
  /** Resolves when this many requests have come since the start. */
  asked(count: number): Promise<void>;
}

/** Starts a server, which ends with the test together with its connections. */
export async function startTileServer(test: Teardown): Promise<TestTileServer> {
  const waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  const server = createServer((request, response) => {
    tiles.paths.push(request.url ?? '');
    tiles.headers.push(request.headers);
    for (const { count, resolve } of waiting) if (tiles.paths.length >= count) resolve();
    tiles.answer(response, request);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  test.teardown(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  const tiles: TestTileServer = {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    paths: [],
    headers: [],
    answer: pixel(),
    asked: (count) =>
      new Promise((resolve) => {
        if (tiles.paths.length >= count) resolve();
        else waiting.push({ count, resolve });
      }),
  };
  return tiles;
}
