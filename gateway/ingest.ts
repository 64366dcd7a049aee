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
import type { CommandAck, Source, Uplink } from '../proto/ping.js';
import type {
  CommandEvent,
  ConnectEvent,
  DisconnectEvent,
  GatewayEvent,
  TickEvent,
  UplinkCopy,
} from '../proto/power-judge-event.js';
import { POWER_MODEL } from '../proto/power-model.js';
import { type CommitDraft, commitOf, newDraft } from './commit-draft.js';
import { isNewest, noteUplink } from './device-state.js';
import { digestOf, eventId } from './event-id.js';
import type { GatewayEvents } from './events.js';
import type { KnownLock, Locks } from './locks.js';
import type { AnsweredState } from './store/command-record.js';
import { type Judged, type LockEvent, type Store, UPLINK_KINDS } from './store/store.js';

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

/** Who sent the bytes: decided by the credential that the connection was made with, never by the content. */
export interface Sender {
  readonly deviceId: number;
  readonly merchantId: number;
  readonly credentialId: number;
  readonly mac: Mac;
  readonly simulated: boolean;
  readonly source: Source;
}

/** Called once: without an error when the uplink may be acknowledged, with one when it must not be. */
export type Answer = (error?: Error) => void;

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

interface WaitingUplink {
  readonly type: 'uplink';
  readonly sender: Sender;
  readonly bytes: Buffer;
  readonly digest: Buffer;
  readonly uplink: Uplink;
  readonly receivedAtMs: number;
  readonly answer: Answer;
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
}

/** Something that is done to a lock while nothing of any lock is being judged or committed. */
interface WaitingWork {
  readonly type: 'work';
  readonly deviceId: number;
  readonly run: () => Promise<void>;
  /** Told how it ended. */
  readonly ended: (error?: Error) => void;
}

