/**
 * A gateway that shares a database and is started again whenever its process ends, as a service manager does. It
 * reaches the database through a proxy of its own.
 */
import { copyFileSync } from 'node:fs';
import path from 'node:path';
import { type Milliseconds, Seconds } from '../../../proto/clock.js';
import { realDelay } from '../clocks/change-signal.js';
import { SetClock, whyNoSetClock } from '../clocks/set-clock.js';
import type { SabotageName } from '../durability/sabotage.js';
import { GatewayChild } from '../gateway/gateway-child.js';
import { type Teardown, tempFolder } from '../store/temp-folder.js';
import { FaultProxy } from './fault-proxy.js';

/** How long after its end a process is started again. */
const RESTART_DELAY = Seconds(0.5);
/** The time limit of waiting for a process to end: longer than any test. */
const MAX_RUN_SECONDS = 7200;
const STOP_SECONDS = 30;

/** The database of the gateway, its key, and how it breaks a promise. */
export interface KeptGatewayOptions {
  /** The database's URL at a port of the proxy. */
  readonly urlAt: (port: number) => string;
  /** PostgreSQL's present port, to which the proxy connects. */
  readonly databasePort: () => number;
  /** The folder with the key that all gateways have. */
  readonly keyFrom: string;
  readonly sabotage?: SabotageName | undefined;
  /** Whether its clock can be set. */
  readonly hasOwnClock: boolean;
}

/** The gateway, through all its processes. */
export class KeptGateway {
  readonly child: GatewayChild;
  readonly proxy: FaultProxy;
  /** The clock that its processes see; undefined if it is the machine's. */
  readonly clock: SetClock | undefined;
  /** The exit code of each process that ended before {@link stop}, by a fault or by itself; null after a signal. */
  readonly exits: (number | null)[] = [];
  isUp = false;
  #isEnding = false;
  #restartDelayMs: Milliseconds = RESTART_DELAY;
  /** Resolves when the last process has ended and none will be started any more. */
  #keeping: Promise<void> = Promise.resolve();

  private constructor(child: GatewayChild, proxy: FaultProxy, clock: SetClock | undefined) {
    this.child = child;
    this.proxy = proxy;
    this.clock = clock;
  }

  /** Starts the gateway, and resolves when it is ready. */
  static async start(test: Teardown, options: KeptGatewayOptions): Promise<KeptGateway> {
    const { urlAt, databasePort, keyFrom, sabotage, hasOwnClock } = options;
    const proxy = await FaultProxy.start(test, databasePort);
    const data = tempFolder(test);
    copyFileSync(path.join(keyFrom, 'key'), path.join(data, 'key'));
    const child = await GatewayChild.create(test, { sabotage, data, store: urlAt(proxy.port), isShared: true });
    const clock = hasOwnClock && whyNoSetClock() === undefined ? new SetClock(test) : undefined;
    if (clock !== undefined) child.environment = clock.environment;
    await child.start();
    const gateway = new KeptGateway(child, proxy, clock);
    gateway.isUp = true;
    gateway.#keeping = gateway.#keep();
    return gateway;
  }

  /** What the gateway says of itself: `ready`, `degraded` and the like; `down` if it does not answer. */
  async readiness(): Promise<string> {
    try {
      const answer = await fetch(`http://127.0.0.1:${this.child.options.operatorPort}/readyz`, {
        headers: { authorization: `Bearer ${this.child.token}` },
      });
      return ((await answer.json()) as { status: string }).status;
    } catch {
      return 'down';
    }
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

  /** Waits for each process to end, and starts the next one, until {@link stop}. */
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
      // A process that can't reach the database ends before it is ready; the next turn of the loop starts another.
      await this.child.waitUntilReady().then(
        () => {
          this.isUp = true;
        },
        () => undefined,
      );
    }
  }
}
