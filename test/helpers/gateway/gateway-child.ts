/**
 * A gateway in a child process that can be killed and restarted on the same data folder, MQTT port and operators' port,
 * and calls of its HTTP interface for operators.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Program } from '../cli/program.js';
import { root } from '../house/our-files.js';
import { freePort } from '../http/free-port.js';
import { makeStore } from '../store/new-store.js';
import { type Teardown, tempFolder } from '../store/temp-folder.js';
import type { GatewayProcessOptions, GatewayReady } from './gateway-process.js';

/** The compiled gateway-process.ts, bundled with the gateway. */
const SCRIPT = path.join(root, 'dist/program/gateway-process.js');
/** The merchant of {@link GatewayChild.start}. */
const MERCHANT = 'Amber';

/** What a test may choose; gateway-process.ts explains each. The ports are always free ones. */
interface GatewayChildOptions extends Omit<GatewayProcessOptions, 'data' | 'mqttPort' | 'operatorPort'> {
  /** The data folder; a new one if undefined. */
  readonly data?: string | undefined;
}

/** The gateway, through all its processes. */
export class GatewayChild {
  /** What each process of this gateway is started with: its data folder, its ports and the like. */
  readonly options: GatewayProcessOptions;
  /** What all processes of this gateway wrote to stderr. A gateway without errors writes nothing. */
  readonly errorLines: string[] = [];
  /** Additional environment variables of the gateway's processes. */
  environment: NodeJS.ProcessEnv = {};
  #test: Teardown;
  #program: Program | undefined;
  #token = '';
  #httpPort = 0;

  private constructor(test: Teardown, options: GatewayProcessOptions) {
    this.#test = test;
    this.options = options;
  }

  /** A gateway that is not started yet and has no merchant, on a new folder unless the options name one. */
  static async create(test: Teardown, options: GatewayChildOptions = {}): Promise<GatewayChild> {
    const data = options.data ?? tempFolder(test);
    if (options.store === undefined) await makeStore(data);
    const [mqttPort, operatorPort] = [await freePort(), await freePort()];
    return new GatewayChild(test, { ...options, data, mqttPort, operatorPort });
  }

  /** A gateway as {@link create} makes it, started, with a merchant. */
  static async start(test: Teardown, options: GatewayChildOptions = {}): Promise<GatewayChild> {
    const child = await GatewayChild.create(test, options);
    await child.start();
    await child.post('/merchants', { name: MERCHANT });
    return child;
  }

  /** The port of the merchants' interface, another one after each start. */
  get httpPort(): number {
    return this.#httpPort;
  }

  /** The token of the operator's interface, after the start. */
  get token(): string {
    return this.#token;
  }

  get mqttPort(): number {
    return this.options.mqttPort;
  }

  /** The process's resident memory in bytes: now, and its maximum. Only on Linux. */
  memory(): { readonly resident: number; readonly maximum: number } {
    const status = readFileSync(`/proc/${this.#program?.pid}/status`, 'utf8');
    const kib = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]);
    return { resident: kib('VmRSS') * 1024, maximum: kib('VmHWM') * 1024 };
  }

  /** The process's memory after a garbage collection, in bytes. */
  async memoryAfterCollection(): Promise<NodeJS.MemoryUsage> {
    const { stdout } = this.program;
    const isMemory = (line: string): boolean => line.startsWith('memory ');
    const before = stdout.filter(isMemory).length;
    this.program.kill('SIGUSR2');
    await this.program.waitUntil((lines) => lines.filter(isMemory).length > before);
    return JSON.parse((stdout.findLast(isMemory) as string).slice('memory '.length)) as NodeJS.MemoryUsage;
  }

  /** Starts the process; {@link waitUntilReady} waits until the gateway is ready. */
  spawn(): void {
    this.#program = new Program(this.#test, process.execPath, [SCRIPT, JSON.stringify(this.options)], this.environment);
  }

  /** Waits until the gateway prints its ports and token. @throws Error if the process exits before */
  async waitUntilReady(): Promise<void> {
    const line = (await this.#program?.waitForLine(/^\{/)) ?? '';
    const { operatorToken, httpPort } = JSON.parse(line) as GatewayReady;
    this.#token = operatorToken;
    this.#httpPort = httpPort;
  }

  async start(): Promise<void> {
    this.spawn();
    await this.waitUntilReady();
  }

  /** Kills the process with SIGKILL: none of its handlers runs. */
  async kill(): Promise<void> {
    this.#program?.kill('SIGKILL');
    await this.#collectExit();
  }

  /** Stops the process with SIGTERM. Returns its exit code. @throws Error if it does not exit within `seconds` */
  async stop(seconds: number): Promise<number | null> {
    this.#program?.kill('SIGTERM');
    await this.#program?.waitForExit(seconds);
    return await this.#collectExit();
  }

  /** Waits for the process to exit. Returns its exit code. @throws Error if it does not exit within `seconds` */
  async waitForExit(seconds: number): Promise<number | null> {
    await this.#program?.waitForExit(seconds);
    return await this.#collectExit();
  }

  /** Waits for the exit, and adds what the process wrote to stderr to {@link errorLines}. Returns the exit code. */
  async #collectExit(): Promise<number | null> {
    const program = this.#program as Program;
    const { code } = await program.waitForExit();
    this.errorLines.push(...program.stderr);
    return code;
  }

  /** Adds a lock. Returns its secret. */
  async addLock(mac: string): Promise<string> {
    return (await this.post<{ secret: string }>('/devices', { mac })).secret;
  }

  /** Adds a webhook URL. Returns its signing secret. */
  async addWebhook(url: string): Promise<string> {
    return (await this.post<{ secret: string }>('/webhooks', { url })).secret;
  }

  /** The running process, with the lines that it has printed. */
  get program(): Program {
    return this.#program as Program;
  }

  /** Calls the operators' interface, and returns the JSON answer. @throws Error if the status is not 2xx */
  async post<T>(route: string, body: unknown): Promise<T> {
    return await this.#request(route, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  }

  /** The same as {@link post}, with GET. */
  async get<T>(route: string): Promise<T> {
    return await this.#request(route, {});
  }

  async #request<T>(route: string, request: { method?: string; headers?: object; body?: string }): Promise<T> {
    const answer = await fetch(`http://127.0.0.1:${this.options.operatorPort}${route}`, {
      ...request,
      headers: { authorization: `Bearer ${this.#token}`, ...request.headers },
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${request.method ?? 'GET'} ${route}: ${answer.status} ${text}`);
    return JSON.parse(text) as T;
  }
}
