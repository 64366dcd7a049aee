import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Below what Linux gives to outgoing connections: such a port is not taken by one while its server is down. */
const LEAST = 20_000;
const LIMIT = 32_000;
const TRIES = 50;

/** A port of loopback on which nothing listens, for a server that is started again on the same one. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const port = randomInt(LEAST, LIMIT);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port in ${TRIES} tries`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
