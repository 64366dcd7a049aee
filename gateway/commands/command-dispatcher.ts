/**
 * Sends commands: to each lock one at a time, when it is reachable and its state takes commands, again under the same
 * id on the next connection, until the lock answers or the command expires (protocol.md §1 and §2, Commands).
 *
 * A command leaves by way of the ingest's queue: that it is sent is judged, logged and durable before its bytes go out,
 * so `judge` hears of it before the answer to it, and what may have reached a lock never passes for unsent.
 */
import { type Clock, Seconds, type Timer } from '../../proto/clock.js';
import { Deadlines } from '../../proto/deadlines.js';
import { NEVER, rowOf } from '../../proto/power/judge/state.js';
import { POWER_MODEL } from '../../proto/power/model.js';
import { encodeDownlink } from '../../proto/wire/codec.js';
import type { Mac } from '../../proto/wire/mac.js';
import type { RunStep } from '../clocks/clock-guard.js';
import type { ClockDoubt } from '../clocks/kept-clocks.js';
import type { GatewayEvents } from '../events.js';
import type { Acknowledgement, DeviceEvent } from '../ingest/ingest.js';
import type { KnownLock } from '../locks/locks.js';
import type { Session } from '../mqtt/sessions.js';
import type { CommandRecord } from '../store/contract/command-record.js';
import type { Store } from '../store/contract/store.js';
import {
  type CommandQueue,
  type IsHeld,
  newQueue,
  nextChangeMs,
  nextCommand,
  type OpenCommand,
  sendableAtMs,
} from './command-queue.js';
import { FIRST_WORD_WAIT, MOST_LEAVING, MOST_WAITING_PER_LOCK } from './command-terms.js';

/** The wait before an expiry that could not be stored is tried again. */
const AFTER_STORE_FAILURE = Seconds(1);

export interface DispatcherParts {
  readonly store: Pick<Store, 'commands'>;
  readonly events: GatewayEvents;
  /** The run's clock. */
  readonly clock: Clock;
  /** The wall's. */
  readonly wallClock: Clock;
  /** What expires while the machine's clock is not believed; everything is believed where it is left out. */
  readonly doubt?: Pick<ClockDoubt, 'aheadMs' | 'isExpiryDoubtful'> | undefined;
  readonly findLock: (deviceId: number) => KnownLock | undefined;
  /** The lock's own connection; undefined while there is none. */
  readonly sessionOf: (deviceId: number) => Session | undefined;
  /** Has it judged and stored, and then calls `announce`. */
  readonly recordEvent: (deviceId: number, mac: Mac, event: DeviceEvent, announce: () => void) => void;
}

