/**
 * The rows `idle` and `reconnect`: 10,000 locks that are connected and silent, and 10,000 locks that reconnect at once
 * after an outage, compared with bare aedes, which authenticates nobody and stores nothing (quality.md §1).
 */

import type { ChildProgram } from '../load/child-program.js';
import { provisionCrowd } from '../load/crowd-accounts.js';
import type { HostRequest } from '../load/crowd-host.js';
import type { CrowdRequest } from '../load/lock-crowd.js';
import { alternate, ratesOf, roundsOf } from '../measure.js';
import { type Resources, withResources } from '../resources.js';
import { atMost, type BenchOptions, type Row, ratioTo } from '../row.js';

const LOCKS = 10_000;

/** A host (the gateway or bare aedes), and the locks that connect to it. */
class Setup {
  readonly #name: string;
  readonly #host: ChildProgram;
  readonly #crowd: ChildProgram;

  private constructor(name: string, host: ChildProgram, crowd: ChildProgram) {
    this.#name = name;
    this.#host = host;
    this.#crowd = crowd;
  }

  static async open(resources: Resources, request: HostRequest): Promise<Setup> {
    const host = resources.script('load/crowd-host.js', request);
    const { port } = await host.answer<{ port: number }>();
    const crowd = resources.script('load/lock-crowd.js', {
      port,
      locks: LOCKS,
      subscribes: true,
    } satisfies CrowdRequest);
    return new Setup(request.host, host, crowd);
  }

  /** Resident memory, bytes, once this number of locks is connected and nothing changes any more. */
  async rss(connected: number): Promise<number> {
    return (await this.#host.answer<{ rss: number }>(String(connected))).rss;
  }

  /** Connects all locks. Returns how long this took, ms. */
  async connect(): Promise<number> {
    const { retries, ms } = await this.#crowd.answer<{ retries: number; ms: number }>('connect');
    if (retries > 0) console.error(`  ${this.#name}: ${retries} had to try again`);
    return ms;
  }

  async drop(): Promise<void> {
    await this.#crowd.answer('drop');
  }

  async close(): Promise<void> {
    await this.#crowd.end();
    await this.#host.end();
  }
}

/** The row `idle`: memory per connected, silent lock, compared with bare aedes. */
export function benchIdleLocks({ quick }: BenchOptions): Promise<Row> {
  return withResources(async (resources) => {
    const data = resources.folder();
    await provisionCrowd(data, LOCKS);
    const growth = (host: HostRequest['host']) => async (): Promise<number> => {
      const setup = await Setup.open(resources, { host, data });
      const before = await setup.rss(0);
      await setup.connect();
      const after = await setup.rss(LOCKS);
      await setup.close();
      return (after - before) / LOCKS;
    };
    // No warm-up, since each round starts new processes.
    const [rates, peer] = (await alternate([growth('gateway'), growth('aedes')], roundsOf(quick), 0)).map(ratesOf);
    if (rates === undefined || peer === undefined) throw new Error('nothing was measured');
    return {
      name: 'idle',
      title: `memory of ${LOCKS.toLocaleString('en')} idle locks`,
      unit: 'bytes each',
      rates,
      against: [ratioTo('bare aedes', rates, peer, atMost(1.5), atMost(1))],
      details: [],
    };
  });
}

/** The row `reconnect`: the time in which 10,000 locks reconnect, compared with bare aedes, which checks no secrets. */
export function benchReconnect({ quick }: BenchOptions): Promise<Row> {
  return withResources(async (resources) => {
    const data = resources.folder();
    await provisionCrowd(data, LOCKS);
    const gatewaySetup = await Setup.open(resources, { host: 'gateway', data });
    const aedesSetup = await Setup.open(resources, { host: 'aedes', data });
    const reconnect = (setup: Setup) => async (): Promise<number> => {
      await setup.rss(0);
      const ms = await setup.connect();
      await setup.rss(LOCKS);
      await setup.drop();
      return ms;
    };
    // In the warm-up the locks connect for the first time.
    const [rates, peer] = (await alternate([reconnect(gatewaySetup), reconnect(aedesSetup)], roundsOf(quick))).map(
      ratesOf,
    );
    if (rates === undefined || peer === undefined) throw new Error('nothing was measured');
    return {
      name: 'reconnect',
      title: `${LOCKS.toLocaleString('en')} locks reconnecting at once`,
      unit: 'ms',
      rates,
      against: [ratioTo('bare aedes, without secrets', rates, peer, atMost(2), atMost(1.2))],
      details: [],
    };
  });
}
