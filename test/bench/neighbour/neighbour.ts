/**
 * The bench's row `neighbour`: how long an honest lock waits for its PUBACK while a hostile client floods the
 * merchants' HTTP port, each route in turn, with and without a merchant's key (quality.md §1). Compared with the same
 * locks while the same flood hits another server on this machine, which costs CPU time but does not load the gateway.
 *
 * A lock has one ping in flight, and a delay counts from the time at which the ping was due. So ten locks send: a
 * single one at the same rate could not keep up with PUBACKs of 10 ms, which two fsyncs take, and its delays would add
 * up.
 */
import { TwentyConsoles } from '../console/twenty-consoles.js';
import type { ChildProgram } from '../load/child-program.js';
import { summarizeFigures } from '../measure.js';
import { type Resources, withResources } from '../resources.js';
import { atMost, type BenchOptions, type BenchRow, ratioTo, withoutPeer } from '../row.js';
import { ServeSetup } from '../serve-setup.js';
import type { FloodHostRequest } from './flood-host.js';
import { floods, type NamedFlood } from './floods.js';
import { makeHostileMerchant } from './hostile-merchant.js';
import type { AnswerCounts, Flood } from './http-flood.js';

/** The number of connections of a flood. */
const CONNECTIONS = 64;
/** The honest locks, and their rate together. */
const HONEST_LOCKS = 10;
const PINGS_PER_SECOND = 100;
/** The duration of a flood. */
const FLOOD_SECONDS = 4;
const QUICK_FLOOD_SECONDS = 1;

/** The result of one flood. */
interface FloodResult {
  readonly name: string;
  /** The locks' p99 from PUBLISH to PUBACK while the gateway is flooded, and while the other server is flooded. */
  readonly gatewayP99Ms: number;
  readonly otherServerP99Ms: number;
  readonly answered: AnswerCounts;
}

/** The row `neighbour`. */
export function benchNeighbour({ quick, profiles, flood: partOfName }: BenchOptions): Promise<BenchRow> {
  return withResources(async (resources) => {
    const setup = await ServeSetup.open(resources, { locks: HONEST_LOCKS, urls: 0, profiles });
    const neighbour = resources.startScript('neighbour/flood-host.js', {
      role: 'neighbour',
    } satisfies FloodHostRequest);
    const server = resources.startScript('neighbour/flood-host.js', { role: 'server' } satisfies FloodHostRequest);
    const { port: otherPort } = await server.readAnswer<{ port: number }>();
    const runner = new FloodRunner(resources, setup, neighbour, quick ? QUICK_FLOOD_SECONDS : FLOOD_SECONDS);
    await runner.warmUp();
    const results: FloodResult[] = [];
    const chosen = floods().filter(({ name }) => partOfName === null || name.includes(partOfName));
    if (chosen.length === 0) throw new Error(`no flood has ${JSON.stringify(partOfName)} in its name`);
    for (const [index, flood] of chosen.entries()) results.push(await runner.measureBoth(flood, index, otherPort));
    const consoles = await TwentyConsoles.start(resources, setup);
    const consolesP99Ms = await runner.measureWithConsoles(consoles);
    await setup.stop();
    return rowOf(results, consolesP99Ms, consoles.text);
  });
}

/** Floods one server after the other while the honest locks send. */
class FloodRunner {
  readonly #resources: Resources;
  readonly #setup: ServeSetup;
  readonly #neighbour: ChildProgram;
  readonly #seconds: number;

  constructor(resources: Resources, setup: ServeSetup, neighbour: ChildProgram, seconds: number) {
    this.#resources = resources;
    this.#setup = setup;
    this.#neighbour = neighbour;
    this.#seconds = seconds;
  }

  /** Sends pings without a flood, so that V8 compiles the code that pings run. */
  async warmUp(): Promise<void> {
    await this.#setup.sendBySchedule(PINGS_PER_SECOND * this.#seconds, PINGS_PER_SECOND);
  }

  /** Measures the locks' delays during a flood of the other server, then during the same flood of the gateway. */
  async measureBoth(flood: NamedFlood, index: number, otherPort: number): Promise<FloodResult> {
    // A new merchant and address for each flood, since used-up budgets would refuse its first requests.
    const merchant = await makeHostileMerchant(this.#resources, this.#setup, index);
    const floodRequest = {
      ...flood.makeRequest(merchant),
      // Every address that starts with 127 is this machine.
      sourceAddress: `127.0.1.${index + 1}`,
      connections: CONNECTIONS,
    };
    const [otherServerP99Ms] = await this.#measureDuring({ ...floodRequest, port: otherPort });
    const [gatewayP99Ms, answered] = await this.#measureDuring({ ...floodRequest, port: this.#setup.httpPort });
    const times = `${gatewayP99Ms.toFixed(1)} ms, with the other server flooded ${otherServerP99Ms.toFixed(1)} ms`;
    console.error(`  ${flood.name}: ${times}; ${JSON.stringify(answered)}`);
    return { name: flood.name, gatewayP99Ms, otherServerP99Ms, answered };
  }

  /** Measures the locks' delays while 20 consoles are open. */
  async measureWithConsoles(consoles: TwentyConsoles): Promise<number> {
    const send = () => this.#setup.sendBySchedule(PINGS_PER_SECOND * this.#seconds, PINGS_PER_SECOND);
    return (await consoles.whileOpen(send)).load.p99_ms;
  }

  /** Measures the locks' delays during one flood. */
  async #measureDuring(flood: Flood): Promise<[p99Ms: number, answered: AnswerCounts]> {
    await this.#neighbour.ask(JSON.stringify(flood));
    const { load } = await this.#setup.sendBySchedule(PINGS_PER_SECOND * this.#seconds, PINGS_PER_SECOND);
    return [load.p99_ms, await this.#neighbour.ask<AnswerCounts>('end')];
  }
}

/** The row of the bench's table. */
function rowOf(results: readonly FloodResult[], consolesP99Ms: number, consolesText: string): BenchRow {
  const worst = results.reduce((max, result) => (result.gatewayP99Ms > max.gatewayP99Ms ? result : max));
  const [rates, peerRates] = [
    summarizeFigures(results.map(({ gatewayP99Ms }) => gatewayP99Ms)),
    summarizeFigures(results.map(({ otherServerP99Ms }) => otherServerP99Ms)),
  ];
  const requests = results.reduce((sum, { answered }) => sum + Object.values(answered).reduce((a, b) => a + b, 0), 0);
  return {
    name: 'neighbour',
    title: 'p99 of an honest lock’s PUBACK during a flood over HTTP',
    unit: 'ms',
    rates,
    against: [
      withoutPeer(worst.gatewayP99Ms, 'ms', { floor: atMost(150, 'ms') }, `the worst flood: ${worst.name}`),
      withoutPeer(consolesP99Ms, 'ms', { floor: atMost(150, 'ms') }, '20 open consoles'),
      ratioTo('the same floods at another server', rates, peerRates, { aim: atMost(2) }),
    ],
    details: [
      `${results.length} floods of ${CONNECTIONS} connections, each at this gateway and at another server; the ` +
        `figure is that of all floods; this gateway answered ${requests.toLocaleString('en')} requests`,
      consolesText,
    ],
  };
}
