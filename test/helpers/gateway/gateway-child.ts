/**
 * A gateway that can be killed and started again on the same data folder and ports, and its operator's interface.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Program } from '../cli/program.js';
import type { SabotageName } from '../durability/sabotage.js';
import { root } from '../house/our-files.js';
import { freePort } from '../http/free-port.js';
import type { StoreFault } from '../store/store-faults.js';
import { type Teardown, tempFolder } from '../store/temp-folder.js';
import type { GatewayReady, GatewayRequest } from './gateway-process.js';

/** gateway-process.ts, bundled with the gateway. */
const SCRIPT = path.join(root, 'dist/program/gateway-process.js');
const MERCHANT = 'Amber';

export class GatewayChild {
  readonly request: GatewayRequest;
  /** What all its lives wrote to stderr: nothing, when all is well. */
  readonly complaints: string[] = [];
  /** What its processes find in their environment besides. */
  environment: NodeJS.ProcessEnv = {};
  #test: Teardown;
  #program: Program | undefined;
  #token = '';

  private constructor(test: Teardown, request: GatewayRequest) {
    this.#test = test;
    this.request = request;
  }

  /** One on a new folder that is not started yet. */
  static async make(
    test: Teardown,
    sabotage?: SabotageName,
    tellsUsage = false,
    runSize?: GatewayRequest['runSize'],
    data = tempFolder(test),
  ): Promise<GatewayChild> {
    const place = { data, mqttPort: await freePort(), operatorPort: await freePort() };
    return new GatewayChild(test, { ...place, sabotage, tellsUsage, runSize });
  }

  /** One on a new folder, started, with a merchant. */
  static async start(test: Teardown, sabotage?: SabotageName, fault?: StoreFault): Promise<GatewayChild> {
    const made = await GatewayChild.make(test, sabotage);
    const child = new GatewayChild(test, { ...made.request, fault });
    await child.start();
    await child.post('/merchants', { name: MERCHANT });
    return child;
  }

  /** One on a new folder that is not started yet and has no merchant, at a speed of its own. */
  static async fast(test: Teardown, speed: number, sabotage?: SabotageName): Promise<GatewayChild> {
    const { request } = await GatewayChild.make(test, sabotage);
    return new GatewayChild(test, { ...request, speed });
  }

  get mqttPort(): number {
    return this.request.mqttPort;
  }

  /** Its memory, bytes: resident now, and the most that it ever was. From Linux alone. */
  memory(): { readonly resident: number; readonly most: number } {
    const status = readFileSync(`/proc/${this.#program?.pid}/status`, 'utf8');
    const kib = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]);
    return { resident: kib('VmRSS') * 1024, most: kib('VmHWM') * 1024 };
  }

  /** Its memory once garbage is collected, bytes. */
  async memoryAfterCollection(): Promise<NodeJS.MemoryUsage> {
    const { stdout } = this.program;
    const isMemory = (line: string): boolean => line.startsWith('memory ');
    const before = stdout.filter(isMemory).length;
    this.program.kill('SIGUSR2');
    await this.program.until((lines) => lines.filter(isMemory).length > before);
    return JSON.parse((stdout.findLast(isMemory) as string).slice('memory '.length)) as NodeJS.MemoryUsage;
  }

  /** Begins a start; {@link ready} waits for its end. */
  spawn(): void {
    this.#program = new Program(this.#test, process.execPath, [SCRIPT, JSON.stringify(this.request)], this.environment);
  }

  async ready(): Promise<void> {
    const line = (await this.#program?.line(/^\{/)) ?? '';
    this.#token = (JSON.parse(line) as GatewayReady).operatorToken;
  }

  async start(): Promise<void> {
    this.spawn();
    await this.ready();
  }

  /** Kills it as a power switch would a process: no handler of its runs. */
  async kill(): Promise<void> {
    this.#program?.kill('SIGKILL');
    await this.#ended();
  }

  /** Asks it to end; its exit code. @throws Error where it doesn't within `seconds` */
  async stop(seconds: number): Promise<number | null> {
    this.#program?.kill('SIGTERM');
    await this.#program?.end(seconds);
    return await this.#ended();
  }

  /** Waits for it to end by itself; its exit code. @throws Error where it doesn't within `seconds` */
  async ends(seconds: number): Promise<number | null> {
    await this.#program?.end(seconds);
    return await this.#ended();
  }

  async #ended(): Promise<number | null> {
    const program = this.#program as Program;
    const { code } = await program.end();
    this.complaints.push(...program.stderr);
    return code;
  }

  /** Adds a lock; its secret. */
  async addLock(mac: string): Promise<string> {
    return (await this.post<{ secret: string }>('/devices', { mac })).secret;
  }

  /** Adds a webhook URL; its signing secret. */
  async addWebhook(url: string): Promise<string> {
    return (await this.post<{ secret: string }>('/webhooks', { url })).secret;
  }

  /** The lines that this life has printed, and a promise of more: see {@link Program.until}. */
  get program(): Program {
    return this.#program as Program;
  }

  async post<T>(route: string, body: unknown): Promise<T> {
    return await this.#ask(route, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  }

  async get<T>(route: string): Promise<T> {
    return await this.#ask(route, {});
  }

  async #ask<T>(route: string, request: { method?: string; headers?: object; body?: string }): Promise<T> {
    const answer = await fetch(`http://127.0.0.1:${this.request.operatorPort}${route}`, {
      ...request,
      headers: { authorization: `Bearer ${this.#token}`, ...request.headers },
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${request.method ?? 'GET'} ${route}: ${answer.status} ${text}`);
    return JSON.parse(text) as T;
  }
}
