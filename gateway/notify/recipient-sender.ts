/**
 * Sends the messages of one recipient, one after another, with the retries, the signature and the address rule of
 * webhooks (interfaces.md §3). A *trouble*, such as a webhook URL that fails, has up to two messages, its *parts*: that
 * it opened, and that it ended. A message stays in the store until its outcome is stored there; after a crash it is
 * sent again under its id.
 *
 * The sender is *asleep* until a timer or `wake` starts it; then it sends what is due, and sleeps until the next
 * message is due. It sends nothing while its receiver has asked for a pause. After many failures in a row its circuit
 * is open: it only probes the URL now and then. A failure of this machine, such as an unreachable name server, does not
 * count as an attempt.
 */
import { randomBytes } from 'node:crypto';
import { type Clock, type Milliseconds, Seconds, systemClock, type Timer } from '../../proto/clock.js';
import type { GatewayEvents } from '../events.js';
import type { DueMessage, MessageAttempt, NotificationStore } from '../store/contract/notify/notification-store.js';
import { signHeaders } from '../webhooks/payload/signature.js';
import { type AttemptResult, attemptDelivery } from '../webhooks/sending/attempt.js';
import type { SigningSecret } from '../webhooks/sending/delivery-sender.js';
import type { GuardedConnections } from '../webhooks/sending/guarded-connections.js';
import { Circuit } from '../webhooks/url/circuit.js';
import type { DeliveryClock } from '../webhooks/url/delivery-clock.js';
import { MAX_RETRY_AFTER, retryDelay } from '../webhooks/url/schedule.js';
import { type Message, makeMessage, makeTestMessage } from './message.js';

/** After this many failures in a row the URL counts as failing. */
export const FAILURES_TO_REPORT = 3;
/** The wait after a failure of the store, and after one of this machine. */
const STORE_RETRY_DELAY: Milliseconds = Seconds(5);
const OWN_FAILURE_DELAY: Milliseconds = Seconds(10);
/** The random part of a test message's id. */
const TEST_ID_BYTES = 16;

/** What a sender uses from the rest of the gateway. */
export interface SenderParts {
  readonly store: { readonly notifications: NotificationStore };
  readonly events: GatewayEvents;
  /** Connections that refuse addresses that deliveries must not reach. */
  readonly connections: GuardedConnections;
  /** The delivery clock: when attempts are due, and wall-clock time (`wall`) for signatures. */
  readonly deliveryClock: DeliveryClock;
  readonly userAgent: string;
  /** Returns a random number in [0, 1). */
  readonly random: () => number;
  /** The run's clock, for events. */
  readonly runClock: Clock;
  /** Whether this gateway sends the messages: of several that share the store, one does. */
  readonly maySend: () => boolean;
}

/** The recipient of a sender: its URL, and the secrets that sign. */
export interface SenderTarget {
  readonly recipientId: number;
  readonly url: string;
  /** Newest first. */
  readonly secrets: readonly SigningSecret[];
}

/** Called when the URL starts to fail, or works again. */
export type OnUrlState = (recipientId: number, state: 'failing' | 'working', why: string) => void;

export class RecipientSender {
  readonly #target: SenderTarget;
  readonly #parts: SenderParts;
  readonly #onUrlState: OnUrlState;
  readonly #circuit = new Circuit();
  readonly #abort = new AbortController();
  #secrets: readonly SigningSecret[];
  /** Failures in a row since the start. */
  #failures = 0;
  /** Until when the receiver asked for no attempts, by the delivery clock. */
  #heldUntilMs = 0;
  /** An attempt whose outcome the store has refused so far. */
  #unrecorded: MessageAttempt | undefined;
  #timer: Timer | undefined;
  #running: Promise<void> | undefined;
  #isWoken = false;
  #isStopped = false;

  constructor(target: SenderTarget, parts: SenderParts, onUrlState: OnUrlState) {
    this.#target = target;
    this.#parts = parts;
    this.#onUrlState = onUrlState;
    this.#secrets = target.secrets;
  }

  get url(): string {
    return this.#target.url;
  }

  /** Whether the last attempts since the start have all failed, so many that this was reported. */
  get isFailing(): boolean {
    return this.#failures >= FAILURES_TO_REPORT;
  }

  /** Replaces the secrets that sign, newest first. */
  setSecrets(secrets: readonly SigningSecret[]): void {
    this.#secrets = secrets;
  }

  /** Sends what is due. Must be called after messages were queued. */
  wake(): void {
    if (this.#isStopped || !this.#parts.maySend()) return;
    this.#timer?.cancel();
    this.#isWoken = true;
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      // `wake` was called after #run had looked for messages for the last time.
      if (this.#isWoken) this.wake();
    });
  }

  /** Sends a test message, once. Never rejects. */
  async test(): Promise<AttemptResult> {
    const message = makeTestMessage(`ntf_${randomBytes(TEST_ID_BYTES).toString('base64url')}`);
    const result = await this.#send(message, this.#parts.deliveryClock.wall.now());
    if (result.error === null) this.wake();
    return result;
  }

