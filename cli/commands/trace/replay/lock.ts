/**
 * Replays one lock's steps in order: an uplink is answered before the next step, as a lock has one in flight. After an
 * error (a refused CONNECT, a lost connection, no PUBACK) nothing more is sent until the trace connects the lock again:
 * an extra connection would hide the error.
 */
import { type Milliseconds, Seconds } from '../../../../proto/clock.js';
import { LockgateError } from '../../../../proto/errors.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import { type ConnectTrouble, type MqttTarget, ReplayConnection, type ReplayIdentity } from './connection.js';
import type { ReplayStep, SendStep } from './plan.js';
import type { Deviation } from './report.js';
import type { ReplayWatch } from './watch.js';

/** How long the gateway may take to notice the end of a connection before the lock connects again. */
const NOTICED_WITHIN: Milliseconds = Seconds(2);

/** What all locks of a replay share. */
export interface ReplayContext {
  readonly target: MqttTarget;
  readonly watch: ReplayWatch;
  /** No step starts once it fires. */
  readonly signal: AbortSignal;
  readonly counts: { connections: number; sent: number; acknowledged: number };
  readonly differences: Deviation[];
  /** Reports an error that makes the rest pointless. */
  readonly fail: (error: Error) => void;
}

export class ReplayLock {
  readonly #context: ReplayContext;
  readonly #identity: ReplayIdentity;
  readonly #macText: string;
  #connection: ReplayConnection | null = null;
  /** The connection that the next one takes over. */
  #abandoned: ReplayConnection | null = null;
  /** How many connections of this lock have ended. */
  #ended = 0;
  #line = 0;
  #work: Promise<void> = Promise.resolve();

  constructor(context: ReplayContext, identity: ReplayIdentity) {
    this.#context = context;
    this.#identity = identity;
    this.#macText = formatMac(identity.mac);
  }

  /** Replays the step when those before it are done. Resolves when it is done; never rejects. */
  take(step: ReplayStep): Promise<void> {
    this.#work = this.#work.then(() => this.#play(step)).catch((error: Error) => this.#context.fail(error));
    return this.#work;
  }

  /** Closes what is still connected. Once the signal has fired, steps in progress are not waited for. */
  async end(): Promise<void> {
    if (this.#context.signal.aborted) await this.#connection?.disconnect();
    await this.#work;
    await this.#abandoned?.drop();
    await this.#close((connection) => connection.disconnect());
  }

  async #play(step: ReplayStep): Promise<void> {
    if (this.#context.signal.aborted) return;
    this.#line = step.line;
    if (step.do === 'connect') await this.#connect();
    else if (step.do === 'send') await this.#send(step);
    else if (step.do === 'close') await this.#close((connection) => connection.disconnect());
    else if (step.do === 'drop') await this.#close((connection) => connection.drop());
    else this.#abandon();
  }

  async #connect(): Promise<void> {
    if (this.#connection !== null) this.#abandon();
    const { target, counts, signal } = this.#context;
    const opened = await ReplayConnection.open(target, this.#identity, signal, () => this.#lost());
    if (!opened.ok) {
      this.#refused(opened.error);
      return;
    }
    counts.connections += 1;
    this.#connection = opened.value;
    if (this.#abandoned === null) return;
    await this.#noticedEnd();
    await this.#abandoned.drop();
    this.#abandoned = null;
  }

  #refused({ message, code }: ConnectTrouble): void {
    const { counts, target, fail } = this.#context;
    if (code === null && counts.connections === 0) {
      const where = `${target.host}:${target.port}`;
      fail(new LockgateError('gateway-down', `no MQTT at ${where} (${message}). Name the right one with --mqtt`));
      return;
    }
    this.#differ('refused', code === null ? message : `CONNACK ${code}: ${message}`);
  }

  async #send(step: SendStep): Promise<void> {
    const { counts } = this.#context;
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

  /**
   * Waits until the gateway has seen the connection end, so that it does before the next one starts, as in the trace.
   */
  async #noticedEnd(): Promise<void> {
    this.#ended += 1;
    const count = this.#ended;
    if (this.#context.signal.aborted) return;
    await this.#context.watch.until(() => this.#context.watch.disconnectsOf(this.#macText) >= count, NOTICED_WITHIN);
  }

  #abandon(): void {
    this.#connection?.expectEnd();
    this.#abandoned = this.#connection;
    this.#connection = null;
  }

  #lost(): void {
    this.#connection = null;
    this.#ended += 1;
    this.#differ('ended', 'the gateway ended the connection');
  }

  #differ(kind: Deviation['kind'], message: string): void {
    // An interruption causes no differences.
    if (this.#context.signal.aborted) return;
    this.#context.differences.push({ line: this.#line, mac: this.#macText, kind, message });
  }
}
