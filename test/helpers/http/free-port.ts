import { createServer } from 'node:net';

/** Below what Linux gives to outgoing connections: such a port is not taken by one while its server is down. */
const LEAST = 20_000;
/** Test files run beside each other, each in a process of its own: each gives ports of a range of its own. */
const RANGES = 300;
const PORTS = 40;

let given = 0;

/** A port of loopback on which nothing listens, for a server that is started again on the same one. */
export async function freePort(): Promise<number> {
  const first = LEAST + (process.pid % RANGES) * PORTS;
  for (let tries = 0; tries < PORTS; tries += 1) {
    const port = first + (given++ % PORTS);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port from ${first} on`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
