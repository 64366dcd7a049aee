/**
 * The program that webhook deliveries are compared with: the HTTP client got with keep-alive, which signs and stores
 * nothing. It takes one argument, a {@link SenderRequest} as JSON. Each line of stdin is a number N: the program posts
 * the body N times and answers `{"ms":t}`, the time that took.
 */
import { Agent } from 'node:http';
import { createInterface } from 'node:readline';
import got from 'got';

export interface SenderRequest {
  readonly url: string;
  readonly body: string;
  /** The number of requests under way at a time. */
  readonly concurrency: number;
}

async function main(argument: string): Promise<void> {
  const { url, body, concurrency } = JSON.parse(argument) as SenderRequest;
  const agent = { http: new Agent({ keepAlive: true, maxFreeSockets: concurrency }) };
  const headers = { 'content-type': 'application/json' };
  console.log('{}');
  for await (const line of createInterface({ input: process.stdin })) {
    const startedAt = performance.now();
    let remaining = Number(line);
    const postUntilNoneRemain = async (): Promise<void> => {
      while (remaining-- > 0) await got.post(url, { body, headers, agent });
    };
    await Promise.all(Array.from({ length: concurrency }, postUntilNoneRemain));
    console.log(JSON.stringify({ ms: performance.now() - startedAt }));
  }
  process.exit(0);
}

await main(process.argv[2] ?? '');
