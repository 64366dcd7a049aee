/**
 * A ping's way in, as a table of contents: decode, queue, judge, commit with what waits beside it, answer, announce.
 *
 * Nothing is acknowledged before it is on the disk. All uplinks that wait when a commit begins go into it together
 * (group commit), so one fsync serves many locks and the wait is that of one commit. The queue is first in, first out,
 * so a lock's uplinks keep the order in which it sent them, and are answered in it.
 *
 * What happens to a lock besides its uplinks (a connection begins or ends, time passes) goes through the same queue, so
 * that `judge` hears of everything in the order in which it happened, and each finding is stored with what it rests on.
 */
import { afterThisTurn, type Clock, Seconds, systemClock, type Timer } from '../proto/clock.js';
import { decodeUplink } from '../proto/codec.js';
import { LockgateError } from '../proto/errors.js';
import type { Mac } from '../proto/mac.js';
import type { CommandAck, Source } from '../proto/ping.js';
import type {
  CommandEvent,
  ConnectEvent,
  DisconnectEvent,
  Finding,
  GatewayEvent,
  TickEvent,
  UplinkCopy,
  Verdict,
} from '../proto/power-judge-event.js';
import { CommitDraft } from './commit-draft.js';
import { isNewest, noteUplink } from './device-state.js';
import type { GatewayEvents } from './events.js';
import type { KnownLock, Locks } from './locks.js';
import type { AnsweredState } from './store/command-record.js';
import type { LockEvent, Store } from './store/store.js';
import { type Answer, type Sender, TakenUplink } from './taken-uplink.js';

export type { Answer, Sender } from './taken-uplink.js';

/** Uplinks that may wait for a commit; past it the newest is turned away, unacknowledged, and its lock sends again. */
const MAX_WAITING = 20_000;
/** Uplinks in one commit: bounds how long the event loop stands still. */
const MAX_BATCH = 2_000;
/**
 * How long connections and ticks may wait for an uplink to be committed with, since nobody waits for an answer to them:
 * when very many locks come back at once, a commit for every few would keep the others out. In real time.
 */
const HAPPENINGS_WAIT = Seconds(0.1);
const PATIENT: ReadonlySet<Happening['type']> = new Set(['connect', 'disconnect', 'tick']);
/**
 * Uplinks of one lock that may be unanswered. A lock that keeps the protocol has one, and one that goes wrong may not
 * take the queue from the others: with as many as fit into one commit, it makes them wait for one commit more at most.
 */
export const MAX_UNANSWERED_PER_LOCK = MAX_BATCH;
/** The wait before the store is asked again after it failed, where there is something that must not be forgotten. */
const AFTER_STORE_FAILURE = Seconds(1);

/** What happens to a lock besides its uplinks. */
export type Happening = ConnectEvent | DisconnectEvent | CommandEvent | GatewayEvent | TickEvent;

/** A lock's word on a command, new, and stored. */
export interface Acknowledgement {
  readonly deviceId: number;
  readonly mac: Mac;
  readonly commandId: number;
  readonly state: AnsweredState;
  readonly detail: string;
  /** When it was received, by the run's clock. */
  readonly atMs: number;
}

/** Who sends commands hears of what bears on them, after the commit. */
export interface CommandListener {
  acknowledged(acknowledgement: Acknowledgement): void;
  /** Something new may be believed of the lock. */
  judged(lock: KnownLock): void;
}

interface WaitingRejection {
  readonly type: 'rejection';
  readonly sender: Sender;
  readonly bytes: Buffer;
  readonly rejection: { readonly code: string; readonly message: string };
  readonly receivedAtMs: number;
  readonly answer: Answer;
}

interface WaitingHappening {
  readonly type: 'happening';
  readonly deviceId: number;
  readonly mac: Mac;
  readonly event: Happening;
  /** Called when it has been judged and stored, in order with what is told of uplinks. */
  readonly announce: () => void;
  /** What judging it brought. */
  findings: readonly Finding[];
}

/** Something that is done to a lock while nothing of any lock is being judged or committed. */
interface WaitingWork {
  readonly type: 'work';
  readonly deviceId: number;
  readonly run: () => Promise<void>;
  /** Told how it ended. */
  readonly ended: (error?: Error) => void;
}

type Judgeable = TakenUplink | WaitingRejection | WaitingHappening;

type Waiting = Judgeable | WaitingWork;

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
}

