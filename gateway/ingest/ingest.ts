/**
 * The entrance to ingest: accepts uplinks, other events of locks and exclusive work, and queues them. The commit loop
 * (commit-loop.ts) judges and stores what is queued, then answers and announces it. An answer without an error is the
 * lock's PUBACK; no uplink gets one before it is on disk.
 *
 * There is one queue, first in, first out. So a lock's uplinks are judged, stored and answered in the order in which
 * the lock sent them, and the judge (proto/power/judge, which checks them against the protocol's rules) sees connects,
 * disconnects and the passing of time in between, in the order in which they happened.
 */
import { LockgateError } from '../../proto/errors.js';
import { decodeUplink } from '../../proto/wire/codec.js';
import type { Mac } from '../../proto/wire/mac.js';
import { CommitLoop } from './commit-loop.js';
import type { IngestParts } from './ingest-parts.js';
import { type DeviceEvent, IngestQueue, type QueuedEvent } from './ingest-queue.js';
import { type Answer, PendingUplink, type Sender } from './pending-uplink.js';
import { overloadOf, UnansweredUplinks } from './unanswered-uplinks.js';

export type { Acknowledgement } from './draft-judge.js';
export type { CommandListener, IngestParts } from './ingest-parts.js';
export type { DeviceEvent } from './ingest-queue.js';
export type { Answer, Sender } from './pending-uplink.js';

/** Events that may wait a little for an uplink to share its commit; other events start a commit at once. */
const DELAYABLE_EVENTS: ReadonlySet<DeviceEvent['type']> = new Set(['connect', 'disconnect', 'tick']);

/** Called when an event is on disk; see {@link QueuedEvent}. */
export type Announce = QueuedEvent['announce'];

export class Ingest {
  readonly #parts: IngestParts;
  readonly #queue = new IngestQueue();
  readonly #unanswered = new UnansweredUplinks();
  readonly #loop: CommitLoop;
  #isStopping = false;

  constructor(parts: IngestParts) {
    this.#parts = parts;
    this.#loop = new CommitLoop(parts, this.#queue, this.#unanswered);
  }

  /** The number of uplinks and events that wait for a commit. */
  get waiting(): number {
    return this.#queue.length + this.#loop.draftLength;
  }

  /**
   * Takes the payload of one publish to `up`. Calls `answer` when the uplink is on disk or could not be stored, in the
   * order in which the lock's payloads were taken; at once, with an error, if too many uplinks wait.
   */
  take(sender: Sender, payload: Uint8Array, answer: Answer): void {
    const unanswered = this.#unanswered.of(sender.deviceId);
    const overload = overloadOf(unanswered, this.waiting);
    if (overload !== undefined) {
      answer(overload);
      return;
    }
    if (this.#parts.isStoreFailing?.() === true) {
      answer(new LockgateError('store-failing', 'the store can’t write now'));
      return;
    }
    unanswered.count += 1;
    const bytes = Buffer.from(payload);
    const decoded = decodeUplink(bytes);
    // The reported time may correct the run's clock, so this comes before the time of receipt is read.
    if (this.#parts.doubt?.isDoubted === true && decoded.ok)
      this.#parts.doubt.noteUplink({ ...sender, ...decoded.value });
    const receivedAtMs = this.#parts.clock.now();
    if (decoded.ok) this.#queue.add(new PendingUplink(sender, bytes, decoded.value, receivedAtMs, answer));
    else this.#queue.add({ type: 'rejection', sender, bytes, rejection: decoded.error, receivedAtMs, answer });
    this.#loop.start();
  }

  /**
   * Queues an event of a lock. Events are never refused: they are few, and the judge must see all of them. Calls
   * `announce` when the event is on disk.
   */
  recordEvent(deviceId: number, mac: Mac, event: DeviceEvent, announce: Announce = () => undefined): void {
    this.#queue.add({ type: 'event', deviceId, mac, event, announce, isRefused: false, findings: [] });
    if (this.#isStopping || !DELAYABLE_EVENTS.has(event.type)) this.#loop.start();
    else this.#loop.startForEvents();
  }

  /**
   * Runs `run`, which changes a lock's account, between two commits, when everything taken earlier is stored. Uplinks
   * of the lock that wait when `run` ends are refused without a PUBACK: the lock sends them again over a new
   * connection, to which the change applies. Resolves or rejects as `run` does.
   *
   * @param refusesWaiting false if the change closes no connection: waiting uplinks are then judged after the change
   */
  runExclusive(deviceId: number, run: () => Promise<void>, refusesWaiting = true): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = (error?: Error): void => (error === undefined ? resolve() : reject(error));
      this.#queue.add({ type: 'work', deviceId, refusesWaiting, run, done });
      this.#loop.start();
    });
  }

  /**
   * Resumes the judging of a lock (judging.ts): judges its log again, between two commits.
   *
   * @throws LockgateError `lock-is-judged`, `judge-failed`
   * @throws StoreFailure
   */
  async rejudge(deviceId: number, mac: Mac): Promise<void> {
    await this.runExclusive(deviceId, () => this.#parts.locks.rejudge(deviceId, mac), false);
    // Because of the tick, the lock's presence is reported and its next tick is scheduled.
    this.recordEvent(deviceId, mac, { type: 'tick', atMs: this.#parts.clock.now() });
    this.#loop.start();
  }

  /** Resolves when everything taken so far has been answered. */
  async idle(): Promise<void> {
    if (this.#queue.length > 0) this.#loop.start();
    await this.#loop.ended();
  }

  /**
   * As {@link idle}, but from now on a failing store is not retried. Uplinks and events taken later are still stored if
   * possible. May be called again.
   */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#loop.stopRetrying();
    await this.idle();
  }
}
