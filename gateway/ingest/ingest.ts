/**
 * Processes uplinks step by step: decode, queue, judge, commit together with other uplinks, answer, announce. The judge
 * (proto/power/judge) checks each against the protocol's rules. An answer without an error is the lock's PUBACK.
 *
 * No uplink is acknowledged before it is on disk. While the store writes one commit, arriving uplinks are judged into
 * the draft of the next (group commit), which is sent when the previous commit is on disk, or a few milliseconds later
 * if many commits follow one another (commit-pace.ts). So one fsync serves many locks, and neither this thread nor the
 * store's waits for the other. The queue is first in, first out: a lock's uplinks are judged, stored and answered in
 * the order in which the lock sent them.
 *
 * At any moment at most one commit is being written and at most one draft is open (commit-draft.ts). The open draft
 * builds on the one being written: if that one fails, both are dropped with the lock states that they led to.
 *
 * Other events of a lock (it connects or disconnects, time passes) go through the same queue, so that the judge sees
 * everything in the order in which it happened, and each finding is stored together with its cause.
 *
 * The commit loop is *idle* while nothing waits, *running* while it judges and commits, and *waiting* while a commit is
 * being written or the pace holds the next one back, and the queue is empty. `#wake` is set only while the loop is
 * waiting.
 */
import {
  afterThisTurn,
  type Clock,
  type Milliseconds,
  monotonicMs,
  Seconds,
  systemClock,
  type Timer,
} from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { bootBackSinceMs } from '../../proto/power/judge/boots.js';
import { forgetUnsentCommand } from '../../proto/power/judge/commands.js';
import type { Finding } from '../../proto/power/judge/event.js';
import { decodeUplink } from '../../proto/wire/codec.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { ClockDoubt } from '../clocks/recorded-clocks.js';
import type { GatewayEvents } from '../events.js';
import type { KnownLock, Locks } from '../locks/locks.js';
import { takeEvents } from '../locks/reported-troubles.js';
import type { CommitResult } from '../store/contract/log/commit-result.js';
import type { LockOwnership } from '../store/contract/slots/ownership.js';
import type { Store } from '../store/contract/store.js';
import { CommitDraft, type PresenceChange } from './commit-draft.js';
import { CommitPace } from './commit-pace.js';
import { type Acknowledgement, ackOf, DraftJudge } from './draft-judge.js';
import {
  type DeviceEvent,
  IngestQueue,
  type Judgeable,
  type Queued,
  type QueuedEvent,
  type QueuedRejection,
  type QueuedWork,
} from './ingest-queue.js';
import { messageOf } from './judging.js';
import { type Answer, PendingUplink, type Sender } from './pending-uplink.js';

export type { Acknowledgement } from './draft-judge.js';
export type { DeviceEvent } from './ingest-queue.js';
export type { Answer, Sender } from './pending-uplink.js';

/** Uplinks that may wait for a commit. Further uplinks are refused without a PUBACK, so their locks send them again. */
const MAX_WAITING_UPLINKS = 20_000;
/** Maximum number of uplinks and events in one commit: limits how long the event loop is blocked. */
const MAX_COMMIT_ITEMS = 2_000;
/**
 * How long connects, disconnects and ticks may wait for an uplink to share its commit, in real time. They may wait,
 * since no lock waits for an answer to them. They should wait, since a commit for every few of them would delay the
 * uplinks when very many locks reconnect at once.
 */
const MAX_EVENT_WAIT = Seconds(0.1);
const DELAYABLE_EVENTS: ReadonlySet<DeviceEvent['type']> = new Set(['connect', 'disconnect', 'tick']);
/**
 * Maximum number of unanswered uplinks of one lock. A correct lock has one. A faulty lock must not fill the queue: with
 * as many uplinks as fit into one commit, it delays other locks by at most one commit.
 */
export const MAX_UNANSWERED_PER_LOCK = MAX_COMMIT_ITEMS;
/** The device id of exclusive work that is not about a single device. */
const NO_DEVICE_ID = 0;
/** The wait before work that must not be lost is retried after a failure of the store. */
const STORE_RETRY_DELAY = Seconds(1);

/** Notified after each commit about acknowledgements and judged locks. Implemented by the commands. */
export interface CommandListener {
  /** `isRefused`: it is not the first answer to a command that was sent to this lock. It is stored all the same. */
  acknowledged(acknowledgement: Acknowledgement, isRefused: boolean): void;
  /** The state of the lock may have changed. */
  judged(lock: KnownLock): void;
}