  /** Starts nothing new, and gives a running attempt up to `grace` ms before it is aborted. */
  async stop(grace: Milliseconds): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    const limit = systemClock.after(grace, () => this.#abort.abort());
    if (grace === 0) this.#abort.abort();
    await this.#running;
    limit.cancel();
    // Without a grace this sender is replaced by one for another URL, which sends the message anew.
    if (grace === 0) return;
    // If the store refuses the outcome of the attempt that has just ended, the message is sent again after the start.
    await this.#record().catch((error: Error) => this.#reportStore(error));
  }

  async #run(): Promise<void> {
    try {
      while (this.#isWoken && !this.#isStopped) {
        this.#isWoken = false;
        while (!this.#isStopped && (await this.#sendNext()));
      }
    } catch (error) {
      this.#reportStore(error as Error);
      this.#sleep(STORE_RETRY_DELAY);
    }
  }

  #reportStore(error: Error): void {
    const { events, runClock } = this.#parts;
    events.emit('store-failed', { atMs: runClock.now(), why: error.message });
  }

  /** Sends the next message that is due. Returns false if none is due now; a timer is set if one is due later. */
  async #sendNext(): Promise<boolean> {
    const { deliveryClock } = this.#parts;
    const { notifications } = this.#parts.store;
    await this.#record();
    const nowMs = deliveryClock.now();
    const mayAttemptAtMs = Math.max(this.#heldUntilMs, this.#circuit.probeAtMs ?? 0);
    if (mayAttemptAtMs > nowMs) return this.#sleep(mayAttemptAtMs - nowMs);
    const due = await notifications.readDue(this.#target.recipientId, nowMs);
    if (due === null) {
      const nextAtMs = await notifications.nextDueAtMs(this.#target.recipientId);
      return nextAtMs === null ? false : this.#sleep(Math.max(nextAtMs - nowMs, 0));
    }
    // That a trouble opened again soon after its end is reported some minutes later, and only if it is still open then.
    if (due.isHeld && !(await notifications.release(due.id))) return true;
    return await this.#attempt(due);
  }

  /** Makes one attempt and notes its outcome. Returns false if the sender must not go on now. */
  async #attempt(due: DueMessage): Promise<boolean> {
    const { deliveryClock, random } = this.#parts;
    const { recipientId } = this.#target;
    const atMs = deliveryClock.wall.now();
    const result = await this.#send(makeMessage(due, recipientId), atMs);
    if (this.#abort.signal.aborted) return false;
    if (result.ownFailure !== undefined) return this.#sleep(OWN_FAILURE_DELAY);
    const nowMs = deliveryClock.now();
    const { status, error, retryAfter } = result;
    if (retryAfter !== undefined) this.#heldUntilMs = nowMs + Math.min(retryAfter, MAX_RETRY_AFTER);
    // After a 410 (Gone) the message is given up.
    const delay = error === null || status === 410 ? undefined : retryDelay(due.attempts + 1, random(), retryAfter);
    this.#unrecorded = {
      id: due.id,
      recipientId,
      part: due.part,
      atMs,
      failure: error === null ? null : { status, error },
      nextAttemptAtMs: delay === undefined ? null : nowMs + delay,
    };
    this.#countOutcome(error, nowMs);
    return true;
  }

  /** Stores the last outcome. Until the store takes it nothing is sent, so that no message is sent again and again. */
  async #record(): Promise<void> {
    if (this.#unrecorded === undefined) return;
    await this.#parts.store.notifications.conclude(this.#unrecorded);
    this.#unrecorded = undefined;
  }

  /** Counts failures for the circuit, and reports when the URL starts to fail or works again. */
  #countOutcome(error: string | null, nowMs: number): void {
    const { recipientId } = this.#target;
    if (error !== null) {
      this.#circuit.failed(nowMs);
      this.#failures += 1;
      if (this.#failures === FAILURES_TO_REPORT) this.#onUrlState(recipientId, 'failing', error);
      return;
    }
    this.#circuit.succeeded();
    if (this.isFailing) this.#onUrlState(recipientId, 'working', 'an attempt succeeded');
    this.#failures = 0;
  }

  async #send({ id, body }: Message, nowMs: number): Promise<AttemptResult> {
    const { connections, deliveryClock, userAgent } = this.#parts;
    const valid = this.#secrets.filter(({ validUntilMs = Number.POSITIVE_INFINITY }) => validUntilMs > nowMs);
    const headers = {
      'content-type': 'application/json',
      'user-agent': userAgent,
      ...signHeaders(
        valid.map(({ secret }) => secret),
        id,
        nowMs,
        body,
      ),
    };
    return await attemptDelivery(
      { url: this.#target.url, headers, body },
      connections,
      deliveryClock.wall,
      this.#abort.signal,
    );
  }

  /** Sleeps until the next call of `wake`, at most this long. Returns false. */
  #sleep(delay: Milliseconds): false {
    this.#timer?.cancel();
    if (!this.#isStopped) this.#timer = this.#parts.deliveryClock.after(delay, () => this.wake());
    return false;
  }
}
