/**
 * The hostile neighbour or the other server, depending on the argument. `{"role":"neighbour"}`: each line of stdin is a
 * {@link Flood} as JSON, which starts a flood and is answered with `{}`; the line `end` stops the flood and is answered
 * with the counts of its answers. `{"role":"server"}`: answers every request with 200 and prints `{"port":n}`.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { type Answered, type Flood, startFlood } from './http-flood.js';

export interface FloodHostRequest {
  readonly role: 'neighbour' | 'server';
}

async function beNeighbour(): Promise<void> {
  let end: (() => Answered) | undefined;
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === 'end') {
      console.log(JSON.stringify(end?.() ?? {}));
      end = undefined;
    } else {
      end = startFlood(JSON.parse(line) as Flood);
      console.log('{}');
    }
  }
  end?.();
}

function beServer(): void {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => response.end('{}'));
  });
  server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ port: (server.address() as AddressInfo).port })));
  process.stdin.on('end', () => process.exit()).resume();
}

const { role } = JSON.parse(process.argv[2] ?? '{}') as FloodHostRequest;
if (role === 'server') beServer();
else await beNeighbour();