export interface IngestParts {
  readonly store: Store;
  readonly locks: Locks;
  /** The run's clock (wall-clock time, except in a sped-up simulation). */
  readonly clock: Clock;
  readonly events: GatewayEvents;
  /** Returns whether the store can't write now. Uplinks are then refused, so that the queue does not fill. */
  readonly isStoreFailing?: () => boolean;
  /** Called after a commit with the merchants that have new events, and the number of its uplinks. */
  readonly onStored: (merchantIds: ReadonlySet<number>, uplinks: number) => void;
  /** Called after a commit that may have stored events for merchants other than pings. */
  readonly onMerchantEvents?: (() => void) | undefined;
  readonly commands: CommandListener;
  /** Says whether the machine's clock is in doubt. Receives the time that each lock reports during a doubt. */
  readonly doubt?: Pick<ClockDoubt, 'isDoubted' | 'noteUplink'> | undefined;
  /** A monotonic clock in ms, for the pace of commits; tests pass their own. */
  readonly monotonic?: () => number;
}

/** Called when an event is on disk; see {@link QueuedEvent}. */
export type Announce = QueuedEvent['announce'];

/** The number of a lock's uplinks that were accepted but not answered yet. */
interface Unanswered {
  count: number;
}

export class Ingest {
  readonly #parts: IngestParts;
  readonly #judge: DraftJudge;
  /** Says whose locks these are; undefined if all are this gateway's. */
  readonly #owners: LockOwnership | undefined;
  /** Items that have not been judged yet. */
  readonly #queue = new IngestQueue();
  /** The open draft: items judged for the next commit. */
  #draft = new CommitDraft();
  /** The draft that the store is writing, or has just written or failed to write. */
  #writing: CommitDraft | undefined;
  /** The number of unanswered uplinks of each lock, by device id. */
  readonly #unanswered = new Map<number, Unanswered>();
  #committing: Promise<void> | undefined;
  readonly #pace = new CommitPace();
  readonly #monotonic: () => number;
  /** Set while the pace holds the open draft back. */
  #paceTimer: Timer | undefined;
  /**
   * Set while the loop waits. Must be called when there is more to judge, the running commit has ended, or the pace
   * allows the next one.
   */
  #wake: (() => void) | undefined;
  #isWakeScheduled = false;
  #eventTimer: Timer | undefined;
  #stopping = false;
  /** Whether a repair of torn states, which the judge left half changed when it threw, is queued or will be retried. */
  #isRepairing = false;
  #repairTimer: Timer | undefined;

  constructor(parts: IngestParts) {
    this.#parts = parts;
    this.#monotonic = parts.monotonic ?? monotonicMs;
    const { locks } = parts.store.ownership;
    this.#owners = locks.isSole ? undefined : locks;
    this.#judge = new DraftJudge(parts.locks, parts.store, () => this.#writing, this.#owners);
  }

  /** The number of uplinks and events that wait for a commit. */
  get waiting(): number {
    return this.#queue.length + this.#draft.batch.length;
  }

  /**
   * Takes the payload of one publish to `up`. Calls `answer` when the uplink is on disk or could not be stored, in the
   * order in which the lock's payloads were taken; at once, with an error, if too many uplinks wait.
   */
  take(sender: Sender, payload: Uint8Array, answer: Answer): void {
    const unanswered = this.#unansweredOf(sender.deviceId);
    const overload = this.#overloadOf(unanswered);
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
    this.#startCommitting();
  }

