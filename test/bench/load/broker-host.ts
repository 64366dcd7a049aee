/**
 * A program that runs the broker to which the locks of many-locks.ts connect: a gateway, or bare aedes, which neither
 * authenticates nor stores. It takes one argument, a {@link BrokerHostRequest} as JSON, and prints `{"port":n}` when it
 * is ready. Each line of stdin is a number of locks: once exactly that many are connected, the program collects garbage
 * and prints its resident memory, `{"rss":bytes}`. Needs --expose-gc.
 */
import { createInterface } from 'node:readline';
import { startGateway } from '../../../gateway/gateway.js';
import { systemClock } from '../../../proto/clock.js';
import { testConfig } from '../../helpers/gateway/test-gateway.js';
import { openBareAedes } from '../peers/bare-aedes.js';

/** The program's argument: which broker, and the gateway's data folder. */
export interface BrokerHostRequest {
  readonly host: 'gateway' | 'aedes';
  readonly data: string;
}

interface Broker {
  readonly port: number;
  /** The number of connected locks. */
  readonly connected: () => number;
}

/** How often the number of connections is compared with the expected one. */
const POLL_EVERY_MS = 50;
const GC_ROUNDS = 3;
/** How long to wait for pending work before memory is measured. */
const IDLE_WAIT_MS = 500;

async function startGatewayBroker(data: string): Promise<Broker> {
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

/** Resolves after this time. */
function later(milliseconds: number): Promise<void> {
  return new Promise((resolve) => systemClock.after(milliseconds, resolve));
}

async function main(argument: string): Promise<void> {
  const { host, data } = JSON.parse(argument) as BrokerHostRequest;
  const { port, connected } = host === 'gateway' ? await startGatewayBroker(data) : await openBareAedes();
  console.log(JSON.stringify({ port }));
  for await (const line of createInterface({ input: process.stdin })) {
    while (connected() !== Number(line)) await later(POLL_EVERY_MS);
    await later(IDLE_WAIT_MS);
    // Several collections, since some objects are freed only by the collection after the one that finds them unused.
    for (let round = 0; round < GC_ROUNDS; round++) {
      globalThis.gc?.();
      await later(POLL_EVERY_MS);
    }
    console.log(JSON.stringify({ rss: process.memoryUsage.rss() }));
  }
  process.exit(0);
}

await main(process.argv[2] ?? '');