export class Ingest {
  readonly #parts: IngestParts;
  #waiting: Waiting[] = [];
  /** How many uplinks of each lock were taken and not answered yet; none stands here without any. */
  readonly #unanswered = new Map<number, number>();
  #committing: Promise<void> | undefined;
  #soon: Timer | undefined;
  #stopping = false;

  constructor(parts: IngestParts) {
    this.#parts = parts;
  }

  /** How many uplinks and happenings wait for a commit. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * Takes the payload of one publish to `up`. `answer` is called when its fate is on the disk, in the order in which
   * the lock's payloads were taken; at once, with an error, where too many wait already.
   */
  take(sender: Sender, payload: Uint8Array, answer: Answer): void {
    const overload = this.#overloadFor(sender);
    if (overload !== undefined) {
      answer(overload);
      return;
    }
    if (this.#parts.isStoreFailing?.() === true) {
      answer(new LockgateError('store-failing', 'the store can’t write now'));
      return;
    }
    this.#unanswered.set(sender.deviceId, (this.#unanswered.get(sender.deviceId) ?? 0) + 1);
    const bytes = Buffer.from(payload);
    const receivedAtMs = this.#parts.clock.now();
    const decoded = decodeUplink(bytes);
    if (decoded.ok) this.#waiting.push(new TakenUplink(sender, bytes, decoded.value, receivedAtMs, answer));
    else this.#waiting.push({ type: 'rejection', sender, bytes, rejection: decoded.error, receivedAtMs, answer });
    this.#startCommitting();
  }

