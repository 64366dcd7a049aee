/**
 * The bench's rows `idle` and `reconnect`: 10,000 locks that are connected and silent, and 10,000 locks that reconnect
 * at once after an outage. Compared with bare aedes (the broker library without lockgate's code), which neither
 * authenticates nor stores (quality.md §1).
 */

import type { BrokerHostRequest } from '../load/broker-host.js';
import type { ChildProgram } from '../load/child-program.js';
import { registerLocks } from '../load/lock-logins.js';
import type { ManyLocksRequest } from '../load/many-locks.js';
import { measureAlternating, roundCount, summarizeFigures } from '../measure.js';
import { type Resources, withResources } from '../resources.js';
import { atMost, type BenchOptions, type BenchRow, ratioTo } from '../row.js';

const LOCKS = 10_000;

/** A broker (the gateway or bare aedes) and the locks that connect to it, each in a separate process. */
class Setup {
  readonly #name: string;
  readonly #broker: ChildProgram;
  readonly #locks: ChildProgram;

  private constructor(name: string, brokerProgram: ChildProgram, locks: ChildProgram) {
    this.#name = name;
    this.#broker = brokerProgram;
    this.#locks = locks;
  }

  static async open(resources: Resources, request: BrokerHostRequest): Promise<Setup> {
    const brokerProgram = resources.startScript('load/broker-host.js', request);
    const { port } = await brokerProgram.readAnswer<{ port: number }>();
    const locks = resources.startScript('load/many-locks.js', {
      port,
      locks: LOCKS,
      subscribes: true,
    } satisfies ManyLocksRequest);
    return new Setup(request.host, brokerProgram, locks);
  }

  /** Resident memory, bytes, once this number of locks is connected and nothing changes any more. */
  async waitForMemory(connected: number): Promise<number> {
    return (await this.#broker.ask<{ rss: number }>(String(connected))).rss;
  }

  /** Connects all locks. Returns how long this took, ms. */
  async connect(): Promise<number> {
    const { retries, ms } = await this.#locks.ask<{ retries: number; ms: number }>('connect');
    if (retries > 0) console.error(`  ${this.#name}: ${retries} had to try again`);
    return ms;
  }

  /** Resets all connections, as an outage of the network does. */
  async drop(): Promise<void> {
    await this.#locks.ask('drop');
  }

  async close(): Promise<void> {
    await this.#locks.stop();
    await this.#broker.stop();
  }
}

/** The row `idle`: memory per connected, silent lock, compared with bare aedes. */
export function benchIdleLocks({ quick }: BenchOptions): Promise<BenchRow> {
  return withResources(async (resources) => {
    const data = resources.makeFolder();
    await registerLocks(data, LOCKS);
    const measureGrowthWith = (brokerName: BrokerHostRequest['host']) => async (): Promise<number> => {
      const setup = await Setup.open(resources, { host: brokerName, data });
      const before = await setup.waitForMemory(0);
      await setup.connect();
      const after = await setup.waitForMemory(LOCKS);
      await setup.close();
      return (after - before) / LOCKS;
    };
    // No warm-up, since each round starts new processes.
    const [rates, peerRates] = (
      await measureAlternating([measureGrowthWith('gateway'), measureGrowthWith('aedes')], roundCount(quick), 0)
    ).map(summarizeFigures);
    if (rates === undefined || peerRates === undefined) throw new Error('nothing was measured');
    return {
      name: 'idle',
      title: `memory of ${LOCKS.toLocaleString('en')} idle locks`,
      unit: 'bytes each',
      rates,
      against: [ratioTo('bare aedes', rates, peerRates, { floor: atMost(1.5), aim: atMost(1) })],
      details: [],
    };
  });
}

/** The row `reconnect`: the time in which 10,000 locks reconnect, compared with bare aedes, which checks no secrets. */
export function benchReconnect({ quick }: BenchOptions): Promise<BenchRow> {
  return withResources(async (resources) => {
    const data = resources.makeFolder();
    await registerLocks(data, LOCKS);
    const gatewaySetup = await Setup.open(resources, { host: 'gateway', data });
    const aedesSetup = await Setup.open(resources, { host: 'aedes', data });
    const measureReconnectOf = (setup: Setup) => async (): Promise<number> => {
      // Called for the wait, here and below: the broker must have noticed that all connections ended, or all began.
      await setup.waitForMemory(0);
      const ms = await setup.connect();
      await setup.waitForMemory(LOCKS);
      await setup.drop();
      return ms;
    };
    // In the warm-up the locks connect for the first time.
    const [rates, peerRates] = (
      await measureAlternating([measureReconnectOf(gatewaySetup), measureReconnectOf(aedesSetup)], roundCount(quick))
    ).map(summarizeFigures);
    if (rates === undefined || peerRates === undefined) throw new Error('nothing was measured');
    return {
      name: 'reconnect',
      title: `${LOCKS.toLocaleString('en')} locks reconnecting at once`,
      unit: 'ms',
      rates,
      against: [ratioTo('bare aedes, without secrets', rates, peerRates, { floor: atMost(2), aim: atMost(1.2) })],
      details: [],
    };
  });
}
