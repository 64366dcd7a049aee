/**
 * Reports locks whose judging has stopped or resumed (judging.ts), and has their *torn* states repaired: states that
 * the judge left half changed when it threw. A repair reads them from the store again, so it is exclusive work: it runs
 * between two commits. Used by the commit loop (commit-loop.ts), which runs the work.
 */
import { Seconds, systemClock, type Timer } from '../../proto/clock.js';
import type { IngestParts } from './ingest-parts.js';
import type { QueuedWork } from './ingest-queue.js';

/** The wait before a repair is tried again after a failure of the store. */
const REPAIR_RETRY_DELAY = Seconds(1);
/** The device id of work that is not about a single device; no device has it. */
const NO_DEVICE_ID = 0;

export class JudgingRepair {
  readonly #parts: Pick<IngestParts, 'locks' | 'events' | 'clock'>;
  readonly #queueWork: (work: QueuedWork) => void;
  readonly #startLoop: () => void;
  /** Whether a repair is queued, is running, or will be tried again. */
  #isRepairing = false;
  #retryTimer: Timer | undefined;
  #isStopping = false;

  /**
   * @param queueWork adds the repair to the queue; the commit loop is running whenever it is called
   * @param startLoop makes the commit loop run again, so that it calls {@link reportChanges}
   */
  constructor(
    parts: Pick<IngestParts, 'locks' | 'events' | 'clock'>,
    queueWork: (work: QueuedWork) => void,
    startLoop: () => void,
  ) {
    this.#parts = parts;
    this.#queueWork = queueWork;
    this.#startLoop = startLoop;
  }

  /**
   * Reports the locks whose judging has stopped or resumed since the last call, and queues a repair if a state is torn.
   * If the store fails, the repair is tried again. Until it succeeds, these locks are not judged, but their uplinks are
   * stored and acknowledged as usual.
   */
  reportChanges(): void {
    const { locks, events, clock } = this.#parts;
    for (const { lock, unjudged } of locks.takeJudgingChanges()) {
      const { mac } = lock;
      if (unjudged === undefined) events.emit('judging', { atMs: clock.now(), mac, state: 'resumed', why: '' });
      else events.emit('judging', { atMs: clock.now(), mac, state: 'stopped', why: unjudged.why });
      events.emit('locks-changed', { locks: [lock] });
    }
    if (!locks.needsRepair || this.#isRepairing) return;
    this.#isRepairing = true;
    this.#queueWork({
      type: 'work',
      deviceId: NO_DEVICE_ID,
      run: () => locks.repairTorn(),
      refusesWaiting: false,
      done: (error) => this.#repairEnded(error),
    });
  }

  /** From now on a failed repair is not tried again: the next start reads the stored states. */
  stop(): void {
    this.#isStopping = true;
    this.#retryTimer?.cancel();
  }

  #repairEnded(error: Error | undefined): void {
    const { events, clock } = this.#parts;
    this.#isRepairing = error !== undefined;
    if (error === undefined || this.#isStopping) return;
    events.emit('store-failed', { atMs: clock.now(), why: error.message });
    this.#retryTimer = systemClock.after(REPAIR_RETRY_DELAY, () => {
      this.#isRepairing = false;
      this.#startLoop();
    });
  }
}
