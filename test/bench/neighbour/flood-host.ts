/**
 * A program of the bench's row `neighbour`, in one of two roles, by its argument. `{"role":"neighbour"}` is the hostile
 * client: each line of stdin is a {@link Flood} as JSON, which starts a flood and is answered with `{}`; the line `end`
 * stops the flood and is answered with the numbers of HTTP answers by status. `{"role":"server"}` is an HTTP server
 * that stands for another service on the machine: it prints `{"port":n}` and answers every request with 200.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { type AnswerCounts, type Flood, startFlood } from './http-flood.js';

/** The program's argument. */
export interface FloodHostRequest {
  readonly role: 'neighbour' | 'server';
}

/** The hostile client. */
async function runNeighbour(): Promise<void> {
  let stopFlood: (() => AnswerCounts) | undefined;
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === 'end') {
      console.log(JSON.stringify(stopFlood?.() ?? {}));
      stopFlood = undefined;
    } else {
      stopFlood = startFlood(JSON.parse(line) as Flood);
      console.log('{}');
    }
  }
  stopFlood?.();
}

/** The other service. */
function runServer(): void {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => response.end('{}'));
  });
  server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ port: (server.address() as AddressInfo).port })));
  process.stdin.on('end', () => process.exit()).resume();
}

const { role } = JSON.parse(process.argv[2] ?? '{}') as FloodHostRequest;
if (role === 'server') runServer();
else await runNeighbour();