  /** The newest is turned away, never one that waits: nothing that may have been answered is dropped. */
  #overloadFor({ deviceId }: Sender): LockgateError | undefined {
    if ((this.#unanswered.get(deviceId) ?? 0) >= MAX_UNANSWERED_PER_LOCK)
      return new LockgateError('overloaded', `${MAX_UNANSWERED_PER_LOCK} uplinks of this lock wait to be stored`);
    if (this.#waiting.length < MAX_WAITING) return undefined;
    return new LockgateError('overloaded', `${MAX_WAITING} uplinks wait to be stored`);
  }

  #answer(batch: readonly Judgeable[], error?: Error): void {
    for (const waiting of batch) {
      if (waiting.type === 'happening') continue;
      const { deviceId } = waiting.sender;
      const left = (this.#unanswered.get(deviceId) ?? 0) - 1;
      if (left > 0) this.#unanswered.set(deviceId, left);
      else this.#unanswered.delete(deviceId);
      waiting.answer(error);
    }
  }

  /** Takes what happened to a lock. It is never turned away: there are few of these, and a judge must hear of all. */
  happen(deviceId: number, mac: Mac, event: Happening, announce: () => void = () => undefined): void {
    this.#waiting.push({ type: 'happening', deviceId, mac, event, announce, findings: [] });
    if (this.#stopping || !PATIENT.has(event.type)) this.#startCommitting();
    else this.#soon ??= systemClock.after(HAPPENINGS_WAIT, () => this.#startCommitting());
  }

  /**
   * Does something to a lock's account between two commits: all that was taken before is stored by then, and uplinks of
   * the lock that wait by its end are turned away, unacknowledged, for the lock to send again over a connection that
   * knows of the change. Settles as `run` does.
   */
  alone(deviceId: number, run: () => Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      const ended = (error?: Error): void => (error === undefined ? resolve() : reject(error));
      this.#waiting.push({ type: 'work', deviceId, run, ended });
      this.#startCommitting();
    });
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
    await this.idle();
  }

  #startCommitting(): void {
    this.#soon?.cancel();
    this.#soon = undefined;
    this.#committing ??= new Promise<void>((resolve) => {
      // What this turn of the event loop still brings shall go into the same commit.
      afterThisTurn(() => {
        void this.#commitAll().finally(() => {
          this.#committing = undefined;
          resolve();
        });
      });
    });
  }

  async #commitAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#nextBatch();
      if (batch.length === 0) {
        await this.#work(this.#waiting.shift() as WaitingWork);
        continue;
      }
      const draft = new CommitDraft();
      try {
        for (const waiting of batch) {
          // Hardly ever is there something to wait for, and with nothing to wait for nobody else gets a turn.
          const entering = this.#enter(waiting, draft);
          if (entering !== undefined) await entering;
        }
        await this.#parts.store.append(draft.commit(this.#parts.locks.slice(draft.uplinks)));
      } catch (error) {
        await this.#fail(batch, draft, error as Error);
        continue;
      }
      this.#finish(batch, draft);
      // What came while the disk was waited for stands at the sockets still: the next commit shall serve it too.
      if (this.#waiting.length < MAX_BATCH) await new Promise<void>((resolve) => afterThisTurn(resolve));
    }
  }

  /** What goes into the next commit; empty where some work is next. */
  #nextBatch(): Judgeable[] {
    const stop = this.#waiting.slice(0, MAX_BATCH).findIndex(({ type }) => type === 'work');
    return this.#waiting.splice(0, stop === -1 ? MAX_BATCH : stop) as Judgeable[];
  }

  async #work({ deviceId, run, ended }: WaitingWork): Promise<void> {
    try {
      await run();
      ended();
    } catch (error) {
      ended(error as Error);
    }
    const stale = (waiting: Waiting): waiting is TakenUplink | WaitingRejection =>
      (waiting.type === 'uplink' || waiting.type === 'rejection') && waiting.sender.deviceId === deviceId;
    const turnedAway = this.#waiting.filter(stale);
    this.#waiting = this.#waiting.filter((waiting) => !stale(waiting));
    this.#answer(turnedAway, new LockgateError('account-changed', 'the lock’s account changed'));
    this.#parts.locks.arm();
  }

  /** Judges it and puts what is to be stored of it into the draft. Undefined where that is done when it returns. */
  #enter(waiting: Judgeable, draft: CommitDraft): Promise<void> | undefined {
    if (waiting.type === 'uplink') return this.#enterUplink(waiting, draft);
    if (waiting.type === 'rejection') this.#enterRejection(waiting, draft);
    else this.#enterHappening(waiting, draft);
    return undefined;
  }

  #enterRejection({ sender, receivedAtMs, bytes, rejection }: WaitingRejection, draft: CommitDraft): void {
    const { deviceId, credentialId } = sender;
    const { code, message } = rejection;
    draft.incoming.push({ type: 'quarantine', deviceId, credentialId, receivedAtMs, code, message, bytes });
  }

  #enterHappening(happening: WaitingHappening, draft: CommitDraft): void {
    const { deviceId, mac, event } = happening;
    const lock = this.#parts.locks.known(deviceId, mac, event.atMs);
    const logged = loggedEvent(event);
    if (logged !== undefined) draft.incoming.push({ type: 'lock-event', deviceId, atMs: event.atMs, event: logged });
    // Durable before the bytes leave: what may have reached a lock is never taken for unsent.
    if (event.type === 'command') draft.commands.push({ type: 'sent', id: event.id, atMs: event.atMs });
    draft.touch(lock);
    // Ticks are in no log, and of the rest the log does not say between which uplinks of one commit it was.
    draft.changed.add(lock);
    const verdict = this.#parts.locks.judge(lock, event);
    happening.findings = verdict.findings;
    noteVerdict(deviceId, verdict, draft);
  }

  #enterUplink(taken: TakenUplink, draft: CommitDraft): Promise<void> | undefined {
    const { deviceId, mac } = taken.sender;
    const lock = this.#parts.locks.known(deviceId, mac, taken.receivedAtMs);
    if (isNewest(lock.state, taken.source, taken)) {
      this.#judgeUplink(lock, taken, draft);
      return undefined;
    }
    return this.#enterOld(lock, taken, draft);
  }

  /** One that does not come after all others of its lock: its name may have been used before. */
  async #enterOld(lock: KnownLock, taken: TakenUplink, draft: CommitDraft): Promise<void> {
    taken.copy = await this.#copyOf(taken, draft);
    this.#judgeUplink(lock, taken, draft);
  }

  #judgeUplink(lock: KnownLock, taken: TakenUplink, draft: CommitDraft): void {
    const { locks } = this.#parts;
    const { deviceId, source, copy } = taken;
    const verdict = locks.judge(lock, taken);
    taken.findings = verdict.findings;
    const hasFound = noteVerdict(deviceId, verdict, draft);
    draft.touch(lock);
    if (isInLogAlone(taken) && !hasFound && lock.isStored) locks.unsettle(lock);
    else draft.changed.add(lock);
    if (copy === 'repeat') return;
    // A phone's uplink says where the phone is, and is none of the lock's own.
    if (source === 'lock') noteUplink(lock.state, taken.credentialId, taken.uplink, taken.receivedAtMs);
    draft.add(taken);
    const ack = ackOf(taken);
    if (ack === undefined) return;
    // The command's new state goes into the very commit of the uplink.
    const { commandId: id, state, detail, atMs } = ack;
    draft.commands.push({ type: 'acknowledged', id, deviceId, state, detail, atMs });
  }

  /** Whether the uplink's name was used before. */
  async #copyOf({ credentialId, boot, sequence, digest }: TakenUplink, draft: CommitDraft): Promise<UplinkCopy> {
    const inBatch = draft.digestsOf(credentialId, boot, sequence);
    const known = [...inBatch, ...(await this.#parts.store.readDigests(credentialId, boot, sequence))];
    if (known.length === 0) return 'new';
    // Of what was erased only the name is left, so whatever comes under it is taken for it.
    return known.some((each) => each.length === 0 || each.equals(digest)) ? 'repeat' : 'conflict';
  }

  #finish(batch: readonly Judgeable[], draft: CommitDraft): void {
    const { locks, clock, events, onStored, commands } = this.#parts;
    locks.stored(draft.uplinks, draft.settled);
    this.#answer(batch);
    this.#announce(batch);
    for (const lock of draft.touched) {
      const presence = locks.newPresence(lock);
      if (presence !== undefined) events.emit('presence', { atMs: clock.now(), mac: lock.mac, presence });
      commands.judged(lock);
    }
    if (draft.merchantIds.size > 0) onStored(draft.merchantIds, draft.incoming.length);
    locks.arm();
  }

  /** Tells of a batch, in order. Nothing is made for nobody: there may be very many uplinks. */
  #announce(batch: readonly Judgeable[]): void {
    const { events, commands } = this.#parts;
    const isHeard = events.listenerCount('uplink') > 0;
    const uplinks: TakenUplink[] = [];
    for (const each of batch) {
      if (each.type === 'uplink') {
        uplinks.push(each);
        if (isHeard) events.emit('uplink', each.told());
        const ack = each.copy === 'repeat' ? undefined : ackOf(each);
        if (ack !== undefined) commands.acknowledged(ack);
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
   * Nothing of the batch was kept, so no uplink of it may be acknowledged or remembered; its locks send again.
   * What else happened won't happen again: it waits until the store can keep it.
   */
  async #fail(batch: readonly Judgeable[], draft: CommitDraft, error: Error): Promise<void> {
    const { events, clock, locks } = this.#parts;
    events.emit('store-failed', { atMs: clock.now(), why: error.message });
    this.#answer(batch, error);
    // On the way out nobody waits for a store that fails: the next start sees that this one did not end well.
    if (this.#stopping) return;
    await new Promise<void>((resolve) => clock.after(AFTER_STORE_FAILURE, resolve));
    const happenings = batch.filter((waiting) => waiting.type === 'happening');
    this.#waiting = [...happenings, ...this.#waiting];
    await locks.reload(draft.touched).catch(() => undefined);
  }
}

const STATE_OF_RESULT: Readonly<Record<CommandAck['result'], AnsweredState>> = {
  ok: 'done',
  rejected: 'rejected',
  failed: 'failed',
};

/** What a trace will want to know; the passing of time is no event of it. */
function loggedEvent(event: Happening): LockEvent | undefined {
  if (event.type === 'connect') return { event: 'connect', ...sourceOf(event) };
  if (event.type === 'disconnect') return { event: 'disconnect', ...sourceOf(event), cause: event.cause };
  if (event.type === 'gateway') return { event: 'gateway', state: event.state };
  if (event.type === 'command') return { event: 'command', id: event.id, command: event.command };
  return undefined;
}

function sourceOf({ source }: { readonly source: Source }): { readonly source?: 'phone' } {
  return source === 'phone' ? { source } : {};
}

/** Puts what judging brought into the draft. Returns whether it brought anything. */
function noteVerdict(deviceId: number, { withdrawn, findings }: Verdict, draft: CommitDraft): boolean {
  if (findings.length === 0 && withdrawn.length === 0) return false;
  draft.judged.push({ deviceId, withdrawn, findings });
  return true;
}

/**
 * Whether judging the log once more leads to the same belief, so that no state need be written for it: a lock's new
 * ping, of which the log has everything. It has no repeats, nor that one contradicts another; the rest is rare.
 */
function isInLogAlone({ source, copy, uplink }: TakenUplink): boolean {
  return source === 'lock' && copy === 'new' && uplink.body.kind !== 'ack';
}

/** What an uplink answers to a command; undefined where it is no answer. A phone has no say in commands. */
function ackOf({ sender, source, uplink, atMs }: TakenUplink): Acknowledgement | undefined {
  const { body } = uplink;
  if (body.kind !== 'ack' || source === 'phone') return undefined;
  const { deviceId, mac } = sender;
  const { commandId, result, detail } = body;
  return { deviceId, mac, commandId, state: STATE_OF_RESULT[result], detail, atMs };
}
