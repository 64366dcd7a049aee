/**
 * Replays one lock's steps in order. Like a real lock it has one uplink (message of a lock) in flight: it waits for the
 * PUBACK before the next step. After an error (a refused CONNECT, a lost connection, no PUBACK) it sends nothing until
 * the trace connects the lock again: an extra connection would hide the error.
 */
import { type Milliseconds, Seconds } from '../../../../proto/clock.js';
import { LockgateError } from '../../../../proto/errors.js';
import { formatMac } from '../../../../proto/wire/mac.js';
import { type ConnectError, type MqttTarget, ReplayConnection, type ReplayIdentity } from './connection.js';
import type { ReplayStep, SendStep } from './plan.js';
import type { Deviation } from './report.js';
import type { ReplayWatch } from './watch.js';

/** How long to wait for the gateway to report the end of a connection before the lock connects again. */
const END_REPORT_TIMEOUT_MS: Milliseconds = Seconds(2);

/** What all locks of a replay share. */
export interface ReplayContext {
  readonly target: MqttTarget;
  readonly watch: ReplayWatch;
  /** No step starts once it fires. */
  readonly signal: AbortSignal;
  readonly counts: { connections: number; sent: number; acknowledged: number };
  /** Collects the differences from the trace. */
  readonly differences: Deviation[];
  /** Stops the replay because of this error. */
  readonly fail: (error: Error) => void;
}

/** One lock of a replay and its connections. */
export class ReplayLock {
  readonly #context: ReplayContext;
  readonly #identity: ReplayIdentity;
  readonly #macText: string;
  #connection: ReplayConnection | null = null;
  /** A connection that stays open until the lock's next connection takes over: the gateway then closes this one. */
  #abandoned: ReplayConnection | null = null;
  /** How many connections of this lock have ended. */
  #endedConnections = 0;
  /** The trace line of the current step. */
  #line = 0;
  #lastStep: Promise<void> = Promise.resolve();

  constructor(context: ReplayContext, identity: ReplayIdentity) {
    this.#context = context;
    this.#identity = identity;
    this.#macText = formatMac(identity.mac);
  }

  /** Replays the step after all earlier steps. Resolves when the step is done; never rejects. */
  enqueue(step: ReplayStep): Promise<void> {
    this.#lastStep = this.#lastStep.then(() => this.#replay(step)).catch((error: Error) => this.#context.fail(error));
    return this.#lastStep;
  }

  /** Closes the open connections after the last step; after the signal has fired, at once. */
  async end(): Promise<void> {
    if (this.#context.signal.aborted) await this.#connection?.disconnect();
    await this.#lastStep;
    await this.#abandoned?.drop();
    await this.#close((connection) => connection.disconnect());
  }

  async #replay(step: ReplayStep): Promise<void> {
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
    const opened = await ReplayConnection.open(target, this.#identity, signal, () => this.#onLost());
    if (!opened.ok) {
      this.#reportRefusal(opened.error);
      return;
    }
    counts.connections += 1;
    this.#connection = opened.value;
    if (this.#abandoned === null) return;
    await this.#waitForReportedEnd();
    await this.#abandoned.drop();
    this.#abandoned = null;
  }

  #reportRefusal({ message, code }: ConnectError): void {
    const { counts, target, fail } = this.#context;
    if (code === null && counts.connections === 0) {
      const address = `${target.host}:${target.port}`;
      fail(new LockgateError('gateway-down', `no MQTT at ${address} (${message}). Give the right address with --mqtt`));
      return;
    }
    this.#addDifference('refused', code === null ? message : `CONNACK ${code}: ${message}`);
  }

  async #send(step: SendStep): Promise<void> {
    const { counts } = this.#context;
    const connection = this.#connection;
    if (connection === null) {
      this.#addDifference('unsent', 'the uplink was not sent, because the lock’s connection was refused or lost');
      return;
    }
    counts.sent += 1;
    if (await connection.publish(step.bytes)) {
      counts.acknowledged += 1;
      return;
    }
    this.#addDifference('unacknowledged', 'the uplink was sent, but no PUBACK arrived');
    await this.#close((unanswered) => unanswered.drop());
  }

  async #close(end: (connection: ReplayConnection) => Promise<void>): Promise<void> {
    const connection = this.#connection;
    if (connection === null) return;
    this.#connection = null;
    await end(connection);
    await this.#waitForReportedEnd();
  }

  /**
   * Waits until the gateway reports the end of the connection. If the lock's next CONNECT came first, the gateway would
   * record that it took over this connection, instead of how the lock ended it.
   */
  async #waitForReportedEnd(): Promise<void> {
    this.#endedConnections += 1;
    const count = this.#endedConnections;
    if (this.#context.signal.aborted) return;
    const { watch } = this.#context;
    await watch.waitUntil(() => watch.disconnectsOf(this.#macText) >= count, END_REPORT_TIMEOUT_MS);
  }

  /** Leaves the connection open, to be replaced by the lock's next one. */
  #abandon(): void {
    // None if it was refused or lost: then one that was left open before still is.
    if (this.#connection === null) return;
    this.#connection.expectTakeover();
    this.#abandoned = this.#connection;
    this.#connection = null;
  }

  #onLost(): void {
    this.#connection = null;
    this.#endedConnections += 1;
    this.#addDifference('ended', 'the gateway closed the connection');
  }

  #addDifference(kind: Deviation['kind'], message: string): void {
    // Closing connections after an interruption is no difference.
    if (this.#context.signal.aborted) return;
    this.#context.differences.push({ line: this.#line, mac: this.#macText, kind, message });
  }
}
