/** Finds free ports for test servers that are restarted on the same port. */
import { createServer } from 'node:net';

/** The ranges are below Linux's ports for outgoing connections, so no connection takes a port whose server is down. */
const FIRST_PORT = 20_000;
/** Test files run in parallel processes, so each process uses its own range of ports. */
const RANGES = 300;
const PORTS_PER_RANGE = 40;

/** The number of ports that this process has tried; the next call tries the next port. */
let portsTried = 0;

/** A port of the loopback interface on which nothing listens. @throws Error if the process's range has none */
export async function freePort(): Promise<number> {
  const first = FIRST_PORT + (process.pid % RANGES) * PORTS_PER_RANGE;
  for (let tries = 0; tries < PORTS_PER_RANGE; tries += 1) {
    const port = first + (portsTried++ % PORTS_PER_RANGE);
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
