/**
 * The simplest broker that lockgate's ingest is compared with: the library aedes alone, which authenticates no client,
 * stores nothing and acknowledges every message. Run as a program, it prints `{"port":n}` and ends when its stdin is
 * closed.
 */
import { type AddressInfo, createServer } from 'node:net';
import { Aedes } from 'aedes';

export interface BareAedes {
  readonly port: number;
  /** The number of connected clients. */
  readonly connected: () => number;
}

/** Starts the broker in this process. */
export async function openBareAedes(): Promise<BareAedes> {
  const broker = await Aedes.createBroker();
  const server = createServer(broker.handle);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: (server.address() as AddressInfo).port, connected: () => broker.connectedClients };
}

async function main(): Promise<void> {
  const { port } = await openBareAedes();
  console.log(JSON.stringify({ port }));
  process.stdin.on('end', () => process.exit(0)).resume();
}

if (process.argv[1] === import.meta.filename) await main();