type Judgeable = WaitingUplink | WaitingRejection | WaitingHappening;

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
    if (decoded.ok) {
      const digest = digestOf(bytes);
      this.#waiting.push({ type: 'uplink', sender, bytes, digest, uplink: decoded.value, receivedAtMs, answer });
    } else this.#waiting.push({ type: 'rejection', sender, bytes, rejection: decoded.error, receivedAtMs, answer });
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
    this.#waiting.push({ type: 'happening', deviceId, mac, event, announce });
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
      const draft = newDraft();
      try {
        for (const waiting of batch) await this.#enter(waiting, draft);
        await this.#parts.store.append(commitOf(draft));
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
    const stale = (waiting: Waiting): waiting is WaitingUplink | WaitingRejection =>
      (waiting.type === 'uplink' || waiting.type === 'rejection') && waiting.sender.deviceId === deviceId;
    const turnedAway = this.#waiting.filter(stale);
    this.#waiting = this.#waiting.filter((waiting) => !stale(waiting));
    this.#answer(turnedAway, new LockgateError('account-changed', 'the lock’s account changed'));
    this.#parts.locks.arm();
  }

  async #enter(waiting: Judgeable, draft: CommitDraft): Promise<void> {
    if (waiting.type === 'rejection') this.#enterRejection(waiting, draft);
    else if (waiting.type === 'happening') this.#enterHappening(waiting, draft);
    else await this.#enterUplink(waiting, draft);
  }

  #enterRejection({ sender, receivedAtMs, bytes, rejection }: WaitingRejection, draft: CommitDraft): void {
    const { deviceId, credentialId, mac } = sender;
    const { code, message } = rejection;
    draft.incoming.push({ type: 'quarantine', deviceId, credentialId, receivedAtMs, code, message, bytes });
    draft.announcements.push(() => {
      this.#parts.events.emit('quarantined', { atMs: receivedAtMs, mac, code, message, bytes });
    });
  }

  #enterHappening({ deviceId, mac, event, announce }: WaitingHappening, draft: CommitDraft): void {
    const lock = this.#parts.locks.known(deviceId, mac, event.atMs);
    const logged = loggedEvent(event);
    if (logged !== undefined) draft.incoming.push({ type: 'lock-event', deviceId, atMs: event.atMs, event: logged });
    // Durable before the bytes leave: what may have reached a lock is never taken for unsent.
    if (event.type === 'command') draft.commands.push({ type: 'sent', id: event.id, atMs: event.atMs });
    const judged = this.#judged(lock, this.#parts.locks.judge(lock, event), draft);
    draft.announcements.push(() => {
      announce();
      for (const finding of judged.findings) this.#parts.events.emit('finding', { atMs: event.atMs, mac, finding });
    });
  }

  async #enterUplink(waiting: WaitingUplink, draft: CommitDraft): Promise<void> {
    const { sender, uplink, bytes, digest, receivedAtMs } = waiting;
    const { deviceId, merchantId, credentialId, mac, simulated, source } = sender;
    const { boot, sequence } = uplink;
    const lock = this.#parts.locks.known(deviceId, mac, receivedAtMs);
    const copy = await this.#copyOf(lock, waiting, draft);
    const event = {
      type: 'uplink',
      source,
      credential: credentialId,
      copy,
      uplink,
      atMs: receivedAtMs,
    } as const;
    const { findings } = this.#judged(lock, this.#parts.locks.judge(lock, event), draft);
    const buffered = isBuffered(uplink, receivedAtMs);
    if (copy !== 'repeat') {
      // A phone's uplink says where the phone is, and is none of the lock's own.
      if (source === 'lock') noteUplink(lock.state, credentialId, uplink, receivedAtMs);
      const kind = UPLINK_KINDS.indexOf(uplink.body.kind);
      const name = { deviceId, merchantId, credentialId, boot, sequence };
      draft.incoming.push({ type: 'uplink', ...name, digest, kind, bytes, receivedAtMs, buffered });
      draft.merchantIds.add(merchantId);
    }
    draft.announcements.push(() => {
      this.#parts.events.emit('uplink', {
        atMs: receivedAtMs,
        mac,
        source,
        eventId: eventId({ mac, credentialId, boot, sequence, digest }),
        uplink,
        bytes,
        buffered,
        repeated: copy === 'repeat',
        simulated,
        findings,
      });
    });
    if (copy !== 'repeat') this.#enterAck(waiting, draft);
  }

  /** The command's new state goes into the very commit of the uplink. A phone has no say in commands. */
  #enterAck({ sender, uplink, receivedAtMs: atMs }: WaitingUplink, draft: CommitDraft): void {
    const { deviceId, mac, source } = sender;
    const { body } = uplink;
    if (body.kind !== 'ack' || source === 'phone') return;
    const { commandId, result, detail } = body;
    const state = STATE_OF_RESULT[result];
    draft.commands.push({ type: 'acknowledged', id: commandId, deviceId, state, detail, atMs });
    draft.announcements.push(() => {
      this.#parts.commands.acknowledged({ deviceId, mac, commandId, state, detail, atMs });
    });
  }

  /** Whether the uplink's name was used before. */
  async #copyOf(lock: KnownLock, { sender, uplink, digest }: WaitingUplink, draft: CommitDraft): Promise<UplinkCopy> {
    const { credentialId } = sender;
    const { boot, sequence } = uplink;
    const name = `${credentialId}/${boot}/${sequence}`;
    const inBatch = draft.digests.get(name) ?? [];
    draft.digests.set(name, [...inBatch, digest]);
    if (isNewest(lock.state, sender.source, { credential: credentialId, boot, sequence })) return 'new';
    const known = [...inBatch, ...(await this.#parts.store.readDigests(credentialId, boot, sequence))];
    if (known.length === 0) return 'new';
    // Of what was erased only the name is left, so whatever comes under it is taken for it.
    return known.some((each) => each.length === 0 || each.equals(digest)) ? 'repeat' : 'conflict';
  }

  #judged(lock: KnownLock, judged: Judged, draft: CommitDraft): Judged {
    draft.touched.add(lock);
    if (judged.findings.length > 0 || judged.withdrawn.length > 0) draft.judged.push(judged);
    return judged;
  }

  #finish(batch: readonly Judgeable[], draft: CommitDraft): void {
    const { locks, clock, events, onStored, commands } = this.#parts;
    this.#answer(batch);
    for (const announce of draft.announcements) announce();
    for (const lock of draft.touched) {
      const presence = locks.newPresence(lock);
      if (presence !== undefined) events.emit('presence', { atMs: clock.now(), mac: lock.mac, presence });
      commands.judged(lock);
    }
    if (draft.merchantIds.size > 0) onStored(draft.merchantIds, draft.incoming.length);
    locks.arm();
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
    for (const lock of draft.touched) await locks.reload(lock).catch(() => undefined);
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

/** An uplink that arrives over 60 s after its time waited somewhere (protocol.md §3). */
function isBuffered(uplink: Uplink, receivedAtMs: number): boolean {
  return receivedAtMs - uplink.timeMs > POWER_MODEL.bounds.bufferedOver;
}
