/**
 * A ping's way in, as a table of contents: decode, queue, judge, commit with what waits beside it, answer, announce.
 *
 * Nothing is acknowledged before it is on the disk. What comes while the store makes one commit durable is judged into
 * the next as it comes (group commit), and that one sets out when the one before has arrived: so one fsync serves many
 * locks, and neither this thread nor the store's waits for the other. The queue is first in, first out, so a lock's
 * uplinks keep the order in which it sent them, and are answered in it.
 *
 * At any moment one commit is under way at most, and one draft is open at most. The draft rests on the commit: where
 * that fails, both are given up, and what was believed for them is forgotten.
 *
 * What happens to a lock besides its uplinks (a connection begins or ends, time passes) goes through the same queue, so
 * that `judge` hears of everything in the order in which it happened, and each finding is stored with what it rests on.
 */
import { afterThisTurn, type Clock, Seconds, systemClock, type Timer } from '../../proto/clock.js';
import { LockgateError } from '../../proto/errors.js';
import { backSinceMs } from '../../proto/power/judge/boots.js';
import type { Finding } from '../../proto/power/judge/event.js';
import { decodeUplink } from '../../proto/wire/codec.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { ClockDoubt } from '../clocks/kept-clocks.js';
import type { GatewayEvents } from '../events.js';
import type { KnownLock, Locks } from '../locks/locks.js';
import type { Store } from '../store/contract/store.js';
import { CommitDraft, type PresenceNews } from './commit-draft.js';
import { type Acknowledgement, ackOf, DraftJudge } from './draft-judge.js';
import {
  type DeviceEvent,
  IngestQueue,
  type Judgeable,
  type Queued,
  type QueuedRejection,
  type QueuedWork,
} from './ingest-queue.js';
import { messageOf } from './judging.js';
import { type Answer, PendingUplink, type Sender } from './pending-uplink.js';

export type { Acknowledgement } from './draft-judge.js';
export type { DeviceEvent } from './ingest-queue.js';
export type { Answer, Sender } from './pending-uplink.js';

/** Uplinks that may wait for a commit; past it the newest is turned away, unacknowledged, and its lock sends again. */
const MAX_WAITING = 20_000;
/** Uplinks in one commit: bounds how long the event loop stands still. */
const MAX_BATCH = 2_000;
/**
 * How long connections and ticks may wait for an uplink to be committed with, since nobody waits for an answer to them:
 * when very many locks come back at once, a commit for every few would keep the others out. In real time.
 */
const HAPPENINGS_WAIT = Seconds(0.1);
const PATIENT: ReadonlySet<DeviceEvent['type']> = new Set(['connect', 'disconnect', 'tick']);
/**
 * Uplinks of one lock that may be unanswered. A lock that keeps the protocol has one, and one that goes wrong may not
 * take the queue from the others: with as many as fit into one commit, it makes them wait for one commit more at most.
 */
export const MAX_UNANSWERED_PER_LOCK = MAX_BATCH;
/** Work that is about no device. */
const NO_DEVICE = 0;
/** The wait before the store is asked again after it failed, where there is something that must not be forgotten. */
const AFTER_STORE_FAILURE = Seconds(1);

/** Who sends commands hears of what bears on them, after the commit. */
export interface CommandListener {
  acknowledged(acknowledgement: Acknowledgement): void;
  /** Something new may be believed of the lock. */
  judged(lock: KnownLock): void;
}

export interface IngestParts {
  readonly store: Store;
  readonly locks: Locks;
  /** The run's clock. */
  readonly clock: Clock;
  readonly events: GatewayEvents;
  /** Whether the store can't write now: then nothing is taken, so that nothing waits that can't be kept. */
  readonly isStoreFailing?: () => boolean;
  /** Told the merchants that have new events, after their commit, and how many uplinks there were in it. */
  readonly onStored: (merchantIds: ReadonlySet<number>, uplinks: number) => void;
  readonly commands: CommandListener;
  /** While the machine's clock is not believed, it hears what time each lock says it is. */
  readonly doubt?: Pick<ClockDoubt, 'isDoubted' | 'hear'> | undefined;
}

/** A commit that the store is making durable. */
interface UnderWay {
  readonly draft: CommitDraft;
  /** Whether the store is done with it, well or badly. */
  hasEnded: boolean;
  error: Error | undefined;
}

/** How many uplinks of a lock were taken and not answered yet. */
interface Unanswered {
  count: number;
}

