/**
 * The commit loop: takes items from ingest's queue, judges them, commits them together, and then answers and announces
 * them. Only ingest.ts uses it.
 *
 * While the store writes one commit, arriving uplinks are judged into the draft of the next (group commit), which is
 * sent when the previous commit is on disk, or a few milliseconds later if it is small and many commits preceded it
 * (commit-pace.ts). So one fsync serves many locks, and neither this thread nor the store's waits for the other.
 *
 * At any moment at most one commit is being written and at most one draft is open (commit-draft.ts). The open draft
 * builds on the one being written: if that one fails, both are dropped with the lock states that they led to.
 *
 * The loop is *idle* while nothing waits, *running* while it judges and commits, and *waiting* while a commit is being
 * written or the pace holds the next one back, and the queue is empty. `#wake` is set only while the loop is waiting.
 */
import { afterThisTurn, type Milliseconds, monotonicMs, Seconds, systemClock, type Timer } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { forgetUnsentCommand } from '../../proto/power/judge/commands.js';
import type { Locks } from '../locks/locks.js';
import { takeEvents } from '../locks/reported-troubles.js';
import type { CommitResult } from '../store/contract/log/commit-result.js';
import type { LockOwnership, LockPart } from '../store/contract/slots/ownership.js';
import { CommitAnnouncer } from './commit-announcer.js';
import { CommitDraft, MAX_COMMIT_ITEMS, type PresenceChange } from './commit-draft.js';
import { CommitPace } from './commit-pace.js';
import { DraftJudge } from './draft-judge.js';
import type { IngestParts } from './ingest-parts.js';
import type { IngestQueue, Judgeable, Queued, QueuedEvent, QueuedRejection, QueuedWork } from './ingest-queue.js';
import { JudgingRepair } from './judging-repair.js';
import type { PendingUplink } from './pending-uplink.js';
import type { UnansweredUplinks } from './unanswered-uplinks.js';

/**
 * How long connects, disconnects and ticks may wait for an uplink to share its commit, in real time. They may wait,
 * since no lock waits for an answer to them. They should wait, since a commit for every few of them would delay the
 * uplinks when very many locks reconnect at once.
 */
const MAX_EVENT_WAIT = Seconds(0.1);
/** The wait after a commit failed, before the events in it are queued again. */
const STORE_RETRY_DELAY = Seconds(1);

export class CommitLoop {
  readonly #parts: IngestParts;
  /** Items that have not been judged yet. */
  readonly #queue: IngestQueue;
  readonly #unanswered: UnansweredUplinks;
  readonly #judge: DraftJudge;
  readonly #announcer: CommitAnnouncer;
  readonly #repair: JudgingRepair;
  /** Says whose locks these are; undefined if all are this gateway's. */
  readonly #owners: LockOwnership | undefined;
  /** The open draft: items judged for the next commit. */
  #draft = new CommitDraft();
  /** The draft that the store is writing, or has just written or failed to write. */
  #writing: CommitDraft | undefined;
  /** Resolves when the loop ends; undefined while it is idle. */
  #running: Promise<void> | undefined;
  readonly #pace: CommitPace;
  readonly #monotonic: () => number;
  /** Set while the pace holds the open draft back. */
  #paceTimer: Timer | undefined;
  /**
   * Set while the loop waits. Must be called when there is more to judge, the commit being written has ended, or the
   * pace allows the next one.
   */
  #wake: (() => void) | undefined;
  #isWakeScheduled = false;
  /** Starts the loop for events that no uplink followed; see MAX_EVENT_WAIT. */
  #eventTimer: Timer | undefined;
  #isStopping = false;

