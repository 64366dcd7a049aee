/**
 * How long one honest lock waits for its PUBACK while a hostile neighbour floods the merchants' port: another merchant
 * with a key, or a stranger without one, each route in turn; beside the same lock while the same flood hits another
 * server on this machine, which takes the CPU and none of the gateway (quality.md §1).
 */
import { call } from '../../helpers/http/merchant-call.js';
import type { Obedient } from '../load/obedient.js';
import { ratesOf } from '../measure.js';
import { atMost, type BenchOptions, fixedBar, type Row, ratioTo } from '../row.js';
import { ServeSite } from '../serve-site.js';
import { onStage } from '../stage.js';
import type { FloodHostRequest } from './flood-host.js';
import { type Credentials, floods, type NamedFlood } from './floods.js';
import type { Answered, Flood } from './http-flood.js';

/** Connections of the neighbour's. */
const CONNECTIONS = 64;
/** Pings of the honest lock a second. */
const RATE = 100;
/** How long a flood goes on, s. */
const SECONDS = 4;
const QUICK_SECONDS = 1;

/** What one flood came to. */
interface Seen {
  readonly name: string;
  /** p99 from PUBLISH to PUBACK, ms: at the gateway that is flooded, and beside another server that is. */
  readonly ours: number;
  readonly beside: number;
  readonly answered: Answered;
}

/** The row `neighbour`. */
export function benchNeighbour({ quick }: BenchOptions): Promise<Row> {
  return onStage(async (stage) => {
    const site = await ServeSite.open(stage, { locks: 1, urls: 0 });
    const neighbour = stage.script('neighbour/flood-host.js', { role: 'neighbour' } satisfies FloodHostRequest);
    const server = stage.script('neighbour/flood-host.js', { role: 'server' } satisfies FloodHostRequest);
    const { port: otherPort } = await server.answer<{ port: number }>();
    const flooding = new Flooding(site, neighbour, quick ? QUICK_SECONDS : SECONDS);
    await flooding.quiet();
    const seen: Seen[] = [];
    for (const [index, flood] of floods().entries()) seen.push(await flooding.both(flood, index, otherPort));
    await site.stop();
    return rowOf(seen);
  });
}

class Flooding {
  readonly #site: ServeSite;
  readonly #neighbour: Obedient;
  readonly #seconds: number;

  constructor(site: ServeSite, neighbour: Obedient, seconds: number) {
    this.#site = site;
    this.#neighbour = neighbour;
    this.#seconds = seconds;
  }

  /** A while without a flood, so that the code that pings take is compiled. */
  async quiet(): Promise<void> {
    await this.#site.pace(RATE * this.#seconds, RATE);
  }

  async both(flood: NamedFlood, index: number, otherPort: number): Promise<Seen> {
    // Budgets that a flood before has spent would spare the gateway the beginning of this one.
    const credentials = await this.#credentials(index);
    const terms = { ...flood.make(credentials), from: `127.0.1.${index + 1}`, connections: CONNECTIONS };
    const [beside] = await this.#under({ ...terms, port: otherPort });
    const [ours, answered] = await this.#under({ ...terms, port: this.#site.httpPort });
    console.error(`  ${flood.name}: ${ours.toFixed(1)} ms, beside ${beside.toFixed(1)}; ${JSON.stringify(answered)}`);
    return { name: flood.name, ours, beside, answered };
  }

  /** A new merchant's. */
  async #credentials(index: number): Promise<Credentials> {
    const { client, httpPort } = this.#site;
    const merchant = `Neighbour ${index}`;
    await client.post('/merchants', { name: merchant });
    const { key } = await client.post<{ key: string }>('/keys', { name: 'flood', merchant });
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const answer = await call({ httpPort }, '/oauth/token', { key, body: 'grant_type=client_credentials', headers });
    return { key, token: (answer.body as { access_token: string }).access_token };
  }

  async #under(flood: Flood): Promise<[p99Ms: number, answered: Answered]> {
    await this.#neighbour.answer(JSON.stringify(flood));
    const { played } = await this.#site.pace(RATE * this.#seconds, RATE);
    return [played.p99_ms, await this.#neighbour.answer<Answered>('end')];
  }
}

function rowOf(seen: readonly Seen[]): Row {
  const worst = seen.reduce((most, each) => (each.ours > most.ours ? each : most));
  const [rates, peer] = [ratesOf(seen.map(({ ours }) => ours)), ratesOf(seen.map(({ beside }) => beside))];
  const requests = seen.reduce((sum, { answered }) => sum + Object.values(answered).reduce((a, b) => a + b, 0), 0);
  return {
    name: 'neighbour',
    title: 'p99 of an honest lock’s PUBACK beside a flood over HTTP',
    unit: 'ms',
    rates,
    against: [
      fixedBar(worst.ours, 'ms', atMost(150, 'ms'), null, `the worst flood: ${worst.name}`),
      ratioTo('the same floods at another server', rates, peer, null, atMost(2)),
    ],
    details: [
      `${seen.length} floods of ${CONNECTIONS} connections, each at this gateway and at another server; the figure ` +
        `is of the floods, ${requests.toLocaleString('en')} requests were answered here`,
    ],
  };
}