export class CommandDispatcher {
  readonly #parts: DispatcherParts;
  /** Of locks for which something waits. */
  readonly #queues = new Map<number, CommandQueue>();
  readonly #deadlines = new Deadlines<CommandQueue>();
  /** When a connection began to hear commands, by the wall's clock. */
  readonly #listeningSince = new WeakMap<Session, number>();
  /** Queues that wait until others' commands have left. */
  readonly #inLine = new Set<CommandQueue>();
  readonly #firstWordTimers = new Map<CommandQueue, Timer>();
  /** Expiries that could not be stored. */
  readonly #retries = new Set<Timer>();
  /** Connections to which a command is being written. */
  readonly #writing = new WeakSet<Session>();
  readonly #writes = new Set<Promise<void>>();
  #leaving = 0;
  #timer: Timer | undefined;
  #timerDueMs = NEVER;
  #isStopped = false;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
  }

  /** Goes on with what a former life left unfinished. To be called before anything else. */
  async load(): Promise<void> {
    for (const record of await this.#parts.store.commands.readUnfinished()) this.#put(record);
    for (const queue of [...this.#queues.values()]) this.#look(queue);
  }

  /** Sends no more; resolves when nothing of it is under way in the store. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    for (const timer of [...this.#firstWordTimers.values(), ...this.#retries]) timer.cancel();
    await Promise.all(this.#writes);
  }

  /** Takes a place in the lock's queue for a command that is going to be stored; false where it is full. */
  reserve(deviceId: number, mac: Mac): boolean {
    const queue = this.#queueOf(deviceId, mac);
    if (queue.open.length + queue.reserved >= MOST_WAITING_PER_LOCK) return false;
    queue.reserved += 1;
    return true;
  }

  /** Gives a reserved place back. */
  release(deviceId: number): void {
    const queue = this.#queues.get(deviceId);
    if (queue === undefined) return;
    queue.reserved -= 1;
    this.#look(queue);
  }

  /** Takes a stored command into its reserved place. */
  enqueue(record: CommandRecord): void {
    const queue = this.#put(record);
    queue.reserved -= 1;
    this.#tell(record);
    this.#look(queue);
  }

  /** What waits for the lock; undefined where nothing does. */
  queueOf(deviceId: number): CommandQueue | undefined {
    return this.#queues.get(deviceId);
  }

  /** A lock has subscribed to `down`: from now on it hears commands. */
  listening(session: Session): void {
    this.#listeningSince.set(session, this.#parts.wallClock.now());
    this.#lookAt(session.sender.deviceId);
  }

  /** Something new may be believed of the lock: it connected, its battery is no longer low. */
  judged(lock: KnownLock): void {
    if (this.#queues.size > 0) this.#lookAt(lock.deviceId);
  }

  /** The lock's answer, which is stored. Answers whether the command was open. */
  acknowledged({ deviceId, commandId, state, detail, atMs }: Acknowledgement): boolean {
    const queue = this.#queues.get(deviceId);
    const open = queue?.open.find(({ record }) => record.id === commandId && record.sentCount > 0);
    if (queue === undefined || open === undefined) return false;
    this.#finish(queue, open, { state, detail, finishedAtMs: atMs });
    return true;
  }

  /** Takes a queued command out, so that it does not leave any more; undefined where it has left, or is about to. */
  withdraw(id: number, deviceId: number): (() => void) | undefined {
    const queue = this.#queues.get(deviceId);
    const open = queue?.open.find(({ record }) => record.id === id);
    if (queue === undefined || open?.record.state !== 'queued' || queue.leaving === open) return undefined;
    queue.open = queue.open.filter((each) => each !== open);
    this.#look(queue);
    return () => this.#look(this.#put(open.record));
  }

  /** Sends none of a lock's commands any more; they are cancelled, and that is stored. */
  drop(deviceId: number, atMs: number): void {
    const queue = this.#queues.get(deviceId);
    if (queue === undefined) return;
    for (const { record } of queue.open.splice(0)) this.#tell({ ...record, state: 'cancelled', finishedAtMs: atMs });
    this.#look(queue);
  }

  /** Whether it may have expired while nobody measured its time: then it is neither sent nor over. */
  readonly isHeld: IsHeld = ({ createdAtMs, expiresAtMs }) =>
    this.#parts.doubt?.isExpiryDoubtful(createdAtMs, expiresAtMs) === true;

  /** Looks at what waits for all locks: time made a step, or what it means changed. */
  lookAgain(): void {
    for (const queue of [...this.#queues.values()]) this.#look(queue);
    this.#wake();
  }

  /**
   * The run's clock made a step. What was asked for while the machine's clock was doubted lives on for as long as it
   * had left, since its time was measured all along; what was scheduled on purpose keeps its date.
   */
  stepped({ fromMs, toMs, doubtedSinceMs }: RunStep): void {
    const moved: number[] = [];
    const [byMs, sinceMs] = [toMs - fromMs, doubtedSinceMs ?? Number.POSITIVE_INFINITY];
    for (const { open } of this.#queues.values())
      for (const each of open) {
        const { id, createdAtMs, notBeforeMs, expiresAtMs } = each.record;
        if (createdAtMs <= sinceMs || notBeforeMs !== null || expiresAtMs <= fromMs) continue;
        each.record = { ...each.record, createdAtMs: createdAtMs + byMs, expiresAtMs: expiresAtMs + byMs };
        moved.push(id);
      }
    if (moved.length > 0) this.#keepMoved(moved, byMs);
    this.lookAgain();
  }

  #keepMoved(ids: readonly number[], byMs: number): void {
    const { store, events, clock } = this.#parts;
    const write: Promise<void> = store.commands
      .postpone(ids, byMs)
      // They live on here; only a start before their end would find them over.
      .catch((error: Error) => void events.emit('store-failed', { atMs: clock.now(), why: error.message }))
      .finally(() => this.#writes.delete(write));
    this.#writes.add(write);
  }

  #tell(record: CommandRecord): void {
    this.#parts.events.emit('command', { atMs: this.#parts.clock.now(), mac: record.mac, record });
  }

  #queueOf(deviceId: number, mac: Mac): CommandQueue {
    const known = this.#queues.get(deviceId);
    if (known !== undefined) return known;
    const queue = newQueue(deviceId, mac);
    this.#queues.set(deviceId, queue);
    return queue;
  }

  #put(record: CommandRecord): CommandQueue {
    const queue = this.#queueOf(record.deviceId, record.mac);
    queue.open.push({ record, session: undefined, sendsOnSession: 0 });
    // What comes back after a cancel that failed takes its old place.
    queue.open.sort((a, b) => a.record.id - b.record.id);
    return queue;
  }

  #lookAt(deviceId: number): void {
    const queue = this.#queues.get(deviceId);
    if (queue !== undefined) this.#look(queue);
  }

  /** Does what there is to do for a lock now, and sees to it that it is looked at again when time changes that. */
  #look(queue: CommandQueue): void {
    // A queue that was given up may still be named by a timer; its lock may have another by now.
    if (this.#isStopped || this.#queues.get(queue.deviceId) !== queue) return;
    const nowMs = this.#parts.clock.now();
    this.#expire(queue, nowMs);
    if (queue.open.length === 0 && queue.leaving === undefined && queue.reserved === 0) {
      this.#giveUp(queue);
      return;
    }
    let dueMs = nextChangeMs(queue, nowMs);
    const next = queue.leaving === undefined ? nextCommand(queue, nowMs, this.isHeld) : undefined;
    const session = next === undefined ? undefined : this.#reachable(queue);
    if (next !== undefined && session !== undefined) {
      const atMs = sendableAtMs(next, session);
      if (atMs <= nowMs) this.#leave(queue, next, session);
      else dueMs = Math.min(dueMs, atMs);
    }
    if (dueMs !== queue.dueMs && dueMs < NEVER) this.#deadlines.set(queue, dueMs);
    this.#arm();
  }

  /** Nothing waits for the lock any more. */
  #giveUp(queue: CommandQueue): void {
    queue.dueMs = NEVER;
    this.#queues.delete(queue.deviceId);
    this.#inLine.delete(queue);
    this.#firstWordTimers.get(queue)?.cancel();
    this.#firstWordTimers.delete(queue);
  }

  /** The lock's connection, where it listens and its state takes commands. */
  #reachable(queue: CommandQueue): Session | undefined {
    const session = this.#parts.sessionOf(queue.deviceId);
    if (session?.sender.source !== 'lock' || !session.isListening || session.connection.stream.destroyed)
      return undefined;
    if (this.#writing.has(session)) return undefined;
    const belief = this.#parts.findLock(queue.deviceId)?.state.belief;
    if (belief !== undefined && !rowOf(POWER_MODEL, belief.state).commands) return undefined;
    const hasSpoken = belief?.isConnected === true && belief.hasUplinks;
    return hasSpoken || this.#waitedForFirstWord(queue, session) ? session : undefined;
  }

  /** A connection without an uplink yet is given some time for one. */
  #waitedForFirstWord(queue: CommandQueue, session: Session): boolean {
    const { wallClock } = this.#parts;
    const left = (this.#listeningSince.get(session) ?? wallClock.now()) + FIRST_WORD_WAIT - wallClock.now();
    if (left <= 0) return true;
    if (!this.#firstWordTimers.has(queue)) {
      const timer = wallClock.after(left, () => {
        this.#firstWordTimers.delete(queue);
        this.#look(queue);
      });
      this.#firstWordTimers.set(queue, timer);
    }
    return false;
  }

  /** First into the ingest's queue, then into the socket. */
  #leave(queue: CommandQueue, open: OpenCommand, session: Session): void {
    if (this.#leaving >= MOST_LEAVING) {
      this.#inLine.add(queue);
      return;
    }
    this.#leaving += 1;
    queue.leaving = open;
    const atMs = this.#parts.clock.now();
    const { id, command, expiresAtMs: expiresMs } = open.record;
    this.#parts.recordEvent(queue.deviceId, queue.mac, { type: 'command', id, command, expiresMs, atMs }, () => {
      this.#leaving -= 1;
      queue.leaving = undefined;
      this.#send(queue, open, session, atMs);
      this.#look(queue);
      this.#callNext();
    });
  }

  #callNext(): void {
    for (const queue of this.#inLine) {
      if (this.#leaving >= MOST_LEAVING) return;
      this.#inLine.delete(queue);
      this.#look(queue);
    }
  }

  #send(queue: CommandQueue, open: OpenCommand, session: Session, atMs: number): void {
    const { record } = open;
    // While it was on its way, an answer to it may have come from the connection before, or its time have run out.
    if (!queue.open.includes(open)) return;
    const firstSentAtMs = record.firstSentAtMs ?? atMs;
    const sentCount = record.sentCount + 1;
    open.record = { ...record, state: 'sent', firstSentAtMs, lastSentAtMs: atMs, sentCount };
    open.sendsOnSession = open.session === session ? open.sendsOnSession + 1 : 1;
    open.session = session;
    this.#parts.events.emit('command', { atMs, mac: record.mac, record: open.record });
    const { id, expiresAtMs: expiresMs, command } = record;
    if (this.#isStopped || this.#parts.clock.now() >= expiresMs) return;
    // aedes loses a message that is followed too closely by another: the next one waits until this one is written.
    this.#writing.add(session);
    // The lock compares it with a clock of its own, which is more likely to agree with one that leapt than to lag.
    const onItsClockMs = expiresMs + Math.max(this.#parts.doubt?.aheadMs ?? 0, 0);
    void session.send(Buffer.from(encodeDownlink({ id, expiresMs: onItsClockMs, command }))).finally(() => {
      this.#writing.delete(session);
      this.#lookAt(queue.deviceId);
    });
  }

  #expire(queue: CommandQueue, nowMs: number): void {
    const isOver = ({ record }: OpenCommand): boolean => nowMs >= record.expiresAtMs;
    if (!queue.open.some(isOver)) return;
    const over = queue.open.filter(isOver);
    queue.open = queue.open.filter((open) => !isOver(open));
    this.#storeExpiry(over, nowMs);
  }

  #storeExpiry(over: readonly OpenCommand[], atMs: number): void {
    const write = this.#writeExpiry(over, atMs).finally(() => this.#writes.delete(write));
    this.#writes.add(write);
  }

  /** Told once it is stored. An answer that was stored before it stands, and has been told. */
  async #writeExpiry(over: readonly OpenCommand[], atMs: number): Promise<void> {
    const ids = over.map(({ record }) => record.id);
    try {
      const expired = await this.#parts.store.commands.expire(ids, atMs);
      for (const { record } of over)
        if (expired.includes(record.id)) this.#tell({ ...record, state: 'expired', finishedAtMs: atMs });
    } catch (error) {
      const { events, clock } = this.#parts;
      events.emit('store-failed', { atMs: clock.now(), why: (error as Error).message });
      // It is not sent any more in any case; and should we stop first, the next start finds it over.
      if (this.#isStopped) return;
      const retry = clock.after(AFTER_STORE_FAILURE, () => {
        this.#retries.delete(retry);
        this.#storeExpiry(over, atMs);
      });
      this.#retries.add(retry);
    }
  }

  #finish(queue: CommandQueue, open: OpenCommand, end: Partial<CommandRecord>): void {
    queue.open = queue.open.filter((each) => each !== open);
    this.#tell({ ...open.record, ...end });
    this.#look(queue);
  }

  #arm(): void {
    const dueMs = this.#deadlines.firstMs;
    if (dueMs === this.#timerDueMs || this.#isStopped) return;
    this.#timer?.cancel();
    this.#timerDueMs = dueMs;
    this.#timer =
      dueMs >= NEVER
        ? undefined
        : this.#parts.clock.after(Math.max(dueMs - this.#parts.clock.now(), 1), () => this.#wake());
  }

  #wake(): void {
    this.#timerDueMs = Number.NaN;
    const due: CommandQueue[] = [];
    const nowMs = this.#parts.clock.now();
    // What is due at this very moment is due.
    for (let queue = this.#deadlines.take(nowMs + 1); queue !== undefined; queue = this.#deadlines.take(nowMs + 1))
      due.push(queue);
    for (const queue of due) {
      queue.dueMs = NEVER;
      this.#look(queue);
    }
    this.#arm();
  }
}
