/**
 * `lockgate serve` as a user runs it, with a merchant, connected locks and the merchant's receivers; the gateway, the
 * locks and the receivers each run in a separate process.
 */
import { readFileSync } from 'node:fs';
import { GatewayClient } from '../../cli/client.js';
import { LOCKGATE, Program } from '../helpers/cli/program.js';
import { type CpuTime, cpuPerPing, readCpuTime } from './cpu-share.js';
import type { ChildProgram } from './load/child-program.js';
import { LoadGenerator } from './load/generator.js';
import { lockLogins, registerLocks } from './load/lock-logins.js';
import type { LoadResult } from './load/node-generator.js';
import type { ReceivedSoFar, ReceiverBehaviour, WebhookHostRequest } from './load/webhook-host.js';
import { StoredPings } from './peers/stored-pings.js';
import type { Resources } from './resources.js';

/** How `serve` is started. */
export interface ServeOptions {
  /** Further arguments of `serve`. */
  readonly args?: readonly string[];
  /** The folder for a profile of this gateway; null for none. */
  readonly profiles?: string | null;
  /** Further arguments of Node. */
  readonly nodeArgs?: readonly string[];
  readonly environment?: NodeJS.ProcessEnv;
}

/** The parts of a setup. */
export interface ServeRequest extends ServeOptions {
  readonly locks: number;
  /** The number of the merchant's URLs while pings are sent; each has a receiver that answers with 204. */
  readonly urls: number;
  /** A data folder in which the locks are registered; by default a new one. */
  readonly data?: string;
}

/** The result of one flood: pings sent as fast as they are acknowledged, or by a schedule. */
export interface FloodFigures {
  readonly pings: number;
  /** Acknowledged pings a second; each was found in the store afterwards. */
  readonly rate: number;
  readonly load: LoadResult;
  /** CPU time per ping. */
  readonly gateway: CpuTime | null;
  readonly generator: CpuTime | null;
  /** Webhooks that had arrived, at all URLs together, when the last ping was acknowledged. */
  readonly delivered: number;
  /** The delay of the last of these webhooks, from the time of its ping to the webhook's arrival, ms. */
  readonly lastDelayMs: number;
}

/** What a gateway has written to its disk: bytes of all its files, and commits of the store. */
export interface WrittenSoFar {
  readonly bytes: number;
  readonly commits: number;
}

/** How long a gateway may take to stop. */
export const SHUTDOWN_SECONDS = 30;

/** A running gateway, its load generator and its webhook receivers. */
export class ServeSetup {
  readonly data: string;
  /** The merchants' port. */
  readonly httpPort: number;
  readonly mqttPort: number;
  readonly stored: StoredPings;
  readonly generator: LoadGenerator;
  /** The operator's interface. */
  readonly client: GatewayClient;
  readonly #program: Program;
  readonly #receivers: { readonly host: ChildProgram; readonly urls: readonly string[] } | undefined;

  private constructor(
    data: string,
    { program, port, httpPort }: Awaited<ReturnType<typeof startServe>>,
    generator: LoadGenerator,
    receivers: { readonly host: ChildProgram; readonly urls: readonly string[] } | undefined,
  ) {
    this.data = data;
    this.httpPort = httpPort;
    this.mqttPort = port;
    this.#program = program;
    this.generator = generator;
    this.#receivers = receivers;
    this.client = new GatewayClient({ data });
    this.stored = new StoredPings(data);
  }

  /** Starts all parts; resolves when all locks are connected. */
  static async open(resources: Resources, request: ServeRequest): Promise<ServeSetup> {
    const data = request.data ?? resources.makeFolder();
    if (request.data === undefined) await registerLocks(data, request.locks);
    const serve = await startServe(resources, data, request);
    const generator = await LoadGenerator.start(resources, { port: serve.port, locks: lockLogins(request.locks) });
    const receivers = request.urls === 0 ? undefined : await startReceivers(resources, request.urls);
    const setup = new ServeSetup(data, serve, generator, receivers);
    resources.teardown(() => setup.stored.close());
    return setup;
  }

  /**
   * Sends pings for this time, as fast as they are acknowledged, while the merchant's URLs receive webhooks.
   *
   * @throws Error if the store does not have exactly the acknowledged pings
   */
  floodFor(milliseconds: number): Promise<FloodFigures> {
    return this.#measureLoad(() => this.generator.floodFor(milliseconds));
  }

  /** Like {@link floodFor}, but sends `count` pings by a schedule, `rate` a second. */
  sendBySchedule(count: number, rate: number): Promise<FloodFigures> {
    return this.#measureLoad(() => this.generator.sendBySchedule(count, rate));
  }

