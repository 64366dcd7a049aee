/**
 * The open streams of locks, and the changes for them (interfaces.md §2). From a minute after the last stream has
 * ended, nothing listens to the gateway's events. Until then an event of the gateway only notes which locks changed:
 * what is sent is read and rendered later, in slices between other work, once for all streams of a merchant. So open
 * streams hardly delay a ping, however many there are.
 *
 * A stream gets a lock at most once a second. If many locks move, their turns are spread (waiting-changes.ts).
 */
import { type Clock, type Milliseconds, Minutes, Seconds, type Timer } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { OverBudget } from '../fairness/over-budget.js';
import { ChangeCollector, type CollectorParts } from './change-collector.js';
import { EventTail, type TailSource } from './event-tail.js';
import { LiveStream, type StreamRequest } from './live-stream.js';

/** Maximum number of open streams of one merchant. */
export const MAX_STREAMS_PER_MERCHANT = 16;
/** Maximum number of open streams of all merchants together, and of all operators. */
export const MAX_STREAMS = 256;
/** How long changes are still collected after the last stream has ended, for clients that come back. */
const COLLECT_AFTER_LAST_STREAM: Milliseconds = Minutes(1);
/** How often the time limits of all streams are checked: one round. */
const ROUND_INTERVAL: Milliseconds = Seconds(1);
/** The rights of the streams' callers are checked in every second round. */
const ROUNDS_PER_RIGHTS_CHECK = 2;

export interface LiveFeedParts extends CollectorParts {
  /** The gateway's events as JSON, for operators' streams. */
  readonly tail: TailSource;
}

export class LiveFeed {
  readonly #parts: LiveFeedParts;
  readonly #clock: Clock;
  readonly #streams = new Set<LiveStream>();
  /** Present while streams are open, and for a while afterwards. */
  #collector: ChangeCollector | undefined;
  #tail: EventTail | undefined;
  #roundTimer: Timer | undefined;
  /** Ends the collector {@link COLLECT_AFTER_LAST_STREAM} after the last stream. */
  #collectorEndTimer: Timer | undefined;
  #rounds = 0;
  #isChecking = false;
  #isStopped = false;

  constructor(parts: LiveFeedParts) {
    this.#parts = parts;
    this.#clock = parts.clock;
  }

  /** The number of open streams. */
  get count(): number {
    return this.#streams.size;
  }

  /**
   * Opens a stream. The caller must end it when the client has disconnected.
   *
   * @throws OverBudget `streams` if the merchant has too many
   * @throws LockgateError `busy` if there are too many in all, `stopping`
   */
  open(request: StreamRequest): LiveStream {
    if (this.#isStopped) throw new LockgateError('stopping', 'the gateway is stopping');
    this.#checkLimits(request.audience.merchantId);
    this.#collectorEndTimer?.cancel();
    this.#collector ??= new ChangeCollector(this.#parts, {
      // Renders the bytes of each batch while its locks are in memory; `deliver` later writes those of several batches.
      render: (batch) => {
        for (const stream of this.#streams) stream.render(batch);
      },
      deliver: (delivery) => {
        for (const stream of this.#streams) stream.offer(delivery);
      },
    });
    this.#collector.include(request.audience.merchantId);
    const stream = new LiveStream(request, this.#collector.reads, this.#clock);
    this.#streams.add(stream);
    stream.out.once('close', () => this.#onClosed(stream));
    if (request.hasEvents === true) this.#startTail();
    this.#roundTimer ??= this.#clock.after(ROUND_INTERVAL, () => this.#round());
    stream.start();
    return stream;
  }

  /** Ends all streams, and refuses further ones. Called when the gateway stops. */
  stop(): void {
    this.#isStopped = true;
    for (const stream of this.#streams) stream.end();
    this.#roundTimer?.cancel();
    this.#collectorEndTimer?.cancel();
    this.#tail?.stop();
    this.#collector?.stop();
  }

  /** @throws OverBudget `streams`, LockgateError `busy` if no further stream may be opened */
  #checkLimits(merchantId: number | undefined): void {
    const open = [...this.#streams].filter(({ hasEnded }) => !hasEnded);
    const isOperator = (stream: LiveStream): boolean => stream.request.audience.merchantId === undefined;
    // Merchants and operators have separate limits.
    const ofSameKind = open.filter((stream) => isOperator(stream) === (merchantId === undefined));
    if (ofSameKind.length >= MAX_STREAMS)
      throw new LockgateError('busy', `${MAX_STREAMS} streams are open, the maximum; try again in a moment`);
    if (merchantId === undefined) return;
    const own = ofSameKind.filter((stream) => stream.request.audience.merchantId === merchantId);
    if (own.length < MAX_STREAMS_PER_MERCHANT) return;
    const detail = `${MAX_STREAMS_PER_MERCHANT} streams of this merchant are open, the maximum: let one end first`;
    throw OverBudget.rate('streams', detail, Seconds(1));
  }

  #startTail(): void {
    this.#tail ??= new EventTail(this.#parts, {
      send: (bytes, count) => {
        for (const stream of this.#streams) if (stream.request.hasEvents === true) stream.offerEvents(bytes, count);
      },
      skip: (count) => {
        for (const stream of this.#streams) if (stream.request.hasEvents === true) stream.noteSkipped(count);
      },
    });
  }

  /** Forgets a closed stream, and stops the parts that only such streams need. */
  #onClosed(stream: LiveStream): void {
    this.#streams.delete(stream);
    if (this.#isStopped) return;
    if (![...this.#streams].some(({ request }) => request.hasEvents === true)) {
      this.#tail?.stop();
      this.#tail = undefined;
    }
    if (this.#streams.size > 0) return;
    this.#roundTimer?.cancel();
    this.#roundTimer = undefined;
    this.#collectorEndTimer?.cancel();
    this.#collectorEndTimer = this.#clock.after(COLLECT_AFTER_LAST_STREAM, () => {
      this.#collector?.stop();
      this.#collector = undefined;
    });
  }

  #round(): void {
    this.#rounds += 1;
    for (const stream of this.#streams) stream.checkTimes();
    if (this.#rounds % ROUNDS_PER_RIGHTS_CHECK === 0) void this.#checkRights();
    this.#roundTimer = this.#clock.after(ROUND_INTERVAL, () => this.#round());
  }

  /** Ends the streams whose callers have lost their rights. If the store can't be read, streams go on. */
  async #checkRights(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    for (const stream of [...this.#streams])
      if (!stream.hasEnded && !(await stream.request.isAllowed().catch(() => true))) stream.end();
    this.#isChecking = false;
  }
}
