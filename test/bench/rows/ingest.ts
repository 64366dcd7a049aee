/**
 * The bench's rows `ingest` and `urls`: durable pings a second (quality.md §1). The gateway authenticates the locks,
 * decodes each ping, drops duplicates, checks the power model, stores the ping with its events for the merchant's URL,
 * fsyncs, then acknowledges. Compared with bare aedes, a broker that does none of this, and with Mosquitto, a broker
 * with a subscriber that stores pings.
 */

import { cpuPerPing, describeCpuTime, readCpuTime } from '../cpu-share.js';
import { LoadGenerator } from '../load/generator.js';
import { lockLogins } from '../load/lock-logins.js';
import { measureAlternating, roundCount, summarizeFigures } from '../measure.js';
import { MOSQUITTO_MISSING, MosquittoSetup } from '../peers/mosquitto-setup.js';
import { type Resources, withResources } from '../resources.js';
import { atLeast, type BenchOptions, type BenchRow, notMeasured, ratioTo } from '../row.js';
import { type FloodFigures, ServeSetup } from '../serve-setup.js';

/** The number of locks in most rows, by quality.md §1. */
export const BENCH_LOCKS = 1000;

/** The duration of one flood, ms. */
export function roundDurationMs(quick: boolean): number {
  return quick ? 700 : 1500;
}

/** Bare aedes (the broker library without lockgate's code) in a separate process, with its own load generator. */
export class AedesSetup {
  readonly generator: LoadGenerator;
  readonly #pid: number | undefined;

  private constructor(generator: LoadGenerator, pid: number | undefined) {
    this.generator = generator;
    this.#pid = pid;
  }

  static async open(resources: Resources, locks: number): Promise<AedesSetup> {
    const broker = resources.startScript('peers/bare-aedes.js', {});
    const { port } = await broker.readAnswer<{ port: number }>();
    return new AedesSetup(await LoadGenerator.start(resources, { port, locks: lockLogins(locks) }), broker.pid);
  }

  /** Floods aedes. Returns the acknowledged pings a second, and a line about the CPU time per ping. */
  async run(milliseconds: number): Promise<{ readonly rate: number; readonly cpuLine: string }> {
    const before = [readCpuTime(this.#pid), this.generator.cpu()] as const;
    const { pings, ms } = await this.generator.floodFor(milliseconds);
    const broker = describeCpuTime(cpuPerPing(before[0], readCpuTime(this.#pid), pings));
    const generator = describeCpuTime(cpuPerPing(before[1], this.generator.cpu(), pings));
    return { rate: pings / (ms / 1000), cpuLine: `CPU a ping: bare aedes ${broker}, its generator ${generator}` };
  }
}

/** Floods Mosquitto. Returns the stored pings a second, and a line about the CPU time per ping. */
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
export function floodDetails({ gateway, generator, pings, delivered, lastDelayMs }: FloodFigures, urls = 1): string[] {
  const behind = (pings * urls - delivered).toLocaleString('en');
  return [
    `CPU a ping: lockgate ${describeCpuTime(gateway)}, its generator ${describeCpuTime(generator)}`,
    `of ${(pings * urls).toLocaleString('en')} webhooks of the last flood ${delivered.toLocaleString('en')} had ` +
      `arrived when its last ping was acknowledged: ${behind} behind, the last one ${Math.round(lastDelayMs)} ms`,
  ];
}

/** The row `ingest`. */
export function benchIngest({ quick, profiles }: BenchOptions): Promise<BenchRow> {
  return withResources(async (resources) => {
    const durationMs = roundDurationMs(quick);
    const setup = await ServeSetup.open(resources, { locks: BENCH_LOCKS, urls: 1, profiles });
    const aedes = await AedesSetup.open(resources, BENCH_LOCKS);
    const mosquitto = await MosquittoSetup.open(resources, BENCH_LOCKS);
    let lastFlood: FloodFigures | undefined;
    const cpuLines: string[] = [];
    const runLockgate = async (): Promise<number> => {
      lastFlood = await setup.floodFor(durationMs);
      return lastFlood.rate;
    };
    const measurePeer =
      (index: number, run: () => Promise<{ rate: number; cpuLine: string }>) => async (): Promise<number> => {
        const figures = await run();
        cpuLines[index] = figures.cpuLine;
        return figures.rate;
      };
    const measurements = [runLockgate, measurePeer(0, () => aedes.run(durationMs))];
    if (mosquitto !== null) measurements.push(measurePeer(1, () => runMosquitto(mosquitto, durationMs)));
    const [rates, aedesRates, mosquittoRates] = (await measureAlternating(measurements, roundCount(quick))).map(
      summarizeFigures,
    );
    const findings = setup.stored.findings();
    await setup.stop();
    if (rates === undefined || aedesRates === undefined || lastFlood === undefined)
      throw new Error('nothing was measured');
    const mosquittoName = 'Mosquitto and a subscriber that writes SQLite';
    const [floor, aim] = [atLeast(1), atLeast(2)];
    return {
      name: 'ingest',
      title: `durable pings of ${BENCH_LOCKS.toLocaleString('en')} locks, 1 webhook URL`,
      unit: 'pings/s',
      rates,
      against: [
        ratioTo('bare aedes', rates, aedesRates, { floor: atLeast(0.6), aim: atLeast(1) }),
        mosquittoRates === undefined
          ? notMeasured(mosquittoName, { floor, aim }, MOSQUITTO_MISSING)
          : ratioTo(mosquittoName, rates, mosquittoRates, { floor, aim }),
      ],
      details: [
        ...floodDetails(lastFlood),
        ...cpuLines,
        `the load generator is in ${setup.generator.kind}; every ping that was acknowledged was found in the store, ` +
          `with ${findings} findings in all`,
      ],
    };
  });
}

/** The row `urls`: a merchant with five URLs, compared with a merchant with one. */
export function benchUrls({ quick, profiles }: BenchOptions): Promise<BenchRow> {
  return withResources(async (resources) => {
    const durationMs = roundDurationMs(quick);
    const fiveUrlSetup = await ServeSetup.open(resources, { locks: BENCH_LOCKS, urls: 5, profiles });
    const oneUrlSetup = await ServeSetup.open(resources, { locks: BENCH_LOCKS, urls: 1 });
    let lastFlood: FloodFigures | undefined;
    const runFiveUrls = async (): Promise<number> => {
      lastFlood = await fiveUrlSetup.floodFor(durationMs);
      return lastFlood.rate;
    };
    const runOneUrl = async (): Promise<number> => (await oneUrlSetup.floodFor(durationMs)).rate;
    const [rates, peerRates] = (await measureAlternating([runFiveUrls, runOneUrl], roundCount(quick))).map(
      summarizeFigures,
    );
    await fiveUrlSetup.stop();
    if (rates === undefined || peerRates === undefined || lastFlood === undefined)
      throw new Error('nothing was measured');
    return {
      name: 'urls',
      title: 'durable pings, 5 webhook URLs',
      unit: 'pings/s',
      rates,
      against: [ratioTo('itself with 1 URL', rates, peerRates, { floor: atLeast(0.8), aim: atLeast(0.95) })],
      details: floodDetails(lastFlood, 5),
    };
  });
}
