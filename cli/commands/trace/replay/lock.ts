/**
 * Plays one lock's steps, one after the other: an uplink is answered before what follows it is done, as a lock keeps
 * one in flight. After trouble (a CONNECT refused, a connection lost, no PUBACK) nothing more is sent until the trace
 * connects the lock again: a replay makes up no connection that would hide the trouble.
 */
import { type Milliseconds, Seconds } from '../../../../proto/clock.js';
import { LockgateError } from '../../../../proto/errors.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import { type ConnectTrouble, type MqttTarget, ReplayConnection, type ReplayIdentity } from './connection.js';
import type { ReplayStep, SendStep } from './plan.js';
import type { Deviation } from './report.js';
import type { ReplayWatch } from './watch.js';

/** How long the gateway may take to notice that a connection ended, before the lock connects again. */
const NOTICED_WITHIN: Milliseconds = Seconds(2);

/** What all locks of a replay share. */
export interface Stage {
  readonly target: MqttTarget;
  readonly watch: ReplayWatch;
  /** Nothing more is begun once it fires. */
  readonly signal: AbortSignal;
  readonly counts: { connections: number; sent: number; acknowledged: number };
  readonly differences: Deviation[];
  /** What makes going on pointless. */
  readonly fail: (error: Error) => void;
}

export class ReplayLock {
  readonly #stage: Stage;
  readonly #identity: ReplayIdentity;
  readonly #spelled: string;
  #connection: ReplayConnection | null = null;
  /** The one that the next connection takes over. */
  #left: ReplayConnection | null = null;
  /** Connections of ours that have ended. */
  #ended = 0;
  #line = 0;
  #work: Promise<void> = Promise.resolve();

  constructor(stage: Stage, identity: ReplayIdentity) {
    this.#stage = stage;
    this.#identity = identity;
    this.#spelled = formatMac(identity.mac);
  }

  /** Plays the step when those before it are done. Resolves when it is done itself; never rejects. */
  take(step: ReplayStep): Promise<void> {
    this.#work = this.#work.then(() => this.#play(step)).catch((error: Error) => this.#stage.fail(error));
    return this.#work;
  }

  /** Ends what is still connected, in good order; what is under way is not waited for once the signal has fired. */
  async end(): Promise<void> {
    if (this.#stage.signal.aborted) await this.#connection?.disconnect();
    await this.#work;
    await this.#left?.drop();
    await this.#close((connection) => connection.disconnect());
  }

  async #play(step: ReplayStep): Promise<void> {
    if (this.#stage.signal.aborted) return;
    this.#line = step.line;
    if (step.do === 'connect') await this.#connect();
    else if (step.do === 'send') await this.#send(step);
    else if (step.do === 'close') await this.#close((connection) => connection.disconnect());
    else if (step.do === 'drop') await this.#close((connection) => connection.drop());
    else this.#leave();
  }

  async #connect(): Promise<void> {
    if (this.#connection !== null) this.#leave();
    const { target, counts, signal } = this.#stage;
    const opened = await ReplayConnection.open(target, this.#identity, signal, () => this.#lost());
    if (!opened.ok) {
      this.#refused(opened.error);
      return;
    }
    counts.connections += 1;
    this.#connection = opened.value;
    if (this.#left === null) return;
    await this.#noticedEnd();
    await this.#left.drop();
    this.#left = null;
  }

  #refused({ message, code }: ConnectTrouble): void {
    const { counts, target, fail } = this.#stage;
    if (code === null && counts.connections === 0) {
      const where = `${target.host}:${target.port}`;
      fail(new LockgateError('gateway-down', `no MQTT at ${where} (${message}). Name the right one with --mqtt`));
      return;
    }
    this.#differ('refused', code === null ? message : `CONNACK ${code}: ${message}`);
  }

  async #send(step: SendStep): Promise<void> {
    const { counts } = this.#stage;
    const connection = this.#connection;
    if (connection === null) {
      this.#differ('unsent', 'the uplink was not sent, because the lock’s connection was refused or lost');
      return;
    }
    counts.sent += 1;
    if (await connection.publish(step.bytes)) {
      counts.acknowledged += 1;
      return;
    }
    this.#differ('unacknowledged', 'the uplink was sent, and no PUBACK came');
    await this.#close((one) => one.drop());
  }

  async #close(end: (connection: ReplayConnection) => Promise<void>): Promise<void> {
    const connection = this.#connection;
    if (connection === null) return;
    this.#connection = null;
    await end(connection);
    await this.#noticedEnd();
  }

  /** So that the gateway sees one connection end before the next begins, as it was in the trace. */
  async #noticedEnd(): Promise<void> {
    this.#ended += 1;
    const count = this.#ended;
    if (this.#stage.signal.aborted) return;
    await this.#stage.watch.until(() => this.#stage.watch.disconnectsOf(this.#spelled) >= count, NOTICED_WITHIN);
  }

  #leave(): void {
    this.#connection?.expectEnd();
    this.#left = this.#connection;
    this.#connection = null;
  }

  #lost(): void {
    this.#connection = null;
    this.#ended += 1;
    this.#differ('ended', 'the gateway ended the connection');
  }

  #differ(kind: Deviation['kind'], message: string): void {
    // What an interruption cuts off is no difference.
    if (this.#stage.signal.aborted) return;
    this.#stage.differences.push({ line: this.#line, mac: this.#spelled, kind, message });
  }
}
