/**
 * `lockgate serve` as a user runs it, in a process of its own, with a merchant, locks that are connected and the
 * merchant's receivers, in a process each.
 */
import { readFileSync } from 'node:fs';
import { GatewayClient } from '../../cli/client.js';
import { LOCKGATE, Program } from '../helpers/cli/program.js';
import { StoredPings } from './beside/stored-pings.js';
import { type CpuTime, cpuPerPing, cpuTime } from './cpu-share.js';
import { crowdLocks, provisionCrowd } from './load/crowd-accounts.js';
import { Generator } from './load/generator.js';
import type { Played } from './load/node-generator.js';
import type { Obedient } from './load/obedient.js';
import type { HostRequest, Manner, ToldSoFar } from './load/webhook-host.js';
import type { Stage } from './stage.js';

/** How `serve` is started. */
export interface ServeOptions {
  /** Further arguments of `serve`. */
  readonly args?: readonly string[];
  /** The folder for a profile of this gateway. */
  readonly profiles?: string | null;
  /** Further arguments of Node. */
  readonly nodeArgs?: readonly string[];
  readonly environment?: NodeJS.ProcessEnv;
}

export interface ServeRequest extends ServeOptions {
  readonly locks: number;
  /** How many URLs the merchant has while pings are sent; each is a receiver that answers well. */
  readonly urls: number;
  /** A data folder that knows the crowd and has something in it; a new one where it is left out. */
  readonly data?: string;
}

/** What one flood came to. */
export interface FloodFigures {
  readonly pings: number;
  /** Acknowledged pings a second; each was found in the store afterwards. */
  readonly rate: number;
  readonly played: Played;
  /** CPU for each ping. */
  readonly gateway: CpuTime | null;
  readonly generator: CpuTime | null;
  /** Webhooks that had arrived at all URLs when the last ping was acknowledged. */
  readonly delivered: number;
  /** From the making of the last ping that had arrived as a webhook until then, ms. */
  readonly behindMs: number;
}

const SHUTDOWN_SECONDS = 30;

export class ServeSite {
  readonly data: string;
  /** The merchants' port. */
  readonly httpPort: number;
  readonly stored: StoredPings;
  readonly generator: Generator;
  /** The operator's interface. */
  readonly client: GatewayClient;
  readonly #program: Program;
  readonly #receivers: { readonly host: Obedient; readonly urls: readonly string[] } | undefined;

  private constructor(
    data: string,
    { program, httpPort }: { readonly program: Program; readonly httpPort: number },
    generator: Generator,
    receivers: { readonly host: Obedient; readonly urls: readonly string[] } | undefined,
  ) {
    this.data = data;
    this.httpPort = httpPort;
    this.#program = program;
    this.generator = generator;
    this.#receivers = receivers;
    this.client = new GatewayClient({ data });
    this.stored = new StoredPings(data);
  }

  /** Starts it; resolves when all locks are connected. */
  static async open(stage: Stage, request: ServeRequest): Promise<ServeSite> {
    const data = request.data ?? stage.folder();
    if (request.data === undefined) await provisionCrowd(data, request.locks);
    const { program, port, httpPort } = await startServe(stage, data, request);
    const generator = await Generator.start(stage, { port, locks: crowdLocks(request.locks) });
    const receivers = request.urls === 0 ? undefined : await startReceivers(stage, request.urls);
    const site = new ServeSite(data, { program, httpPort }, generator, receivers);
    stage.teardown(() => site.stored.close());
    return site;
  }

  /**
   * As many pings as are acknowledged in so long, while the merchant's URLs are followed.
   *
   * @throws Error where the store has another number of them than were acknowledged
   */
  run(milliseconds: number): Promise<FloodFigures> {
    return this.#play(() => this.generator.run(milliseconds));
  }

  /** The same for so many pings by a schedule, so many a second. */
  pace(count: number, rate: number): Promise<FloodFigures> {
    return this.#play(() => this.generator.pace(count, rate));
  }

  async #play(play: () => Promise<Played>): Promise<FloodFigures> {
    const before = this.stored.lastId();
    const ids: number[] = [];
    for (const url of this.#receivers?.urls ?? [])
      ids.push((await this.client.post<{ id: number }>('/webhooks', { url })).id);
    await this.#receivers?.host.answer<ToldSoFar>('told');
    const cpu = [this.cpu(), this.generator.cpu()];
    const played = await play();
    const { pings } = played;
    const told = await this.#receivers?.host.answer<ToldSoFar>('told');
    const gateway = cpuPerPing(cpu[0] ?? null, this.cpu(), pings);
    const generator = cpuPerPing(cpu[1] ?? null, this.generator.cpu(), pings);
    // What is left to deliver is none of the next flood's.
    for (const id of ids) await this.client.post(`/webhooks/${id}/remove`, {});
    const stored = this.stored.countAfter(before);
    if (stored !== pings) throw new Error(`${pings} pings were acknowledged, and the store has ${stored} of them`);
    const { count: delivered, last_lag_ms: behindMs } = told ?? { count: 0, last_lag_ms: 0 };
    return { pings, rate: pings / (played.ms / 1000), played, gateway, generator, delivered, behindMs };
  }

  get pid(): number | undefined {
    return this.#program.pid;
  }

  cpu(): CpuTime | null {
    return cpuTime(this.pid);
  }

  /** The most memory that it ever had, bytes. From Linux alone. */
  mostMemory(): number {
    const status = readFileSync(`/proc/${this.pid}/status`, 'utf8');
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) * 1024;
  }

  /** Asks it to end, and waits: a profile is written by then. */
  async stop(): Promise<void> {
    this.#program.kill('SIGTERM');
    await this.#program.end(SHUTDOWN_SECONDS);
  }
}

/** `serve` on this folder and on free ports; resolves when it says that it's ready, with the port for locks. */
export async function startServe(
  stage: Stage,
  data: string,
  { args = [], profiles = null, nodeArgs = [], environment = {} }: ServeOptions = {},
): Promise<{ readonly program: Program; readonly port: number; readonly httpPort: number }> {
  const profiling = profiles === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${profiles}`];
  const places = ['--data', data, '--mqtt-port', '0', '--http-port', '0', '--operator-port', '0'];
  // What is measured is the gateway, not the budget of the few locks that a bench has.
  const unlimited = ['--lock-uplinks-per-second', '0', '--lock-uplinks-per-day', '0'];
  const serve = [LOCKGATE, 'serve', ...places, '--allow-webhook-range', '127.0.0.0/8', ...unlimited, ...args];
  const program = new Program(stage, process.execPath, [...profiling, ...nodeArgs, ...serve], environment);
  const port = Number(/:(\d+)$/.exec(await program.line(/mqtt:/))?.[1]);
  const httpPort = Number(/:(\d+)$/.exec(await program.line(/merchants +http:/))?.[1]);
  await program.line(/Next:/);
  return { program, port, httpPort };
}

/** Receivers in a process of their own. */
export async function startReceivers(
  stage: Stage,
  receivers: number | readonly Manner[],
): Promise<{ readonly host: Obedient; readonly urls: readonly string[] }> {
  const manners = typeof receivers === 'number' ? Array.from({ length: receivers }, () => 'good' as const) : receivers;
  const host = stage.script('load/webhook-host.js', { receivers: manners } satisfies HostRequest);
  return { host, ...(await host.answer<{ urls: string[] }>()) };
}
