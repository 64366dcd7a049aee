/**
 * A program that runs merchants' webhook receivers. It takes one argument, a {@link WebhookHostRequest} as JSON, and
 * prints `{"urls":[…]}`. It answers each line of stdin with one line:
 *
 * - `await N`: `{"ms":t}` once N webhooks have arrived at the good receivers since the last `await`: the time from the
 *   first to the last.
 * - `lags`: `{"lags":[…]}`: the delay of each webhook that arrived at a good receiver since the last `lags`, ms from
 *   the time of its ping.
 * - `received`: a {@link ReceivedSoFar} about the webhooks since the last `received` or `await`.
 * - `good` or `bad`: the bad receivers answer well, or misbehave, from now on; `{}`.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { Seconds, systemClock } from '../../../proto/clock.js';

/**
 * How a receiver behaves: `good` answers with 204; the others never answer, answer late, answer with the status 500, a
 * redirect or an endless body, or reset the connection (quality.md §2).
 */
export const RECEIVER_BEHAVIOURS = ['good', 'hang', 'slow', '500', 'redirect', 'gigabyte', 'reset'] as const;
export type ReceiverBehaviour = (typeof RECEIVER_BEHAVIOURS)[number];

/** The program's argument: how each receiver behaves. */
export interface WebhookHostRequest {
  readonly receivers: readonly ReceiverBehaviour[];
}

/** The webhooks that arrived at the good receivers since the last question about them. */
export interface ReceivedSoFar {
  readonly count: number;
  /** The delay of the last webhook, from the time of its ping, ms. */
  readonly last_lag_ms: number;
}

/** Just before the gateway gives up, which it does 15 s after it started the attempt. */
const SLOW_ANSWER_AFTER = Seconds(14.9);
const GIGABYTE_BYTES = 1e9;
const CHUNK = Buffer.alloc(64 * 1024, 'x');

/** All receivers, and what arrived at the good ones. */
class ReceiverHost {
  /** Whether the bad receivers misbehave at present. */
  misbehaves = true;
  /** The delays since the last `lags` or `received`, ms. */
  lags: number[] = [];
  #count = 0;
  #firstAt = 0;
  #awaited = Number.POSITIVE_INFINITY;
  /** Called when as many webhooks have arrived as {@link await} waits for. */
  #onAwaitedCount: () => void = () => undefined;

  /** Starts a receiver. Returns its URL. */
  async open(behaviour: ReceiverBehaviour): Promise<string> {
    const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
      this.#take(behaviour, request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  }

  /** Reads a webhook and answers it. */
  #take(behaviour: ReceiverBehaviour, request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => undefined);
    request.on('end', () => {
      if (behaviour !== 'good' && this.misbehaves) return misbehave(behaviour, response);
      response.writeHead(204).end();
      if (behaviour === 'good') this.#recordArrival(Buffer.concat(chunks).toString('utf8'));
    });
  }

  /** Counts a webhook of a good receiver, and notes its delay from the ping's time, which its body has as `date`. */
  #recordArrival(body: string): void {
    const now = systemClock.now();
    if (this.#count === 0) this.#firstAt = performance.now();
    this.#count += 1;
    const date = /"date":"([^"]+)"/.exec(body)?.[1] ?? '';
    this.lags.push(now - Date.parse(date));
    if (this.#count >= this.#awaited) this.#onAwaitedCount();
  }

  /** Resolves when `count` webhooks have arrived since the last call. */
  async await(count: number): Promise<{ ms: number }> {
    if (this.#count < count)
      await new Promise<void>((resolve) => {
        this.#awaited = count;
        this.#onAwaitedCount = resolve;
      });
    const ms = performance.now() - this.#firstAt;
    this.#count = 0;
    this.#awaited = Number.POSITIVE_INFINITY;
    return { ms };
  }

  takeReceived(): ReceivedSoFar {
    const received = { count: this.#count, last_lag_ms: this.lags.at(-1) ?? 0 };
    this.#count = 0;
    this.lags = [];
    return received;
  }
}

/** Answers badly, or not at all. */
function misbehave(behaviour: Exclude<ReceiverBehaviour, 'good'>, response: ServerResponse): void {
  if (behaviour === 'hang') return;
  if (behaviour === 'slow') systemClock.after(SLOW_ANSWER_AFTER, () => response.writeHead(204).end());
  else if (behaviour === '500') response.writeHead(500).end('sorry');
  else if (behaviour === 'redirect') response.writeHead(302, { location: '/elsewhere' }).end();
  else if (behaviour === 'reset') response.socket?.resetAndDestroy();
  else {
    response.writeHead(200, { 'content-length': String(GIGABYTE_BYTES) });
    const writeUntilFull = (): void => {
      while (!response.destroyed && response.write(CHUNK));
    };
    response.on('drain', writeUntilFull).on('error', () => undefined);
    writeUntilFull();
  }
}

async function main(argument: string): Promise<void> {
  const host = new ReceiverHost();
  const urls = await Promise.all(
    (JSON.parse(argument) as WebhookHostRequest).receivers.map((behaviour) => host.open(behaviour)),
  );
  console.log(JSON.stringify({ urls }));
  for await (const line of createInterface({ input: process.stdin })) {
    const [command, count] = line.split(' ');
    if (command === 'await') console.log(JSON.stringify(await host.await(Number(count))));
    else if (command === 'received') console.log(JSON.stringify(host.takeReceived()));
    else if (command === 'lags') console.log(JSON.stringify({ lags: host.lags.splice(0) }));
    else {
      host.misbehaves = command === 'bad';
      console.log('{}');
    }
  }
  process.exit(0);
}

if (process.argv[1] === import.meta.filename) await main(process.argv[2] ?? '');
