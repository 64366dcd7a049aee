/**
 * Gateways that share a PostgreSQL database, each run by `lockgate serve` in a process of its own with its own locks;
 * and one merchant, whose receivers are in a further process.
 */
import { copyFileSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { GatewayClient } from '../../../cli/client.js';
import type { Program } from '../../helpers/cli/program.js';
import { type PostgresServer, startPostgres } from '../../helpers/store/postgres/server.js';
import { type CpuTime, cpuPerPing, describeCpuTime, readCpuTime } from '../cpu-share.js';
import type { ChildProgram } from '../load/child-program.js';
import { LoadGenerator } from '../load/generator.js';
import { lockLogins, registerLocks } from '../load/lock-logins.js';
import type { ReceivedSoFar } from '../load/webhook-host.js';
import { summarizeFigures } from '../measure.js';
import type { Resources } from '../resources.js';
import { SHUTDOWN_SECONDS, startReceivers, startServe } from '../serve-setup.js';

/**
 * The server's settings that differ from those of tests: memory for its pages as a small server of one's own has, and
 * no checkpoint within a flood.
 */
const SERVER_SETTINGS = { shared_buffers: '256MB', max_wal_size: '4GB', checkpoint_timeout: '15min' };

/** A gateway with its locks. */
interface SharedGateway {
  readonly program: Program;
  readonly mqttPort: number;
  readonly generator: LoadGenerator;
}

export interface SharedRequest {
  readonly gateways: number;
  /** The number of locks of all gateways together; each gateway has its share. */
  readonly locks: number;
  /** The folder for a profile of each gateway; null for none. */
  readonly profiles?: string | null;
}

/** Running gateways on one database. */
export class SharedGateways {
  readonly gateways: readonly SharedGateway[];
  /** The operator's interface of the first gateway. */
  readonly client: GatewayClient;
  readonly #server: PostgresServer;
  readonly #database: string;
  readonly #receivers: { readonly host: ChildProgram; readonly urls: readonly string[] };
  /** CPU time of the last flood, by process, as a line for the table. */
  #cpuLine = '';
  /** CPU time of a ping in each flood, of all gateways and the database together, µs. */
  readonly #cpuUs: number[] = [];

  private constructor(
    gateways: readonly SharedGateway[],
    client: GatewayClient,
    server: PostgresServer,
    database: string,
    receivers: { readonly host: ChildProgram; readonly urls: readonly string[] },
  ) {
    this.gateways = gateways;
    this.client = client;
    this.#server = server;
    this.#database = database;
    this.#receivers = receivers;
  }

  /** Starts all parts, with a webhook receiver; resolves when all locks are connected. */
  static async open(resources: Resources, request: SharedRequest): Promise<SharedGateways> {
    const server = await startPostgres(resources, { settings: SERVER_SETTINGS });
    const url = await server.createDatabase();
    const folders = await provision(resources, url, request);
    const logins = lockLogins(request.locks);
    const share = Math.ceil(request.locks / request.gateways);
    const gateways: SharedGateway[] = [];
    for (const [index, data] of folders.entries()) {
      const { program, port } = await startServe(resources, data, {
        args: ['--store', url],
        profiles: request.profiles ?? null,
      });
      const locks = logins.slice(index * share, (index + 1) * share);
      const generator = await LoadGenerator.start(resources, { port, locks });
      gateways.push({ program, mqttPort: port, generator });
    }
    const client = new GatewayClient({ data: folders[0] as string });
    const receivers = await startReceivers(resources, 1);
    return new SharedGateways(gateways, client, server, new URL(url).pathname.slice(1), receivers);
  }

  /** A line about the CPU time of a ping in the last flood. */
  get cpuLine(): string {
    return this.#cpuLine;
  }

  /**
   * The median of a ping's CPU time, of all gateways and the database together, µs; NaN if unknown. The first flood, a
   * warm-up, does not count.
   */
  get cpuUs(): number {
    return summarizeFigures(this.#cpuUs.slice(1)).median;
  }

  /**
   * Sends pings at all gateways for this time, as fast as they are acknowledged, while the merchant's URL receives
   * webhooks.
   *
   * @returns acknowledged pings a second, of all gateways together
   * @throws Error if the database does not have exactly the acknowledged pings
   */
  async floodFor(milliseconds: number): Promise<number> {
    const before = await this.#countPings();
    const { id } = await this.client.post<{ id: number }>('/webhooks', { url: this.#receivers.urls[0] });
    await this.#receivers.host.ask<ReceivedSoFar>('received');
    const cpu = this.#readCpu();
    const loads = await Promise.all(this.gateways.map(({ generator }) => generator.floodFor(milliseconds)));
    const pings = loads.reduce((sum, load) => sum + load.pings, 0);
    this.#noteCpu(cpu, pings);
    await this.client.post(`/webhooks/${id}/remove`, {});
    const stored = (await this.#countPings()) - before;
    if (stored !== pings) throw new Error(`${pings} pings were acknowledged, but the database has ${stored} new pings`);
    return pings / (Math.max(...loads.map(({ ms }) => ms)) / 1000);
  }

  /** Stops the gateways, which then write their profiles. */
  async stop(): Promise<void> {
    for (const { program } of this.gateways) program.kill('SIGTERM');
    await Promise.all(this.gateways.map(({ program }) => program.waitForExit(SHUTDOWN_SECONDS)));
  }

  async #countPings(): Promise<number> {
    const [row] = await this.#server.query(this.#database, 'SELECT count(*) AS count FROM uplink WHERE kind > 0');
    return Number(row?.count);
  }

  #readCpu(): readonly (CpuTime | null)[] {
    return [...this.gateways.map(({ program }) => readCpuTime(program.pid)), databaseCpu(this.#server)];
  }

  #noteCpu(before: readonly (CpuTime | null)[], pings: number): void {
    const times = this.#readCpu().map((now, index) => cpuPerPing(before[index] ?? null, now, pings));
    const texts = times.map(describeCpuTime);
    const gateways = texts.slice(0, -1).join(' and ');
    this.#cpuLine = `CPU a ping: lockgate ${gateways}, PostgreSQL ${texts.at(-1)}`;
    this.#cpuUs.push(times.reduce((sum, time) => sum + (time === null ? Number.NaN : time.mainUs + time.othersUs), 0));
  }
}

/** The CPU time of the server's processes so far, one for each connection; those that have ended are left out. */
function databaseCpu({ pid }: PostgresServer): CpuTime | null {
  let mainUs = 0;
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    for (const child of children) mainUs += readCpuTime(Number(child))?.mainUs ?? 0;
  } catch {
    return null;
  }
  return { mainUs, othersUs: 0 };
}

/** Registers the locks in the database, and makes a data folder with the same key for each gateway. */
async function provision(resources: Resources, url: string, { gateways, locks }: SharedRequest): Promise<string[]> {
  const [first = '', ...others] = Array.from({ length: gateways }, () => resources.makeFolder());
  await registerLocks(first, locks, { url });
  for (const folder of others) copyFileSync(path.join(first, 'key'), path.join(folder, 'key'));
  return [first, ...others];
}
