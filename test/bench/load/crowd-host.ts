/**
 * The server that the locks of lock-crowd.ts connect to: a gateway, or bare aedes, which authenticates nobody and
 * stores nothing. The program takes one argument, a {@link HostRequest} as JSON, and prints `{"port":n}` when it is
 * ready. Each line of stdin is a number: once exactly so many locks are connected, the program prints its memory after
 * a garbage collection, `{"rss":bytes}`. Needs --expose-gc.
 */
import { createInterface } from 'node:readline';
import { startGateway } from '../../../gateway/gateway.js';
import { systemClock } from '../../../proto/clock.js';
import { testConfig } from '../../helpers/gateway/test-gateway.js';
import { openBareAedes } from '../peers/bare-aedes.js';

export interface HostRequest {
  readonly host: 'gateway' | 'aedes';
  readonly data: string;
}

interface Host {
  readonly port: number;
  readonly connected: () => number;
}

/** How often the number of connections is compared with the expected one. */
const POLL_EVERY_MS = 50;
/** How long to wait for pending work before memory is measured. */
const SETTLE_MS = 500;

async function gatewayHost(data: string): Promise<Host> {
  const gateway = await startGateway(testConfig(data));
  let connected = 0;
  gateway.events.on('connected', () => {
    connected += 1;
  });
  gateway.events.on('disconnected', () => {
    connected -= 1;
  });
  return { port: gateway.mqttPort, connected: () => connected };
}

function later(milliseconds: number): Promise<void> {
  return new Promise((resolve) => systemClock.after(milliseconds, resolve));
}

async function main(argument: string): Promise<void> {
  const { host, data } = JSON.parse(argument) as HostRequest;
  const { port, connected } = host === 'gateway' ? await gatewayHost(data) : await openBareAedes();
  console.log(JSON.stringify({ port }));
  for await (const line of createInterface({ input: process.stdin })) {
    while (connected() !== Number(line)) await later(POLL_EVERY_MS);
    await later(SETTLE_MS);
    for (let round = 0; round < 3; round++) {
      globalThis.gc?.();
      await later(POLL_EVERY_MS);
    }
    console.log(JSON.stringify({ rss: process.memoryUsage.rss() }));
  }
  process.exit(0);
}

await main(process.argv[2] ?? '');