  constructor(parts: IngestParts, queue: IngestQueue, unanswered: UnansweredUplinks) {
    this.#parts = parts;
    this.#queue = queue;
    this.#unanswered = unanswered;
    this.#monotonic = parts.monotonic ?? monotonicMs;
    this.#pace = new CommitPace(parts.store.commitSpacing);
    const { locks } = parts.store.ownership;
    this.#owners = locks.isSole ? undefined : locks;
    this.#judge = new DraftJudge(parts.locks, parts.store, () => this.#writing);
    this.#announcer = new CommitAnnouncer(parts);
    this.#repair = new JudgingRepair(
      parts,
      (work) => queue.add(work),
      () => this.start(),
    );
  }

  /** The number of judged items whose commit has not been sent yet. */
  get draftLength(): number {
    return this.#draft.batch.length;
  }

  /** Starts or wakes the loop at the end of this event loop turn, so that everything from this turn shares a commit. */
  start(): void {
    this.#eventTimer?.cancel();
    this.#eventTimer = undefined;
    if (this.#running !== undefined) {
      if (this.#wake === undefined || this.#isWakeScheduled) return;
      this.#isWakeScheduled = true;
      afterThisTurn(() => {
        this.#isWakeScheduled = false;
        this.#wake?.();
      });
      return;
    }
    this.#running = new Promise<void>((resolve) => {
      afterThisTurn(() => {
        void this.#commitAll().finally(resolve);
      });
    });
  }

  /** Starts the loop after MAX_EVENT_WAIT, unless it starts earlier for an uplink. */
  startForEvents(): void {
    this.#eventTimer ??= systemClock.after(MAX_EVENT_WAIT, () => this.start());
  }

  /** Resolves when the loop is idle. */
  async ended(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  /** From now on nothing is tried again after a failure of the store, and no commit waits for more uplinks. */
  stopRetrying(): void {
    this.#isStopping = true;
    this.#repair.stop();
  }

  /** The loop itself: judges and commits until nothing waits. */
  async #commitAll(): Promise<void> {
    try {
      for (;;) {
        await this.#judgeWaiting();
        this.#repair.reportChanges();
        const previous = this.#writing;
        if (previous?.phase === 'writing') await this.#nextWake();
        else if (previous?.error !== undefined) await this.#commitFailed([previous, this.#draft], previous.error);
        else if (this.#gatherTime() > 0) {
          if (previous !== undefined) this.#finish(previous, this.#commitDone(previous));
          await this.#nextPacedWake();
        } else {
          const error = this.#advance(previous);
          if (error !== undefined) await this.#commitFailed([this.#draft], error);
        }
        if (this.#writing !== undefined || this.#draft.batch.length > 0) continue;
        this.#repair.reportChanges();
        // No await from here to the return: an item added later finds the loop ended and starts it again.
        const next = this.#queue.first;
        if (next === undefined) return;
        if (next.type === 'work') await this.#runWork(next);
      }
    } finally {
      this.#running = undefined;
    }
  }

  /** Judges waiting items into the open draft, until the draft is full or exclusive work is next. */
  async #judgeWaiting(): Promise<void> {
    const draft = this.#draft;
    while (draft.phase === 'open' && draft.batch.length < MAX_COMMIT_ITEMS) {
      const next = this.#queue.first;
      if (next === undefined || next.type === 'work') return;
      this.#queue.removeFirst();
      if (this.#owners !== undefined && !isServed(this.#owners, this.#parts.locks, next)) {
        this.#refuse(next);
        continue;
      }
      try {
        // Usually undefined: then there is no await, so that nothing else runs between two items.
        const adding = this.#judge.add(next, draft);
        if (adding !== undefined) await adding;
      } catch (error) {
        draft.fail(error as Error);
      }
    }
  }

  /**
   * Refuses an item of a lock that another gateway serves by now. The lock sends its uplinks again, to that gateway;
   * for a command no bytes are sent. Its connections and ticks do not matter here any more. The same holds if this
   * gateway has claimed the lock again, but not read its state yet: what comes after the reading is judged.
   */
  #refuse(item: Judgeable): void {
    if (item.type !== 'event')
      this.#unanswered.answer([item], new LockgateError('not-owner', 'another gateway serves the lock'));
    else if (item.event.type === 'command') item.announce(true);
  }

  /** How long the open draft should gather more; 0 if it should be sent now. */
  #gatherTime(): Milliseconds {
    const { batch, phase } = this.#draft;
    const isComplete = batch.length >= MAX_COMMIT_ITEMS || this.#queue.first !== undefined;
    return this.#isStopping || phase !== 'open' || batch.length === 0 || isComplete
      ? 0
      : this.#pace.waitAt(this.#monotonic(), batch.length);
  }

  /** Resolves when there is more to judge, or the open draft was held back for long enough. */
  async #nextPacedWake(): Promise<void> {
    this.#paceTimer ??= systemClock.after(this.#gatherTime(), () => {
      this.#paceTimer = undefined;
      this.#wake?.();
    });
    await this.#nextWake();
  }

  /** Resolves when there is more to judge, or the commit being written has ended. */
  #nextWake(): Promise<void> {
    return new Promise<void>((resolve) => {
      this.#wake = () => {
        this.#wake = undefined;
        resolve();
      };
    });
  }

  /** Sends the next commit, then answers the stored draft. Returns why the next commit can't be sent. */
  #advance(stored: CommitDraft | undefined): Error | undefined {
    const presenceChanges = stored === undefined ? [] : this.#commitDone(stored);
    // The next commit is sent before the answers to the stored one, so that the store does not wait for them.
    const error = this.#sendDraft();
    if (stored !== undefined) this.#finish(stored, presenceChanges);
    return error;
  }

  /** Hands the open draft to the store, unless it is empty. Returns the error of a failed draft. */
  #sendDraft(): Error | undefined {
    const { locks, store } = this.#parts;
    const draft = this.#draft;
    if (draft.batch.length === 0 || draft.phase === 'failed') return draft.error;
    this.#addPresences(draft);
    this.#paceTimer?.cancel();
    this.#paceTimer = undefined;
    this.#pace.sent(this.#monotonic());
    // A commit also writes a few states of other locks: dirty ones, which are newer than the stored ones.
    const commit = draft.close(locks.takeDirty(draft.uplinkCount));
    locks.commitSent(draft.written);
    this.#draft = new CommitDraft();
    this.#writing = draft;
    const onStored = (result: CommitResult): void => {
      draft.stored(result);
      this.#wake?.();
    };
    const onFailed = (error: Error): void => {
      draft.fail(error);
      this.#wake?.();
    };
    store.append(commit).then(onStored, onFailed);
    return undefined;
  }

  /**
   * Adds the presences of the draft's locks to it, and the events for their merchants (a lock is late, its battery is
   * low). Must be called last: the draft has everything judged so far, so they are exactly those of this commit.
   */
  #addPresences(draft: CommitDraft): void {
    const { locks, clock } = this.#parts;
    for (const lock of draft.touched) {
      const presence = locks.presenceNow(lock);
      if (presence !== undefined) draft.presences.push({ lock, presence });
      if (lock.state.unjudged !== undefined) continue;
      const events = takeEvents(lock.deviceId, lock.state, presence ?? lock.presence, clock.now());
      if (events.length === 0) continue;
      // The state records which troubles were reported, so it is stored with the events.
      draft.changed.add(lock);
      draft.merchantEvents.push(...events);
    }
  }

  /** Records that a commit is on disk, so that none is being written. Returns the changes of presence to announce. */
  #commitDone({ uplinkCount, written, presences, unsentCommands }: CommitDraft): readonly PresenceChange[] {
    const { locks } = this.#parts;
    this.#writing = undefined;
    locks.commitDone(uplinkCount, written);
    for (const unsent of unsentCommands) this.#forgetSending(unsent);
    return presences.filter(({ lock, presence }) => locks.reportPresence(lock, presence));
  }

  /**
   * Removes from the lock's state that a command was sent: the store refused the sending. The tick makes the next
   * commit store that state.
   */
  #forgetSending({ deviceId, mac, event }: QueuedEvent): void {
    const { locks, clock } = this.#parts;
    const lock = locks.find(deviceId);
    if (lock === undefined || event.type !== 'command') return;
    forgetUnsentCommand(lock.state.belief, event.id, event.atMs);
    const tick = { type: 'tick', atMs: clock.now() } as const;
    this.#queue.add({
      type: 'event',
      deviceId,
      mac,
      event: tick,
      announce: () => undefined,
      isRefused: false,
      findings: [],
    });
  }

  /** Answers the uplinks of a commit that is on disk, and announces its contents. */
  #finish(draft: CommitDraft, presenceChanges: readonly PresenceChange[]): void {
    this.#unanswered.answer(draft.batch);
    this.#announcer.announce(draft, presenceChanges);
    this.#parts.locks.scheduleTick();
  }

  /**
   * Handles drafts of which nothing was stored. Their uplinks are answered with an error and forgotten: the locks send
   * them again. So are the same locks' uplinks that wait behind exclusive work: stored now, they would come before
   * those that are sent again. Other events do not come again, so they go back into the queue.
   */
  async #commitFailed(drafts: readonly CommitDraft[], error: Error): Promise<void> {
    const { events, clock, locks } = this.#parts;
    this.#writing = undefined;
    this.#draft = new CommitDraft();
    for (const draft of drafts) if (draft.phase === 'open') draft.fail(error);
    const batch = drafts.flatMap((draft) => draft.batch);
    const touched = new Set(drafts.flatMap((draft) => draft.touched));
    events.emit('store-failed', { atMs: clock.now(), why: error.message });
    this.#unanswered.answer([...batch, ...this.#takeFollowing(batch)], error);
    // A stop does not wait for a failing store: the next start notices that this run did not end properly.
    if (!this.#isStopping) {
      await new Promise<void>((resolve) => clock.after(STORE_RETRY_DELAY, resolve));
      this.#queue.putBack(batch.filter((item) => item.type === 'event'));
    }
    try {
      await locks.reload(touched);
    } catch (error) {
      // These locks are not judged until their states can be read (judging-repair.ts). Other locks are not affected.
      events.emit('store-failed', { atMs: clock.now(), why: (error as Error).message });
    }
  }

  /** Takes out of the queue what the senders of these uplinks sent after them. */
  #takeFollowing(batch: readonly Judgeable[]): Judgeable[] {
    const senders = new Set(batch.flatMap((item) => (item.type === 'event' ? [] : [item.sender.credentialId])));
    return this.#queue.takeOut(
      (item: Queued): item is PendingUplink | QueuedRejection =>
        (item.type === 'uplink' || item.type === 'rejection') && senders.has(item.sender.credentialId),
    );
  }

  /** Runs exclusive work, the first item of the queue. */
  async #runWork({ deviceId, refusesWaiting, run, done }: QueuedWork): Promise<void> {
    this.#queue.removeFirst();
    try {
      await run();
      done();
    } catch (error) {
      done(error as Error);
    }
    this.#repair.reportChanges();
    this.#parts.locks.scheduleTick();
    if (!refusesWaiting) return;
    const refused = this.#queue.takeOut(
      (item: Queued): item is PendingUplink | QueuedRejection =>
        (item.type === 'uplink' || item.type === 'rejection') && item.sender.deviceId === deviceId,
    );
    this.#unanswered.answer(refused, new LockgateError('account-changed', 'the lock’s account changed'));
  }
}

/** Whether the item is of a phone that this gateway serves, or of a lock that it serves and whose state it has. */
function isServed(owners: LockOwnership, locks: Locks, item: Judgeable): boolean {
  const { deviceId, source } = item.type === 'event' ? partOf(item) : item.sender;
  return owners.owns(deviceId, source) && (source === 'phone' || locks.isHere(deviceId));
}

function partOf({ deviceId, event }: QueuedEvent): LockPart {
  return { deviceId, source: 'source' in event ? event.source : 'lock' };
}
