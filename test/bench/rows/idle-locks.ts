/**
 * Very many locks that are connected and say nothing, and very many that come back at once after an outage, beside bare
 * aedes that checks and keeps nothing (quality.md §1).
 */
import { provisionCrowd } from '../load/crowd-accounts.js';
import type { HostRequest } from '../load/crowd-host.js';
import type { CrowdRequest } from '../load/lock-crowd.js';
import type { Obedient } from '../load/obedient.js';
import { inTurns, ratesOf, roundsOf } from '../measure.js';
import { atMost, type BenchOptions, type Row, ratioTo } from '../row.js';
import { onStage, type Stage } from '../stage.js';

const LOCKS = 10_000;

/** A host, and the crowd that connects to it. */
class Site {
  readonly #name: string;
  readonly #host: Obedient;
  readonly #crowd: Obedient;

  private constructor(name: string, host: Obedient, crowd: Obedient) {
    this.#name = name;
    this.#host = host;
    this.#crowd = crowd;
  }

  static async open(stage: Stage, request: HostRequest): Promise<Site> {
    const host = stage.script('load/crowd-host.js', request);
    const { port } = await host.answer<{ port: number }>();
    const crowd = stage.script('load/lock-crowd.js', {
      port,
      locks: LOCKS,
      subscribes: true,
    } satisfies CrowdRequest);
    return new Site(request.host, host, crowd);
  }

  /** Resident bytes, once so many are connected and all is quiet. */
  async rss(connected: number): Promise<number> {
    return (await this.#host.answer<{ rss: number }>(String(connected))).rss;
  }

  /** All connect; how long it took, ms. */
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

/** Memory per connected lock that says nothing: what 10,000 add to a process, over bare aedes' same. */
export function benchIdleLocks({ quick }: BenchOptions): Promise<Row> {
  return onStage(async (stage) => {
    const data = stage.folder();
    await provisionCrowd(data, LOCKS);
    const growth = (host: HostRequest['host']) => async (): Promise<number> => {
      const site = await Site.open(stage, { host, data });
      const before = await site.rss(0);
      await site.connect();
      const after = await site.rss(LOCKS);
      await site.close();
      return (after - before) / LOCKS;
    };
    // Each round has new processes: there is nothing to warm up.
    const [rates, peer] = (await inTurns([growth('gateway'), growth('aedes')], roundsOf(quick), 0)).map(ratesOf);
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

/** The time that 10,000 locks take that come back at once, with their secrets, over that of bare aedes, with none. */
export function benchReconnect({ quick }: BenchOptions): Promise<Row> {
  return onStage(async (stage) => {
    const data = stage.folder();
    await provisionCrowd(data, LOCKS);
    const ours = await Site.open(stage, { host: 'gateway', data });
    const bare = await Site.open(stage, { host: 'aedes', data });
    const reconnect = (site: Site) => async (): Promise<number> => {
      await site.rss(0);
      const ms = await site.connect();
      await site.rss(LOCKS);
      await site.drop();
      return ms;
    };
    // The warm-up has the locks that never connected before.
    const [rates, peer] = (await inTurns([reconnect(ours), reconnect(bare)], roundsOf(quick))).map(ratesOf);
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
