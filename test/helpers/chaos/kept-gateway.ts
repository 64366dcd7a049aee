/**
 * A gateway that shares a database and is started again whenever its process ends, as a service manager does. It
 * reaches the database through a proxy of its own.
 */
import { copyFileSync } from 'node:fs';
import path from 'node:path';
import { type Milliseconds, Seconds } from '../../../proto/clock.js';
import { realDelay } from '../clocks/change-signal.js';
import type { SabotageName } from '../durability/sabotage.js';
import { GatewayChild } from '../gateway/gateway-child.js';
import { type Teardown, tempFolder } from '../store/temp-folder.js';
import { FaultProxy } from './fault-proxy.js';

/** How long after its end a process is started again. */
const RESTART_DELAY = Seconds(0.5);
/** The longest run of a process: longer than any test. */
const MAX_RUN_SECONDS = 7200;
const STOP_SECONDS = 30;

export interface KeptGatewayOptions {
  /** The database's URL at a port of the proxy, and the port of PostgreSQL at this time. */
  readonly urlAt: (port: number) => string;
  readonly databasePort: () => number;
  /** The folder with the key that all gateways have. */
  readonly keyFrom: string;
  readonly sabotage?: SabotageName | undefined;
}

export class KeptGateway {
  readonly child: GatewayChild;
  readonly proxy: FaultProxy;
  /** How often a process ended although nobody asked it to, and its exit codes; null after a signal. */
  readonly exits: (number | null)[] = [];
  isUp = false;
  #isEnding = false;
  #restartDelayMs: Milliseconds = RESTART_DELAY;
  #keeping: Promise<void> = Promise.resolve();

  private constructor(child: GatewayChild, proxy: FaultProxy) {
    this.child = child;
    this.proxy = proxy;
  }

  /** Starts the gateway, and resolves when it is ready. */
  static async start(test: Teardown, options: KeptGatewayOptions): Promise<KeptGateway> {
    const { urlAt, databasePort, keyFrom, sabotage } = options;
    const proxy = await FaultProxy.start(test, databasePort);
    const data = tempFolder(test);
    copyFileSync(path.join(keyFrom, 'key'), path.join(data, 'key'));
    const child = await GatewayChild.create(test, { sabotage, data, store: urlAt(proxy.port), isShared: true });
    await child.start();
    const gateway = new KeptGateway(child, proxy);
    gateway.isUp = true;
    gateway.#keeping = gateway.#keep();
    return gateway;
  }

  /** Kills the process; it starts again after `restartDelayMs`. */
  kill(restartDelayMs: Milliseconds = RESTART_DELAY): void {
    this.#restartDelayMs = restartDelayMs;
    this.child.program.kill('SIGKILL');
  }

  /** Sends a signal to the process. */
  signal(name: NodeJS.Signals): void {
    this.child.program.kill(name);
  }

  /** Ends the process, which is not started again. */
  async stop(): Promise<void> {
    this.#isEnding = true;
    this.signal('SIGCONT');
    await this.child.stop(STOP_SECONDS).catch(() => this.child.kill());
    await this.#keeping;
  }

  async #keep(): Promise<void> {
    for (;;) {
      const { code } = await this.child.program.waitForExit(MAX_RUN_SECONDS);
      this.isUp = false;
      if (this.#isEnding) return;
      this.exits.push(code);
      await realDelay(this.#restartDelayMs);
      this.#restartDelayMs = RESTART_DELAY;
      if (this.#isEnding) return;
      this.child.spawn();
      // It may end before it is ready, since the database is away: then it is started again.
      await this.child.waitUntilReady().then(
        () => {
          this.isUp = true;
        },
        () => undefined,
      );
    }
  }
}