  #unansweredOf(deviceId: number): Unanswered {
    const known = this.#unanswered.get(deviceId);
    if (known !== undefined) return known;
    const unanswered = { count: 0 };
    this.#unanswered.set(deviceId, unanswered);
    return unanswered;
  }

  /**
   * Why another uplink is refused; undefined if it is not. Only new uplinks are refused: waiting ones are never
   * dropped.
   */
  #overloadOf({ count }: Unanswered): LockgateError | undefined {
    if (count >= MAX_UNANSWERED_PER_LOCK)
      return new LockgateError('overloaded', `${MAX_UNANSWERED_PER_LOCK} uplinks of this lock wait to be stored`);
    if (this.waiting < MAX_WAITING_UPLINKS) return undefined;
    return new LockgateError('overloaded', `${MAX_WAITING_UPLINKS} uplinks wait to be stored`);
  }

  #answer(batch: readonly Judgeable[], error?: Error): void {
    for (const item of batch) {
      if (item.type === 'event') continue;
      this.#unansweredOf(item.sender.deviceId).count -= 1;
      item.answer(error);
    }
  }

  /**
   * Queues an event of a lock. Events are never refused: they are few, and the judge must see all of them. Calls
   * `announce` when the event is on disk.
   */
  recordEvent(deviceId: number, mac: Mac, event: DeviceEvent, announce: Announce = () => undefined): void {
    this.#queue.add({ type: 'event', deviceId, mac, event, announce, isRefused: false, findings: [] });
    if (this.#stopping || !DELAYABLE_EVENTS.has(event.type)) this.#startCommitting();
    else this.#eventTimer ??= systemClock.after(MAX_EVENT_WAIT, () => this.#startCommitting());
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
      this.#startCommitting();
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
    // The tick makes the lock's presence be reported and its next tick be scheduled.
    this.recordEvent(deviceId, mac, { type: 'tick', atMs: this.#parts.clock.now() });
    this.#startCommitting();
  }

  /** Resolves when everything taken so far has been answered. */
  async idle(): Promise<void> {
    if (this.#queue.length > 0) this.#startCommitting();
    while (this.#committing !== undefined) await this.#committing;
  }

  /**
   * As {@link idle}, but from now on a failing store is not retried. Uplinks and events taken later are still stored if
   * possible. May be called again.
   */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#repairTimer?.cancel();
    await this.idle();
  }

  /** Starts or wakes the loop at the end of this event loop turn, so that everything from this turn shares a commit. */
  #startCommitting(): void {
    this.#eventTimer?.cancel();
    this.#eventTimer = undefined;
    if (this.#committing !== undefined) {
      if (this.#wake === undefined || this.#isWakeScheduled) return;
      this.#isWakeScheduled = true;
      afterThisTurn(() => {
        this.#isWakeScheduled = false;
        this.#wake?.();
      });
      return;
    }
    this.#committing = new Promise<void>((resolve) => {
      afterThisTurn(() => {
        void this.#commitAll().finally(resolve);
      });
    });
  }

  /** The commit loop: judges and commits until nothing waits. */
  async #commitAll(): Promise<void> {
    try {
      for (;;) {
        await this.#judgeWaiting();
        this.#reportJudging();
        const previous = this.#writing;
        if (previous?.phase === 'writing') await this.#nextWake();
        else if (previous?.error !== undefined) await this.#commitFailed([previous, this.#draft], previous.error);
        else if (this.#holdBack() > 0) {
          if (previous !== undefined) this.#finish(previous, this.#commitDone(previous));
          await this.#nextPacedWake();
        } else {
          const error = this.#advance(previous);
          if (error !== undefined) await this.#commitFailed([this.#draft], error);
        }
        if (this.#writing !== undefined || this.#draft.batch.length > 0) continue;
        this.#reportJudging();
        // No await from here to the return: an item added later finds the loop ended and starts it again.
        const next = this.#queue.first;
        if (next === undefined) return;
        if (next.type === 'work') await this.#runWork(next);
      }
    } finally {
      this.#committing = undefined;
    }
  }

  /** Sends the next commit, then answers the stored draft. Returns why the next commit can't be sent. */
  #advance(stored: CommitDraft | undefined): Error | undefined {
    const presenceChanges = stored === undefined ? [] : this.#commitDone(stored);
    // The next commit is sent before the answers to the stored one, so that the store does not wait for them.
    const error = this.#sendDraft();
    if (stored !== undefined) this.#finish(stored, presenceChanges);
    return error;
  }

  /** Judges waiting items into the open draft, until the draft is full or exclusive work is next. */
  async #judgeWaiting(): Promise<void> {
    const draft = this.#draft;
    while (draft.phase === 'open' && draft.batch.length < MAX_COMMIT_ITEMS) {
      const next = this.#queue.first;
      if (next === undefined || next.type === 'work') return;
      this.#queue.removeFirst();
      if (this.#owners !== undefined && !isOwn(this.#owners, next)) {
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
   * for a command no bytes are sent. Its connections and ticks do not matter here any more.
   */
  #refuse(item: Judgeable): void {
    if (item.type !== 'event') this.#answer([item], new LockgateError('not-owner', 'another gateway serves the lock'));
    else if (item.event.type === 'command') item.announce(true);
  }

  /**
   * Reports locks whose judging has stopped or resumed, and queues the repair of torn states, which the judge left half
   * changed when it threw. If the store fails, the repair is tried again. Until the repair succeeds, these locks are
   * not judged, but their uplinks are stored and acknowledged as usual.
   */
  #reportJudging(): void {
    const { locks, events, clock } = this.#parts;
    for (const { lock, unjudged } of locks.takeJudgingChanges()) {
      const { mac } = lock;
      if (unjudged === undefined) events.emit('judging', { atMs: clock.now(), mac, state: 'resumed', why: '' });
      else events.emit('judging', { atMs: clock.now(), mac, state: 'stopped', why: unjudged.why });
      events.emit('locks-changed', { locks: [lock] });
    }
    if (!locks.needsRepair || this.#isRepairing) return;
    this.#isRepairing = true;
    const done = (error?: Error): void => {
      // During a stop the repair is not retried: the next start reads the stored states.
      this.#isRepairing = error !== undefined;
      if (error === undefined || this.#stopping) return;
      events.emit('store-failed', { atMs: clock.now(), why: error.message });
      this.#repairTimer = systemClock.after(STORE_RETRY_DELAY, () => {
        this.#isRepairing = false;
        this.#startCommitting();
      });
    };
    this.#queue.add({
      type: 'work',
      deviceId: NO_DEVICE_ID,
      run: () => locks.repairTorn(),
      refusesWaiting: false,
      done,
    });
  }

  /** How long the open draft should gather more; 0 if it should be sent now. */
  #holdBack(): Milliseconds {
    const { batch, phase } = this.#draft;
    const isComplete = batch.length >= MAX_COMMIT_ITEMS || this.#queue.first !== undefined;
    return this.#stopping || phase !== 'open' || batch.length === 0 || isComplete
      ? 0
      : this.#pace.waitAt(this.#monotonic());
  }

  /** Resolves when there is more to judge, or the open draft was held back for long enough. */
  async #nextPacedWake(): Promise<void> {
    this.#paceTimer ??= systemClock.after(this.#holdBack(), () => {
      this.#paceTimer = undefined;
      this.#wake?.();
    });
    await this.#nextWake();
  }

  /** Resolves when there is more to judge, or the running commit has ended. */
  #nextWake(): Promise<void> {
    return new Promise<void>((resolve) => {
      this.#wake = () => {
        this.#wake = undefined;
        resolve();
      };
    });
  }

  /** Records that a commit is on disk, so that none is being written. Returns the changes of presence to announce. */
  #commitDone({ uplinkCount, written, presences, unsentCommands }: CommitDraft): readonly PresenceChange[] {
    const { locks } = this.#parts;
    this.#writing = undefined;
    locks.commitDone(uplinkCount, written);
    for (const unsent of unsentCommands) this.#takeBack(unsent);
    return presences.filter(({ lock, presence }) => locks.reportPresence(lock, presence));
  }

  /** Takes back that a command was sent, which the lock's state says since the commit: the next commit stores that. */
  #takeBack({ deviceId, mac, event }: QueuedEvent): void {
    const { locks, clock } = this.#parts;
    const lock = locks.find(deviceId);
    if (lock === undefined || event.type !== 'command') return;
    forgetUnsentCommand(lock.state.belief, event.id, event.atMs);
    this.recordEvent(deviceId, mac, { type: 'tick', atMs: clock.now() });
  }

  /** Hands the open draft to the store, unless it is empty. Returns the error of a failed draft. */
  #sendDraft(): Error | undefined {
    const { locks, store, clock } = this.#parts;
    const draft = this.#draft;
    if (draft.batch.length === 0 || draft.phase === 'failed') return draft.error;
    // The draft has everything judged so far, so states and presences are exactly those of this commit.
    for (const lock of draft.touched) {
      const presence = locks.presenceNow(lock);
      if (presence !== undefined) draft.presences.push({ lock, presence });
      if (lock.state.unjudged !== undefined) continue;
      const events = takeEvents(lock.deviceId, lock.state, presence ?? lock.presence, clock.now());
      if (events.length === 0) continue;
      // What was told is part of the state, so the state is stored with the events.
      draft.changed.add(lock);
      draft.merchantEvents.push(...events);
    }
    this.#pace.sent(this.#monotonic());
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

  /** Runs exclusive work, the first item of the queue. */
  async #runWork({ deviceId, refusesWaiting, run, done }: QueuedWork): Promise<void> {
    this.#queue.removeFirst();
    try {
      await run();
      done();
    } catch (error) {
      done(error as Error);
    }
    this.#reportJudging();
    this.#parts.locks.scheduleTick();
    if (!refusesWaiting) return;
    const refused = this.#queue.takeOut(
      (item: Queued): item is PendingUplink | QueuedRejection =>
        (item.type === 'uplink' || item.type === 'rejection') && item.sender.deviceId === deviceId,
    );
    this.#answer(refused, new LockgateError('account-changed', 'the lock’s account changed'));
  }

  /** Answers the uplinks of a commit that is on disk, and announces its contents. */
  #finish(draft: CommitDraft, presenceChanges: readonly PresenceChange[]): void {
    const { locks, clock, events, onStored, commands } = this.#parts;
    this.#answer(draft.batch);
    this.#announce(draft.batch);
    for (const { lock, presence } of presenceChanges)
      events.emit('presence', { atMs: clock.now(), mac: lock.mac, presence });
    if (draft.touched.length > 0) events.emit('locks-changed', { locks: draft.touched });
    for (const lock of draft.touched) this.#guardLock(lock, () => commands.judged(lock));
    for (const { deviceId, findings } of draft.judged)
      this.#guardLock(locks.find(deviceId), () => this.#announceBoots(deviceId, findings));
    if (draft.merchantIds.size > 0) onStored(draft.merchantIds, draft.incoming.length);
    if (draft.merchantEvents.length > 0) this.#parts.onMerchantEvents?.();
    locks.scheduleTick();
  }

  /**
   * Runs `work`; if it throws, stops judging the lock. A bug with one lock must not block other locks'
   * acknowledgements.
   */
  #guardLock(lock: KnownLock | undefined, work: () => void): void {
    try {
      work();
    } catch (error) {
      if (lock === undefined) throw error;
      this.#parts.locks.stopJudging(lock, messageOf(error));
    }
  }

  /** Reports a lock whose boot counter went back. */
  #announceBoots(deviceId: number, findings: readonly Finding[]): void {
    if (!findings.some(({ rule }) => rule === 'boot-back')) return;
    const { locks, clock, events } = this.#parts;
    const lock = locks.find(deviceId);
    const sinceMs = lock === undefined ? undefined : bootBackSinceMs(lock.state.belief);
    if (lock !== undefined && sinceMs !== undefined)
      events.emit('boot-back', { atMs: clock.now(), mac: lock.mac, sinceMs });
  }

  /** Announces a batch in order. Creates event objects only if there are listeners. */
  #announce(batch: readonly Judgeable[]): void {
    const { events, commands, locks } = this.#parts;
    const hasListeners = events.listenerCount('uplink') > 0;
    const uplinks: PendingUplink[] = [];
    for (const item of batch) {
      if (item.type === 'uplink') {
        uplinks.push(item);
        if (hasListeners) events.emit('uplink', item.report());
        const ack = item.novelty === 'repeat' ? undefined : ackOf(item);
        if (ack !== undefined)
          this.#guardLock(locks.find(ack.deviceId), () => commands.acknowledged(ack, item.isRefused));
      } else if (item.type === 'rejection') {
        const { receivedAtMs: atMs, sender, rejection, bytes } = item;
        events.emit('quarantined', { atMs, mac: sender.mac, ...rejection, bytes });
      } else {
        item.announce(item.isRefused);
        const { atMs } = item.event;
        for (const finding of item.findings) events.emit('finding', { atMs, mac: item.mac, finding });
      }
    }
    if (uplinks.length > 0) events.emit('stored', { uplinks });
  }

  /**
   * Handles drafts of which nothing was stored. Their uplinks are answered with an error and forgotten: the locks send
   * them again. Other events do not come again, so they go back into the queue.
   */
  async #commitFailed(drafts: readonly CommitDraft[], error: Error): Promise<void> {
    const { events, clock, locks } = this.#parts;
    this.#writing = undefined;
    this.#draft = new CommitDraft();
    for (const draft of drafts) if (draft.phase === 'open') draft.fail(error);
    const batch = drafts.flatMap((draft) => draft.batch);
    const touched = new Set(drafts.flatMap((draft) => draft.touched));
    events.emit('store-failed', { atMs: clock.now(), why: error.message });
    this.#answer(batch, error);
    // A stop does not wait for a failing store: the next start notices that this run did not end properly.
    if (!this.#stopping) {
      await new Promise<void>((resolve) => clock.after(STORE_RETRY_DELAY, resolve));
      this.#queue.putBack(batch.filter((item) => item.type === 'event'));
    }
    try {
      await locks.reload(touched);
    } catch (error) {
      // These locks are not judged until their states can be read (`repairTorn`). Other locks are not affected.
      events.emit('store-failed', { atMs: clock.now(), why: (error as Error).message });
    }
  }
}

/** Whether the item is of a lock or a phone that this gateway serves. */
function isOwn(owners: LockOwnership, item: Judgeable): boolean {
  if (item.type !== 'event') return owners.owns(item.sender.deviceId, item.sender.source);
  const { deviceId, event } = item;
  return owners.owns(deviceId, 'source' in event ? event.source : 'lock');
}
