/**
 * One stream of locks to one client: first a snapshot, then changes. It is in one of these phases:
 *
 * - *reading*: the stream reads from the store and sends a snapshot, or the changes that the client missed, as fast as
 *   the client takes them. It ignores new changes: the change log has them. The phase ends when the stream has sent
 *   everything in the log.
 * - *live*: the stream sends changes as they are delivered. The phase ends if the client has not yet taken the
 *   previous delivery when the next is made.
 * - *blocked*: the stream sends nothing until the client has taken everything. Then it is reading again: the changes
 *   that the client missed, or, after {@link MAX_LAG}, a new snapshot.
 * - *ended*.
 *
 * So at most one part of a snapshot, or one delivery, waits in memory for a slow client.
 */
import { PassThrough } from 'node:stream';
import { type Clock, type Milliseconds, Minutes, Seconds } from '../../proto/clock.js';
import type { Audience } from './audience.js';
import type { LiveBatch, LiveDelivery } from './live-batch.js';
import type { LiveReads } from './live-reads.js';
import { COMMENT, RETRY_FIELD } from './server-sent-events.js';

/** How many bytes may wait for the client before the stream pauses. */
const MAX_WAITING_BYTES = 64 * 1024;
/** A client that was slow for this long gets a new snapshot instead of what it missed. */
export const MAX_LAG: Milliseconds = Seconds(5);
/** A client that reads nothing for this long is disconnected. */
const MAX_BLOCKED: Milliseconds = Minutes(2);
/** The interval between two comments, which keep proxies from closing a silent connection. */
export const COMMENT_INTERVAL: Milliseconds = Seconds(15);

/** The stream that a caller asks for. */
export interface StreamRequest {
  readonly audience: Audience;
  /** The id of the last event that the client got; undefined if it got none. */
  readonly lastEventId?: string | undefined;
  /** How long the stream lasts; 0 ends it when the client has the present state; undefined for no limit. */
  readonly duration?: Milliseconds | undefined;
  /** Whether the caller still has the right to the stream; asked every few seconds. */
  readonly isAllowed: () => Promise<boolean>;
  /** Called with the number of locks that snapshots and missed changes of this stream have. */
  readonly onLocksRead?: ((count: number) => void) | undefined;
  /** Whether the stream has the gateway's events too. */
  readonly hasEvents?: boolean | undefined;
  /** Whether the stream has locks; true by default. */
  readonly hasLocks?: boolean | undefined;
}

/** Thrown within a stream when it has ended. */
class StreamEnded extends Error {}

export class LiveStream {
  readonly request: StreamRequest;
  /** What the client reads. */
  readonly out = new PassThrough({ highWaterMark: MAX_WAITING_BYTES });
  /**
   * Resolves when the stream first has to wait: for its client, for changes, or because it has ended. Until then, it
   * reads from the store.
   */
  readonly firstWait: Promise<void>;
  #onFirstWait: () => void = () => undefined;
  readonly #reads: LiveReads;
  readonly #clock: Clock;
  #phase: 'reading' | 'live' | 'blocked' | 'ended' = 'reading';
  /** The sequence of the last change that was sent. */
  #position = 0;
  #commentedAtMs: number;
  #blockedSinceMs: number | undefined;
  readonly #endsAtMs: number;
  /** Set while the stream is live; called when the stream becomes blocked or ended. */
  #wake: (() => void) | undefined;
  /** Events of the gateway that were not sent. */
  #skippedEvents = 0;

