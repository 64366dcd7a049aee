/**
 * Durable pings a second (quality.md §1): those of an authenticated lock, decoded, deduplicated, judged, stored with
 * their events for the merchant's URL, fsynced, and acknowledged then; beside a broker that does nothing of it, and
 * beside what people build instead.
 */

import { MOSQUITTO_MISSING, MosquittoSite } from '../beside/mosquitto-site.js';
import { cpuPerPing, cpuText, cpuTime } from '../cpu-share.js';
import { crowdLocks } from '../load/crowd-accounts.js';
import { Generator } from '../load/generator.js';
import { inTurns, ratesOf, roundsOf } from '../measure.js';
import { atLeast, type BenchOptions, notMeasured, type Row, ratioTo } from '../row.js';
import { type FloodFigures, ServeSite } from '../serve-site.js';
import { onStage, type Stage } from '../stage.js';

/** The load of quality.md §1. */
export const LOCKS = 1000;

/** How long one round lasts, ms. */
export function roundMs(quick: boolean): number {
  return quick ? 700 : 1500;
}

/** Bare aedes and a crowd of its own. */
export class AedesSite {
  readonly generator: Generator;
  readonly #pid: number | undefined;

  private constructor(generator: Generator, pid: number | undefined) {
    this.generator = generator;
    this.#pid = pid;
  }

  static async open(stage: Stage, locks: number): Promise<AedesSite> {
    const broker = stage.script('beside/bare-aedes.js', {});
    const { port } = await broker.answer<{ port: number }>();
    return new AedesSite(await Generator.start(stage, { port, locks: crowdLocks(locks) }), broker.pid);
  }

  /** Acknowledged pings a second, and what was said of the CPU that each took. */
  async run(milliseconds: number): Promise<{ readonly rate: number; readonly said: string }> {
    const before = [cpuTime(this.#pid), this.generator.cpu()] as const;
    const { pings, ms } = await this.generator.run(milliseconds);
    const broker = cpuText(cpuPerPing(before[0], cpuTime(this.#pid), pings));
    const generator = cpuText(cpuPerPing(before[1], this.generator.cpu(), pings));
    return { rate: pings / (ms / 1000), said: `CPU a ping: bare aedes ${broker}, its generator ${generator}` };
  }
}

async function runMosquitto(site: MosquittoSite, milliseconds: number): Promise<{ rate: number; said: string }> {
  const before = { ...site.cpu(), generator: site.generator.cpu() };
  const { pings, rate } = await site.run(milliseconds);
  const after = { ...site.cpu(), generator: site.generator.cpu() };
  const text = (name: keyof typeof before): string => cpuText(cpuPerPing(before[name], after[name], pings));
  const [broker, subscriber, generator] = [text('broker'), text('subscriber'), text('generator')];
  const said = `Mosquitto ${site.version} ${broker}, its subscriber ${subscriber}, its generator ${generator}`;
  return { rate, said: `CPU a ping: ${said}` };
}

/** What was seen in a flood beside its rate. */
export function floodDetails({ gateway, generator, pings, delivered, behindMs }: FloodFigures, urls = 1): string[] {
  const behind = (pings * urls - delivered).toLocaleString('en');
  return [
    `CPU a ping: lockgate ${cpuText(gateway)}, its generator ${cpuText(generator)}`,
    `of ${(pings * urls).toLocaleString('en')} webhooks of the last flood ${delivered.toLocaleString('en')} had ` +
      `arrived when its last ping was acknowledged: ${behind} behind, the last one ${Math.round(behindMs)} ms`,
  ];
}

/** The row `ingest`. */
export function benchIngest({ quick, profiles }: BenchOptions): Promise<Row> {
  return onStage(async (stage) => {
    const span = roundMs(quick);
    const site = await ServeSite.open(stage, { locks: LOCKS, urls: 1, profiles });
    const aedes = await AedesSite.open(stage, LOCKS);
    const mosquitto = await MosquittoSite.open(stage, LOCKS);
    let last: FloodFigures | undefined;
    const said: string[] = [];
    const ours = async (): Promise<number> => {
      last = await site.run(span);
      return last.rate;
    };
    const peer = (index: number, run: () => Promise<{ rate: number; said: string }>) => async (): Promise<number> => {
      const figures = await run();
      said[index] = figures.said;
      return figures.rate;
    };
    const works = [ours, peer(0, () => aedes.run(span))];
    if (mosquitto !== null) works.push(peer(1, () => runMosquitto(mosquitto, span)));
    const [rates, bare, built] = (await inTurns(works, roundsOf(quick))).map(ratesOf);
    const findings = site.stored.findings();
    await site.stop();
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
        built === undefined
          ? notMeasured(name, floor, aim, MOSQUITTO_MISSING)
          : ratioTo(name, rates, built, floor, aim),
      ],
      details: [
        ...floodDetails(last),
        ...said,
        `the load generator is in ${site.generator.kind}; every ping that was acknowledged was found in the store, ` +
          `with ${findings} findings in all`,
      ],
    };
  });
}

/** The row `urls`: a merchant with five URLs beside one with one. */
export function benchUrls({ quick, profiles }: BenchOptions): Promise<Row> {
  return onStage(async (stage) => {
    const span = roundMs(quick);
    const five = await ServeSite.open(stage, { locks: LOCKS, urls: 5, profiles });
    const one = await ServeSite.open(stage, { locks: LOCKS, urls: 1 });
    let last: FloodFigures | undefined;
    const ours = async (): Promise<number> => {
      last = await five.run(span);
      return last.rate;
    };
    const theirs = async (): Promise<number> => (await one.run(span)).rate;
    const [rates, peer] = (await inTurns([ours, theirs], roundsOf(quick))).map(ratesOf);
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
