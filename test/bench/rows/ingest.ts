/**
 * The rows `ingest` and `urls`: durable pings a second (quality.md §1) from authenticated locks, decoded, deduplicated,
 * judged, stored with their events for the merchant's URL, fsynced, then acknowledged. Peers: a broker that does none
 * of this, and a broker with a subscriber that stores pings.
 */

import { cpuPerPing, describeCpuTime, readCpuTime } from '../cpu-share.js';
import { crowdLocks } from '../load/crowd-accounts.js';
import { Generator } from '../load/generator.js';
import { alternate, ratesOf, roundsOf } from '../measure.js';
import { MOSQUITTO_MISSING, MosquittoSetup } from '../peers/mosquitto-setup.js';
import { type Resources, withResources } from '../resources.js';
import { atLeast, type BenchOptions, notMeasured, type Row, ratioTo } from '../row.js';
import { type FloodFigures, ServeSetup } from '../serve-setup.js';

/** The number of locks in quality.md §1. */
export const LOCKS = 1000;

/** The length of one round, ms. */
export function roundMs(quick: boolean): number {
  return quick ? 700 : 1500;
}

/** Bare aedes in a separate process, with its own load generator. */
export class AedesSetup {
  readonly generator: Generator;
  readonly #pid: number | undefined;

  private constructor(generator: Generator, pid: number | undefined) {
    this.generator = generator;
    this.#pid = pid;
  }

  static async open(resources: Resources, locks: number): Promise<AedesSetup> {
    const broker = resources.script('peers/bare-aedes.js', {});
    const { port } = await broker.answer<{ port: number }>();
    return new AedesSetup(await Generator.start(resources, { port, locks: crowdLocks(locks) }), broker.pid);
  }

  /** Floods aedes. Returns the acknowledged pings a second, and a line about the CPU time per ping. */
  async run(milliseconds: number): Promise<{ readonly rate: number; readonly cpuLine: string }> {
    const before = [readCpuTime(this.#pid), this.generator.cpu()] as const;
    const { pings, ms } = await this.generator.run(milliseconds);
    const broker = describeCpuTime(cpuPerPing(before[0], readCpuTime(this.#pid), pings));
    const generator = describeCpuTime(cpuPerPing(before[1], this.generator.cpu(), pings));
    return { rate: pings / (ms / 1000), cpuLine: `CPU a ping: bare aedes ${broker}, its generator ${generator}` };
  }
}

async function runMosquitto(setup: MosquittoSetup, milliseconds: number): Promise<{ rate: number; cpuLine: string }> {
  const before = { ...setup.cpu(), generator: setup.generator.cpu() };
  const { pings, rate } = await setup.run(milliseconds);
  const after = { ...setup.cpu(), generator: setup.generator.cpu() };
  const text = (name: keyof typeof before): string => describeCpuTime(cpuPerPing(before[name], after[name], pings));
  const [broker, subscriber, generator] = [text('broker'), text('subscriber'), text('generator')];
  const shares = `Mosquitto ${setup.version} ${broker}, its subscriber ${subscriber}, its generator ${generator}`;
  return { rate, cpuLine: `CPU a ping: ${shares}` };
}

/** Lines about a flood besides its rate: CPU time, and how far webhooks lagged behind. */
export function floodDetails({ gateway, generator, pings, delivered, behindMs }: FloodFigures, urls = 1): string[] {
  const behind = (pings * urls - delivered).toLocaleString('en');
  return [
    `CPU a ping: lockgate ${describeCpuTime(gateway)}, its generator ${describeCpuTime(generator)}`,
    `of ${(pings * urls).toLocaleString('en')} webhooks of the last flood ${delivered.toLocaleString('en')} had ` +
      `arrived when its last ping was acknowledged: ${behind} behind, the last one ${Math.round(behindMs)} ms`,
  ];
}

/** The row `ingest`. */
export function benchIngest({ quick, profiles }: BenchOptions): Promise<Row> {
  return withResources(async (resources) => {
    const span = roundMs(quick);
    const setup = await ServeSetup.open(resources, { locks: LOCKS, urls: 1, profiles });
    const aedes = await AedesSetup.open(resources, LOCKS);
    const mosquitto = await MosquittoSetup.open(resources, LOCKS);
    let last: FloodFigures | undefined;
    const cpuLines: string[] = [];
    const runLockgate = async (): Promise<number> => {
      last = await setup.run(span);
      return last.rate;
    };
    const peer =
      (index: number, run: () => Promise<{ rate: number; cpuLine: string }>) => async (): Promise<number> => {
        const figures = await run();
        cpuLines[index] = figures.cpuLine;
        return figures.rate;
      };
    const works = [runLockgate, peer(0, () => aedes.run(span))];
    if (mosquitto !== null) works.push(peer(1, () => runMosquitto(mosquitto, span)));
    const [rates, bare, withSubscriber] = (await alternate(works, roundsOf(quick))).map(ratesOf);
    const findings = setup.stored.findings();
    await setup.stop();
    if (rates === undefined || bare === undefined || last === undefined) throw new Error('nothing was measured');
    const name = 'Mosquitto and a subscriber that writes SQLite';
    const [floor, aim] = [atLeast(1), atLeast(2)];
    return {
      name: 'ingest',
      title: `durable pings of ${LOCKS.toLocaleString('en')} locks, 1 webhook URL`,
      unit: 'pings/s',
      rates,
      against: [
        ratioTo('bare aedes', rates, bare, atLeast(0.6), atLeast(1)),
        withSubscriber === undefined
          ? notMeasured(name, floor, aim, MOSQUITTO_MISSING)
          : ratioTo(name, rates, withSubscriber, floor, aim),
      ],
      details: [
        ...floodDetails(last),
        ...cpuLines,
        `the load generator is in ${setup.generator.kind}; every ping that was acknowledged was found in the store, ` +
          `with ${findings} findings in all`,
      ],
    };
  });
}

/** The row `urls`: a merchant with five URLs, compared with a merchant with one. */
export function benchUrls({ quick, profiles }: BenchOptions): Promise<Row> {
  return withResources(async (resources) => {
    const span = roundMs(quick);
    const five = await ServeSetup.open(resources, { locks: LOCKS, urls: 5, profiles });
    const one = await ServeSetup.open(resources, { locks: LOCKS, urls: 1 });
    let last: FloodFigures | undefined;
    const runFiveUrls = async (): Promise<number> => {
      last = await five.run(span);
      return last.rate;
    };
    const runOneUrl = async (): Promise<number> => (await one.run(span)).rate;
    const [rates, peer] = (await alternate([runFiveUrls, runOneUrl], roundsOf(quick))).map(ratesOf);
    await five.stop();
    if (rates === undefined || peer === undefined || last === undefined) throw new Error('nothing was measured');
    return {
      name: 'urls',
      title: 'durable pings, 5 webhook URLs',
      unit: 'pings/s',
      rates,
      against: [ratioTo('itself with 1 URL', rates, peer, atLeast(0.8), atLeast(0.95))],
      details: floodDetails(last, 5),
    };
  });
}