  constructor(request: StreamRequest, reads: LiveReads, clock: Clock) {
    this.request = request;
    this.#reads = reads;
    this.#clock = clock;
    this.#commentedAtMs = clock.now();
    this.firstWait = new Promise((resolve) => {
      this.#onFirstWait = resolve;
    });
    this.#endsAtMs = clock.now() + (request.duration ?? Number.POSITIVE_INFINITY);
    // An error is followed by `close`, which ends the stream.
    this.out.on('error', () => undefined);
    this.out.once('close', () => this.#enterEnded());
  }

  get hasEnded(): boolean {
    return this.#phase === 'ended';
  }

  /** Starts sending. Errors end the stream. */
  start(): void {
    this.#run().catch(() => this.out.destroy());
  }

  /** Ends the stream after what it has sent. */
  end(): void {
    if (this.hasEnded) return;
    this.#enterEnded();
    // A client that does not read must not hold the connection.
    if (this.out.writableNeedDrain) this.out.destroy();
    else this.out.end();
  }

  /** Has a batch rendered for this stream's audience, if it will be sent. */
  render(batch: LiveBatch): void {
    if (this.#phase !== 'live' || this.request.hasLocks === false) return;
    batch.bytesFor(this.request.audience, (sequence) => this.#idOf(sequence));
  }

  /** Sends changes, if the stream is live. Otherwise the change log has them until the stream reads. */
  offer(delivery: LiveDelivery): void {
    if (this.#phase !== 'live' || this.request.hasLocks === false || delivery.last <= this.#position) return;
    if (this.out.writableNeedDrain) {
      this.#enterBlocked();
      return;
    }
    const bytes = delivery.bytesAfter(this.#position, this.request.audience, (sequence) => this.#idOf(sequence));
    if (bytes.length > 0) this.out.write(bytes);
    this.#position = delivery.last;
  }

  /** Sends events of the gateway, unless the client is slow: then they are only counted. */
  offerEvents(bytes: Buffer, count: number): void {
    if (this.hasEnded) return;
    if (this.#phase !== 'live' || this.out.writableNeedDrain) {
      this.#skippedEvents += count;
      return;
    }
    this.#sendSkipped();
    if (bytes.length > 0) this.out.write(bytes);
  }

  /** Notes that events of the gateway were left out for all streams. */
  noteSkipped(count: number): void {
    this.#skippedEvents += count;
  }

  /** Sends how many events of the gateway were left out. */
  #sendSkipped(): void {
    if (this.#skippedEvents === 0) return;
    this.out.write(this.#reads.skippedText(this.#skippedEvents));
    this.#skippedEvents = 0;
  }

  /**
   * Ends the stream at its time limit or if its client reads nothing, and sends comments and how many events were left
   * out. Called every second.
   */
  checkTimes(): void {
    if (this.hasEnded) return;
    const nowMs = this.#clock.now();
    // A stream that is reading ends once it has sent the present state.
    if (nowMs >= this.#endsAtMs && this.#phase !== 'reading') {
      this.end();
      return;
    }
    if (this.out.writableNeedDrain) {
      this.#blockedSinceMs ??= nowMs;
      if (nowMs - this.#blockedSinceMs >= MAX_BLOCKED) this.out.destroy();
      return;
    }
    this.#blockedSinceMs = undefined;
    // Otherwise a client would learn only with the next event that some are missing.
    if (this.#phase === 'live') this.#sendSkipped();
    if (nowMs - this.#commentedAtMs < COMMENT_INTERVAL) return;
    this.#commentedAtMs = nowMs;
    this.out.write(COMMENT);
  }

  #idOf(sequence: number): string {
    return this.#reads.idOf(this.request.audience, sequence);
  }

  async #run(): Promise<void> {
    try {
      await this.#write(RETRY_FIELD);
      if (this.request.hasLocks === false) return await this.#runWithoutLocks();
      const resumed = this.#reads.positionOf(this.request.audience, this.request.lastEventId);
      this.#position = resumed ?? 0;
      let needsSnapshot = resumed === undefined;
      for (;;) {
        if (needsSnapshot) await this.#sendSnapshot();
        needsSnapshot = !(await this.#catchUp());
        if (needsSnapshot) continue;
        if (this.request.duration === 0) return this.end();
        await this.#whileLive();
        const blockedAtMs = this.#clock.now();
        await this.#drained();
        this.#phase = 'reading';
        needsSnapshot = this.#clock.now() - blockedAtMs >= MAX_LAG;
      }
    } catch (error) {
      if (!(error instanceof StreamEnded)) throw error;
    }
  }

  /** Runs a stream of the gateway's events only. */
  async #runWithoutLocks(): Promise<void> {
    if (this.request.duration === 0) return this.end();
    this.#phase = 'live';
    await this.#whileLive();
  }

  /** Sends all locks, and sets the position from which on changes are to be sent. */
  async #sendSnapshot(): Promise<void> {
    const { audience, onLocksRead, duration } = this.request;
    // A caller who asks for the present state only (`duration` 0) gets it in a fresh snapshot, not as changes after it.
    for await (const { text, locksRead, position } of this.#reads.snapshot(audience, duration === 0)) {
      onLocksRead?.(locksRead);
      this.#position = position;
      await this.#write(text);
    }
  }

  /**
   * Sends the changes after the position until none is left, and makes the stream live. Returns false if some of them
   * are no longer known.
   */
  async #catchUp(): Promise<boolean> {
    const { audience, onLocksRead } = this.request;
    for (;;) {
      // Read before the log's entries, so that a change that is added meanwhile is not skipped.
      const { last } = this.#reads;
      const missed = this.#reads.missed(audience, this.#position);
      if (missed === undefined) return false;
      if (missed.length === 0) {
        // In the same turn of the event loop as the check, so that no batch is offered in between.
        this.#position = last;
        if (!this.hasEnded) this.#phase = 'live';
        return true;
      }
      for await (const { text, locksRead } of this.#reads.changes(audience, missed)) {
        onLocksRead?.(locksRead);
        await this.#write(text);
      }
      this.#position = last;
    }
  }

  /** Resolves when the stream is no longer live. */
  async #whileLive(): Promise<void> {
    this.#onFirstWait();
    if (this.#phase === 'live')
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    if (this.hasEnded) throw new StreamEnded();
  }

  #enterBlocked(): void {
    this.#phase = 'blocked';
    this.#wake?.();
  }

  #enterEnded(): void {
    this.#phase = 'ended';
    this.#wake?.();
    this.#onFirstWait();
  }

  async #write(text: string): Promise<void> {
    if (this.hasEnded) throw new StreamEnded();
    if (text !== '' && !this.out.write(text)) await this.#drained();
  }

  /** Resolves when the client has read. @throws StreamEnded */
  async #drained(): Promise<void> {
    if (this.out.writableNeedDrain) this.#onFirstWait();
    if (this.out.writableNeedDrain && !this.hasEnded)
      await new Promise<void>((resolve) => {
        const done = (): void => {
          this.out.off('drain', done).off('close', done);
          resolve();
        };
        this.out.on('drain', done).on('close', done);
      });
    if (this.hasEnded) throw new StreamEnded();
  }
}