  /** Adds the merchant's URLs, measures a load, removes the URLs, and checks the store. */
  async #measureLoad(runLoad: () => Promise<LoadResult>): Promise<FloodFigures> {
    const lastIdBefore = this.stored.lastId();
    const urlIds: number[] = [];
    for (const url of this.#receivers?.urls ?? [])
      urlIds.push((await this.client.post<{ id: number }>('/webhooks', { url })).id);
    // Forgets the webhooks of earlier floods.
    await this.#receivers?.host.ask<ReceivedSoFar>('received');
    const cpu = [this.cpu(), this.generator.cpu()];
    const load = await runLoad();
    const { pings } = load;
    const received = await this.#receivers?.host.ask<ReceivedSoFar>('received');
    const gateway = cpuPerPing(cpu[0] ?? null, this.cpu(), pings);
    const generator = cpuPerPing(cpu[1] ?? null, this.generator.cpu(), pings);
    // Removes the URLs, so that undelivered events do not disturb the next flood.
    for (const id of urlIds) await this.client.post(`/webhooks/${id}/remove`, {});
    const stored = this.stored.countAfter(lastIdBefore);
    if (stored !== pings) throw new Error(`${pings} pings were acknowledged, but the store has ${stored} new pings`);
    const { count: delivered, last_lag_ms: lastDelayMs } = received ?? { count: 0, last_lag_ms: 0 };
    return { pings, rate: pings / (load.ms / 1000), load, gateway, generator, delivered, lastDelayMs };
  }

  get pid(): number | undefined {
    return this.#program.pid;
  }

  /** The gateway's CPU time so far. */
  cpu(): CpuTime | null {
    return readCpuTime(this.pid);
  }

  /** The maximum resident memory of the gateway so far, bytes. Linux only. */
  maxMemoryBytes(): number {
    const status = readFileSync(`/proc/${this.pid}/status`, 'utf8');
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) * 1024;
  }

  /** What the gateway has written to its disk so far. Linux only. */
  async written(): Promise<WrittenSoFar> {
    const bytes = Number(/^write_bytes: (\d+)$/m.exec(readFileSync(`/proc/${this.pid}/io`, 'utf8'))?.[1]);
    let commits = 0;
    for await (const line of this.client.lines('/metrics', new AbortController().signal))
      if (line.startsWith('lockgate_store_commit_seconds_count')) commits += Number(line.split(' ').at(-1));
    return { bytes, commits };
  }

  /** Stops the gateway and waits until the process has ended; its profile is written by then. */
  async stop(): Promise<void> {
    this.#program.kill('SIGTERM');
    await this.#program.waitForExit(SHUTDOWN_SECONDS);
  }
}

/** Starts `serve` on this folder and on free ports; resolves with its ports when it is ready. */
export async function startServe(
  resources: Resources,
  data: string,
  { args = [], profiles = null, nodeArgs = [], environment = {} }: ServeOptions = {},
): Promise<{ readonly program: Program; readonly port: number; readonly httpPort: number }> {
  const profileFlags = profiles === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${profiles}`];
  const locationFlags = ['--data', data, '--mqtt-port', '0', '--http-port', '0', '--operator-port', '0'];
  // No budgets, since the few locks of a bench send more than real ones may.
  const unlimited = ['--lock-uplinks-per-second', '0', '--lock-uplinks-per-day', '0'];
  // The receivers are on this machine, which webhooks may not call by default.
  const serve = [LOCKGATE, 'serve', ...locationFlags, '--allow-webhook-range', '127.0.0.0/8', ...unlimited, ...args];
  const program = new Program(resources, process.execPath, [...profileFlags, ...nodeArgs, ...serve], environment);
  const port = Number(/:(\d+)$/.exec(await program.waitForLine(/mqtt:/))?.[1]);
  const httpPort = Number(/:(\d+)$/.exec(await program.waitForLine(/merchants +http:/))?.[1]);
  // The last line that `serve` prints when it starts.
  await program.waitForLine(/Next:/);
  return { program, port, httpPort };
}

/** Starts webhook receivers in a separate process. A number means this many receivers that answer with 204. */
export async function startReceivers(
  resources: Resources,
  receivers: number | readonly ReceiverBehaviour[],
): Promise<{ readonly host: ChildProgram; readonly urls: readonly string[] }> {
  const behaviours =
    typeof receivers === 'number' ? Array.from({ length: receivers }, () => 'good' as const) : receivers;
  const host = resources.startScript('load/webhook-host.js', { receivers: behaviours } satisfies WebhookHostRequest);
  return { host, ...(await host.readAnswer<{ urls: string[] }>()) };
}