export class Ingest {
  readonly #parts: IngestParts;
  readonly #judge: DraftJudge;
  /** What is not judged yet. */
  readonly #waiting = new IngestQueue();
  /** What is judged, and is to be the next commit. */
  #draft = new CommitDraft();
  #underWay: UnderWay | undefined;
  /** Of each lock that ever sent something. */
  readonly #unanswered = new Map<number, Unanswered>();
  #committing: Promise<void> | undefined;
  /** Has the committing look again: there is more to judge, or a commit has ended. */
  #lookAgain: (() => void) | undefined;
  #isToLook = false;
  #soon: Timer | undefined;
  #stopping = false;
  /** The states of locks that are not judged wait to be settled. */
  #isSettling = false;
  #settleSoon: Timer | undefined;

  constructor(parts: IngestParts) {
    this.#parts = parts;
    this.#judge = new DraftJudge(parts.locks, parts.store, () => this.#underWay?.draft);
  }

  /** How many uplinks and happenings wait for a commit. */
  get waiting(): number {
    return this.#waiting.length + this.#draft.batch.length;
  }

  /**
   * Takes the payload of one publish to `up`. `answer` is called when its fate is on the disk, in the order in which
   * the lock's payloads were taken; at once, with an error, where too many wait already.
   */
  take(sender: Sender, payload: Uint8Array, answer: Answer): void {
    const unanswered = this.#unansweredOf(sender.deviceId);
    const overload = this.#overloadFor(unanswered);
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
    // Before it is stamped: it may be what sets the run's clock right.
    if (this.#parts.doubt?.isDoubted === true && decoded.ok) this.#parts.doubt.hear({ ...sender, ...decoded.value });
    const receivedAtMs = this.#parts.clock.now();
    if (decoded.ok) this.#waiting.add(new PendingUplink(sender, bytes, decoded.value, receivedAtMs, answer));
    else this.#waiting.add({ type: 'rejection', sender, bytes, rejection: decoded.error, receivedAtMs, answer });
    this.#startCommitting();
  }

  #unansweredOf(deviceId: number): Unanswered {
    const known = this.#unanswered.get(deviceId);
    if (known !== undefined) return known;
    const unanswered = { count: 0 };
    this.#unanswered.set(deviceId, unanswered);
    return unanswered;
  }

  /** The newest is turned away, never one that waits: nothing that may have been answered is dropped. */
  #overloadFor({ count }: Unanswered): LockgateError | undefined {
    if (count >= MAX_UNANSWERED_PER_LOCK)
      return new LockgateError('overloaded', `${MAX_UNANSWERED_PER_LOCK} uplinks of this lock wait to be stored`);
    if (this.waiting < MAX_WAITING) return undefined;
    return new LockgateError('overloaded', `${MAX_WAITING} uplinks wait to be stored`);
  }

  #answer(batch: readonly Judgeable[], error?: Error): void {
    for (const waiting of batch) {
      if (waiting.type === 'happening') continue;
      this.#unansweredOf(waiting.sender.deviceId).count -= 1;
      waiting.answer(error);
    }
  }

  /** Takes what happened to a lock. It is never turned away: there are few of these, and a judge must hear of all. */
  recordEvent(deviceId: number, mac: Mac, event: DeviceEvent, announce: () => void = () => undefined): void {
    this.#waiting.add({ type: 'happening', deviceId, mac, event, announce, findings: [] });
    if (this.#stopping || !PATIENT.has(event.type)) this.#startCommitting();
    else this.#soon ??= systemClock.after(HAPPENINGS_WAIT, () => this.#startCommitting());
  }

  /**
   * Does something to a lock's account between two commits: all that was taken before is stored by then, and uplinks of
   * the lock that wait by its end are turned away, unacknowledged, for the lock to send again over a connection that
   * knows of the change. Settles as `run` does.
   *
   * @param turnsAway false where the change ends no connection: then what waits is judged by it instead
   */
  runExclusive(deviceId: number, run: () => Promise<void>, turnsAway = true): Promise<void> {
    return new Promise((resolve, reject) => {
      const ended = (error?: Error): void => (error === undefined ? resolve() : reject(error));
      this.#waiting.add({ type: 'work', deviceId, turnsAway, run, ended });
      this.#startCommitting();
    });
  }

  /**
   * Judges a lock again that is not judged (ingest/judging.ts), between two commits.
   *
   * @throws LockgateError `lock-is-judged`, `judge-failed`
   * @throws StoreFailure
   */
  async rejudge(deviceId: number, mac: Mac): Promise<void> {
    await this.runExclusive(deviceId, () => this.#parts.locks.rejudge(deviceId, mac), false);
    // So that its presence is reported, and it is woken when something is due.
    this.recordEvent(deviceId, mac, { type: 'tick', atMs: this.#parts.clock.now() });
    this.#startCommitting();
  }

  /** Resolves when all that was taken so far has been answered. */
  async idle(): Promise<void> {
    if (this.#waiting.length > 0) this.#startCommitting();
    while (this.#committing !== undefined) await this.#committing;
  }

  /**
   * As {@link idle}; and from now on a store that fails is not waited for. What is taken later is still stored where it
   * can be. May be called again.
   */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#settleSoon?.cancel();
    await this.idle();
  }

  /** What this turn of the event loop still brings shall be judged, and go into the same commit, with the rest. */
  #startCommitting(): void {
    this.#soon?.cancel();
    this.#soon = undefined;
    if (this.#committing !== undefined) {
      if (this.#lookAgain === undefined || this.#isToLook) return;
      this.#isToLook = true;
      afterThisTurn(() => {
        this.#isToLook = false;
        this.#lookAgain?.();
      });
      return;
    }
    this.#committing = new Promise<void>((resolve) => {
      afterThisTurn(() => {
        void this.#commitAll().finally(resolve);
      });
    });
  }

  async #commitAll(): Promise<void> {
    try {
      for (;;) {
        await this.#judgeWaiting();
        this.#lookAtJudging();
        const before = this.#underWay;
        if (before?.hasEnded === false) await this.#more();
        else if (before?.error !== undefined) await this.#fail([before.draft, this.#draft], before.error);
        else {
          const error = this.#step(before?.draft);
          if (error !== undefined) await this.#fail([this.#draft], error);
        }
        if (this.#underWay !== undefined || this.#draft.batch.length > 0) continue;
        this.#lookAtJudging();
        // From here to the end nobody else has a turn: who adds something later begins anew.
        const next = this.#waiting.first;
        if (next === undefined) return;
        if (next.type === 'work') await this.#work(next);
      }
    } finally {
      this.#committing = undefined;
    }
  }

  /** A commit is durable, if there was one, and the next one sets out. Returns why it can't. */
  #step(before: CommitDraft | undefined): Error | undefined {
    const news = before === undefined ? [] : this.#settle(before);
    // It does so before the other is answered, so that the store does not wait for that.
    const error = this.#sendDraft();
    if (before !== undefined) this.#finish(before, news);
    return error;
  }

  /** Judges what waits into the open draft, as far as there is room and nothing has to be done alone before. */
  async #judgeWaiting(): Promise<void> {
    const draft = this.#draft;
    while (draft.error === undefined && draft.batch.length < MAX_BATCH) {
      const next = this.#waiting.first;
      if (next === undefined || next.type === 'work') return;
      this.#waiting.leave();
      try {
        // Hardly ever is there something to wait for, and with nothing to wait for nobody else gets a turn.
        const entering = this.#judge.enter(next, draft);
        if (entering !== undefined) await entering;
      } catch (error) {
        draft.error = error as Error;
      }
    }
  }

  /**
   * Tells of locks that are not judged any more, or are again, and has the states of those that the judge left half
   * written be settled between two commits. Where the store can't do that, it is tried again: until then nothing of
   * these locks is judged, and what they send is stored and acknowledged all the same.
   */
  #lookAtJudging(): void {
    const { locks, events, clock } = this.#parts;
    for (const { lock, unjudged } of locks.takeTurned()) {
      const { mac } = lock;
      if (unjudged === undefined) events.emit('judging', { atMs: clock.now(), mac, state: 'resumed', why: '' });
      else events.emit('judging', { atMs: clock.now(), mac, state: 'stopped', why: unjudged.why });
    }
    if (!locks.hasTorn || this.#isSettling) return;
    this.#isSettling = true;
    const ended = (error?: Error): void => {
      // On the way out it is not tried again: the next start reads what is stored.
      this.#isSettling = error !== undefined;
      if (error === undefined || this.#stopping) return;
      events.emit('store-failed', { atMs: clock.now(), why: error.message });
      this.#settleSoon = systemClock.after(AFTER_STORE_FAILURE, () => {
        this.#isSettling = false;
        this.#startCommitting();
      });
    };
    this.#waiting.add({ type: 'work', deviceId: NO_DEVICE, run: () => locks.settle(), turnsAway: false, ended });
  }

  /** Resolves when something more waits, or the commit that is under way has ended. */
  #more(): Promise<void> {
    return new Promise<void>((resolve) => {
      this.#lookAgain = () => {
        this.#lookAgain = undefined;
        resolve();
      };
    });
  }

  /** A commit is durable, and no other is under way. Returns what is to be told of its locks' presence. */
  #settle({ uplinks, settled, presences }: CommitDraft): readonly PresenceNews[] {
    const { locks } = this.#parts;
    this.#underWay = undefined;
    locks.stored(uplinks, settled);
    return presences.filter(({ lock, presence }) => locks.reportPresence(lock, presence));
  }

  /** Gives the open draft to the store, where there is something in it. Returns why that can't be. */
  #sendDraft(): Error | undefined {
    const { locks, store } = this.#parts;
    const draft = this.#draft;
    if (draft.batch.length === 0 || draft.error !== undefined) return draft.error;
    // All that was judged is in the draft, so that states and presences are as of exactly this commit.
    for (const lock of draft.touched) {
      const presence = locks.presenceNow(lock);
      if (presence !== undefined) draft.presences.push({ lock, presence });
    }
    const commit = draft.commit(locks.slice(draft.uplinks));
    locks.storing(draft.settled);
    const underWay: UnderWay = { draft, hasEnded: false, error: undefined };
    const end = (error?: Error): void => {
      underWay.hasEnded = true;
      underWay.error = error;
      this.#lookAgain?.();
    };
    this.#draft = new CommitDraft();
    this.#underWay = underWay;
    store.append(commit).then(() => end(), end);
    return undefined;
  }

  /** Does what is to be done alone, which is next. */
  async #work({ deviceId, turnsAway, run, ended }: QueuedWork): Promise<void> {
    this.#waiting.leave();
    try {
      await run();
      ended();
    } catch (error) {
      ended(error as Error);
    }
    this.#lookAtJudging();
    this.#parts.locks.arm();
    if (!turnsAway) return;
    const turnedAway = this.#waiting.takeOut(
      (waiting: Queued): waiting is PendingUplink | QueuedRejection =>
        (waiting.type === 'uplink' || waiting.type === 'rejection') && waiting.sender.deviceId === deviceId,
    );
    this.#answer(turnedAway, new LockgateError('account-changed', 'the lock’s account changed'));
  }

  /** A commit is durable: answers what is in it, and tells of it. */
  #finish(draft: CommitDraft, news: readonly PresenceNews[]): void {
    const { locks, clock, events, onStored, commands } = this.#parts;
    this.#answer(draft.batch);
    this.#announce(draft.batch);
    for (const { lock, presence } of news) events.emit('presence', { atMs: clock.now(), mac: lock.mac, presence });
    for (const lock of draft.touched) this.#guard(lock, () => commands.judged(lock));
    for (const { deviceId, findings } of draft.judged)
      this.#guard(locks.find(deviceId), () => this.#announceBoots(deviceId, findings));
    if (draft.merchantIds.size > 0) onStored(draft.merchantIds, draft.incoming.length);
    locks.arm();
  }

  /** What rests on the belief of one lock must not keep the others from their acknowledgements. */
  #guard(lock: KnownLock | undefined, work: () => void): void {
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
    const sinceMs = lock === undefined ? undefined : backSinceMs(lock.state.belief);
    if (lock !== undefined && sinceMs !== undefined)
      events.emit('boot-back', { atMs: clock.now(), mac: lock.mac, sinceMs });
  }

  /** Tells of a batch, in order. Nothing is made for nobody: there may be very many uplinks. */
  #announce(batch: readonly Judgeable[]): void {
    const { events, commands, locks } = this.#parts;
    const isHeard = events.listenerCount('uplink') > 0;
    const uplinks: PendingUplink[] = [];
    for (const each of batch) {
      if (each.type === 'uplink') {
        uplinks.push(each);
        if (isHeard) events.emit('uplink', each.report());
        const ack = each.copy === 'repeat' ? undefined : ackOf(each);
        if (ack !== undefined) this.#guard(locks.find(ack.deviceId), () => commands.acknowledged(ack));
      } else if (each.type === 'rejection') {
        const { receivedAtMs: atMs, sender, rejection, bytes } = each;
        events.emit('quarantined', { atMs, mac: sender.mac, ...rejection, bytes });
      } else {
        each.announce();
        const { atMs } = each.event;
        for (const finding of each.findings) events.emit('finding', { atMs, mac: each.mac, finding });
      }
    }
    if (uplinks.length > 0) events.emit('stored', { uplinks });
  }

  /**
   * Nothing of these drafts was kept, so no uplink of them may be acknowledged or remembered; their locks send again.
   * What else happened won't happen again: it waits until the store can keep it.
   */
  async #fail(drafts: readonly CommitDraft[], error: Error): Promise<void> {
    const { events, clock, locks } = this.#parts;
    this.#underWay = undefined;
    this.#draft = new CommitDraft();
    const batch = drafts.flatMap((draft) => draft.batch);
    const touched = new Set(drafts.flatMap((draft) => draft.touched));
    events.emit('store-failed', { atMs: clock.now(), why: error.message });
    this.#answer(batch, error);
    // On the way out nobody waits for a store that fails: the next start sees that this one did not end well.
    if (!this.#stopping) {
      await new Promise<void>((resolve) => clock.after(AFTER_STORE_FAILURE, resolve));
      this.#waiting.putBack(batch.filter((waiting) => waiting.type === 'happening'));
    }
    try {
      await locks.reload(touched);
    } catch (error) {
      // Nothing of these locks is judged until it can be read (`settle`). All others go on.
      events.emit('store-failed', { atMs: clock.now(), why: (error as Error).message });
    }
  }
}
